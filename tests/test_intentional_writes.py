"""Storing and appending: what is kept, what is refused, and that an append costs what is new."""

from __future__ import annotations

import asyncio

import pytest

from mempersist import limits
from mempersist.archive import load, memories, read
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import NewMessage
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, bring, store, user


async def texts(world: World, conversation_id: str, **query: object) -> list[str]:
    page = await read.read_page(world.ports, OWNER, conversation_id, limit=1000, **query)  # type: ignore[arg-type]
    return [message.node.text for message in page.messages]


def refusal(code: Code) -> object:
    return pytest.raises(MempersistError, check=lambda error: error.code is code)


async def test_a_stored_conversation_reads_back_exactly() -> None:
    world = await memory_world()
    messages = [NewMessage("user", "  spaces kept \n"), NewMessage("tool", "späte Größe", "2026-05-01T12:00:00+02:00")]
    written = await store(world.ports, messages=messages, title="Exact", tags=["B", " a ", "b"])
    page = await read.read_page(world.ports, OWNER, written.conversation_id)
    assert [(item.node.role, item.node.text, item.node.created_at) for item in page.messages] == [
        ("user", "  spaces kept \n", None),
        ("tool", "späte Größe", "2026-05-01T10:00:00.000Z"),
    ]
    assert page.conversation.tags == ("b", "a")
    assert page.conversation.namespace == "personal"
    assert (await memories.verify_written(world.ports, OWNER, written, messages)).passed


async def test_an_append_follows_the_current_message_and_keeps_removed_tags_away() -> None:
    world = await memory_world()
    first = await store(world.ports, "one", tags=["x"])
    second = await append(world.ports, first, "two", "three", tags=["y"])
    assert second.previous_revision_id == first.revision_id
    assert second.first_offset == 1
    assert await texts(world, first.conversation_id) == ["one", "two", "three"]
    page = await read.read_page(world.ports, OWNER, first.conversation_id)
    assert page.conversation.tags == ("x", "y")


async def test_an_append_to_an_imported_conversation_continues_its_active_branch() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two"))
    row = (await world.ports.catalog.query("SELECT revision_id FROM conversations"))[0]
    await memories.append(
        world.ports,
        OWNER,
        conversation_id=item.conversation_id,
        base_revision_id=row["revision_id"],
        messages=user("three"),
    )
    assert await texts(world, item.conversation_id) == ["one", "two", "three"]


async def test_an_append_writes_three_objects_whatever_the_length() -> None:
    world = await memory_world()
    written = await store(world.ports, *[f"message {index}" for index in range(500)])
    before = {info.key: info.size for info in (await world.ports.objects.list("")).objects}
    await append(world.ports, written, "one more")
    after = {info.key: info.size for info in (await world.ports.objects.list("")).objects}
    new = {key: size for key, size in after.items() if key not in before}
    assert sorted(key.split("/")[3] for key in new) == ["head", "revisions", "segments"]
    assert sum(new.values()) < 3000
    assert {key: after[key] for key in before} == before


async def test_earlier_revisions_stay_readable() -> None:
    world = await memory_world()
    first = await store(world.ports, "one", "two")
    second = await append(world.ports, first, "three")
    await append(world.ports, second, "four")
    assert await texts(world, first.conversation_id, revision_id=first.revision_id) == ["one", "two"]
    assert await texts(world, first.conversation_id, revision_id=second.revision_id) == ["one", "two", "three"]


async def test_of_two_appends_to_one_revision_exactly_one_wins_and_the_other_is_told_how_to_go_on() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    results = await asyncio.gather(*(append(world.ports, base, "same text") for _ in range(5)), return_exceptions=True)
    winners = [result for result in results if not isinstance(result, BaseException)]
    losers = [result for result in results if isinstance(result, MempersistError)]
    assert len(winners) == 1
    assert [loser.code for loser in losers] == [Code.IMPORT_CONFLICT] * 4
    assert {loser.details["current_revision_id"] for loser in losers} == {winners[0].revision_id}
    assert await texts(world, base.conversation_id) == ["one", "same text"]


async def test_a_stale_base_is_a_conflict_and_writes_nothing() -> None:
    world = await memory_world()
    first = await store(world.ports, "one")
    await append(world.ports, first, "two")
    objects = len((await world.ports.objects.list("")).objects)
    with refusal(Code.IMPORT_CONFLICT):
        await append(world.ports, first, "late")
    assert len((await world.ports.objects.list("")).objects) == objects


async def test_a_repeated_store_with_the_same_key_is_answered_and_not_done_again() -> None:
    world = await memory_world()
    first = await store(world.ports, "one", "two", idempotency_key="k")
    again = await store(world.ports, "one", "two", idempotency_key="k")
    assert again.replayed
    assert (again.conversation_id, again.revision_id, again.message_count, again.first_offset) == (
        first.conversation_id,
        first.revision_id,
        2,
        0,
    )
    assert len(await world.ports.catalog.query("SELECT 1 FROM conversations")) == 1


async def test_a_repeated_append_with_the_same_key_is_answered_after_others_went_on() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    first = await append(world.ports, base, "two", idempotency_key="k")
    await append(world.ports, first, "three")
    again = await append(world.ports, base, "two", idempotency_key="k")
    assert again.replayed
    assert (again.revision_id, again.previous_revision_id, again.first_offset) == (
        first.revision_id,
        base.revision_id,
        1,
    )
    assert await texts(world, base.conversation_id) == ["one", "two", "three"]


async def test_a_key_used_for_another_request_is_a_conflict() -> None:
    world = await memory_world()
    await store(world.ports, "one", idempotency_key="k")
    with refusal(Code.IMPORT_CONFLICT):
        await store(world.ports, "other", idempotency_key="k")


async def test_parallel_stores_with_one_key_make_one_conversation() -> None:
    world = await memory_world()
    results = await asyncio.gather(*(store(world.ports, "one", idempotency_key="k") for _ in range(5)))
    ((conversation_id, _),) = {(result.conversation_id, result.revision_id) for result in results}
    log = await load.head_log(world.ports.objects, conversation_id)
    assert [entry.seq for entry, _ in log] == [0]
    assert await texts(world, conversation_id) == ["one"]


async def test_missing_deleted_and_foreign_conversations_are_one_answer() -> None:
    world = await memory_world()
    deleted, foreign = await store(world.ports, "gone"), await store(world.ports, "mine")
    await delete_conversation(world.ports, OWNER, deleted.conversation_id)
    await drain(world)
    answers = set()
    for account, conversation_id in [
        (OWNER, "00000000-0000-4000-8000-999999999999"),
        (OWNER, deleted.conversation_id),
        (AccountId("stranger"), foreign.conversation_id),
    ]:
        for call in (
            memories.append(
                world.ports, account, conversation_id=conversation_id, base_revision_id="r", messages=user("x")
            ),
            read.read_page(world.ports, account, conversation_id),
            delete_conversation(world.ports, account, conversation_id),
        ):
            with refusal(Code.NOT_FOUND) as caught:
                await call
            answers.add((caught.value.message, caught.value.status))  # type: ignore[attr-defined]
    assert answers == {("conversation not found", 404)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"title": " "}, "title"),
        ({"title": "x" * (limits.MAX_TITLE_CHARS + 1)}, "title"),
        ({"namespace": " \t"}, "namespace"),
        ({"namespace": "x" * (limits.MAX_NAMESPACE_CHARS + 1)}, "namespace"),
        ({"tags": ["ok", " "]}, "tags[1]"),
        ({"tags": ["x" * (limits.MAX_TAG_CHARS + 1)]}, "tags[0]"),
        ({"tags": [f"t{index}" for index in range(limits.MAX_TAGS + 1)]}, "tags"),
        ({"messages": []}, "messages"),
        ({"messages": user(*["x"] * (limits.MAX_STORE_MESSAGES + 1))}, "messages"),
        ({"messages": user(" ", "\n")}, "messages"),
        ({"messages": [NewMessage(" ", "x")]}, "messages[0].role"),
        ({"messages": [NewMessage("r" * (limits.MAX_ROLE_CHARS + 1), "x")]}, "messages[0].role"),
        ({"messages": user("x" * (limits.MAX_MESSAGE_CONTENT_CHARS + 1))}, "messages[0].content"),
        ({"messages": [NewMessage("user", "x", "yesterday")]}, "messages[0].timestamp"),
        ({"idempotency_key": " "}, "idempotency_key"),
        ({"idempotency_key": "k" * (limits.MAX_IDEMPOTENCY_KEY_CHARS + 1)}, "idempotency_key"),
    ],
)
async def test_bad_input_names_its_field_and_writes_nothing(change: dict[str, object], field: str) -> None:
    world = await memory_world()
    before = (await world.ports.objects.list("")).objects
    with refusal(Code.VALIDATION) as caught:
        await store(world.ports, "x", **change)
    assert caught.value.details["field"] == field  # type: ignore[attr-defined]
    assert (await world.ports.objects.list("")).objects == before


async def test_input_at_each_bound_is_taken() -> None:
    world = await memory_world()
    await store(
        world.ports,
        title="x" * limits.MAX_TITLE_CHARS,
        namespace="n" * limits.MAX_NAMESPACE_CHARS,
        tags=[f"{index:02d}" + "t" * (limits.MAX_TAG_CHARS - 2) for index in range(limits.MAX_TAGS)],
        messages=[NewMessage("r" * limits.MAX_ROLE_CHARS, "x")] * limits.MAX_STORE_MESSAGES,
        idempotency_key="k" * limits.MAX_IDEMPOTENCY_KEY_CHARS,
    )


async def test_the_first_write_to_a_namespace_claims_it() -> None:
    world = await memory_world()
    await store(world.ports, "x", namespace="  new space ")
    rows = await world.ports.catalog.query("SELECT namespace FROM namespaces ORDER BY namespace")
    assert [row["namespace"] for row in rows] == ["new space", "personal"]
