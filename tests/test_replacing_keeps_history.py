"""Replacing a transcript makes a new revision: what was there stays readable, and everything else stays as it is."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive import load, memories
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.mcp import client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, bring, replace, store, user

A_REVISION = "0" * 64
A_UUID = "00000000-0000-4000-8000-000000000000"


async def texts(world: World, conversation_id: str, **query: Any) -> list[str]:
    page = await read_page(world.ports, OWNER, conversation_id, limit=1000, **query)
    return [message.node.text for message in page.messages]


async def imported(world: World, *words: str, source_id: str = "a") -> memories.Written:
    """An imported conversation, as something to write behind."""
    (outcome,) = await bring(world.ports, make.chain(source_id, *words))
    assert outcome.revision_id
    return memories.Written(outcome.conversation_id, outcome.revision_id, None, 0, 0, None, True, None)


async def test_the_new_transcript_is_read_and_the_old_one_stays_in_its_revision() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", "two", title="Kept", namespace="work", tags=["kept"])
    written = await replace(world.ports, base, "three")
    page = await read_page(world.ports, OWNER, base.conversation_id)
    assert [message.node.text for message in page.messages] == ["three"]
    view = page.conversation
    assert (view.id, view.title, view.namespace, view.tags) == (base.conversation_id, "Kept", "work", ("kept",))
    assert (written.previous_revision_id, written.first_offset, written.message_count) == (base.revision_id, 0, 1)
    assert await texts(world, base.conversation_id, revision_id=base.revision_id) == ["one", "two"]
    assert (await memories.verify_written(world.ports, OWNER, written, user("three"))).passed


async def test_an_imported_conversation_stays_what_it_is_while_its_branches_stay_in_the_revision_before() -> None:
    world = await memory_world()
    nodes = [make.node("a", None), make.node("b", "a", "left"), make.node("c", "a", "right")]
    (outcome,) = await bring(world.ports, make.conversation("s1", nodes))
    assert outcome.revision_id
    base = memories.Written(outcome.conversation_id, outcome.revision_id, None, 0, 0, None, True, None)
    await replace(world.ports, base, "straight")
    page = await read_page(world.ports, OWNER, base.conversation_id, branch="all")
    assert [message.node.text for message in page.messages] == ["straight"]
    assert (page.conversation.source_type, page.conversation.source_id) == ("chatgpt", "s1")
    assert page.conversation.anomalies == ()
    assert await texts(world, base.conversation_id, branch="all", revision_id=base.revision_id) == ["", "left", "right"]


async def test_what_was_replaced_is_found_no_more_and_what_replaced_it_is() -> None:
    world = await memory_world()
    base = await store(world.ports, "a barometer")
    await drain(world)
    await replace(world.ports, base, "a thermometer")
    await drain(world)
    assert (await search(world.ports, OWNER, query="barometer", limit=5)).results == ()
    (hit,) = (await search(world.ports, OWNER, query="thermometer", limit=5)).results
    assert hit.conversation_id == base.conversation_id
    assert (await world.ports.vectors.describe()).count == 1


async def test_messages_that_stay_keep_their_node_ids() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", "two", "three")
    before = await read_page(world.ports, OWNER, base.conversation_id)
    await replace(world.ports, base, "one", "two", "other")
    after = await read_page(world.ports, OWNER, base.conversation_id)
    ids = [[message.node.source_node_id for message in page.messages] for page in (before, after)]
    assert ids[0][:2] == ids[1][:2]
    assert ids[0][2] != ids[1][2]


async def test_the_same_transcript_again_writes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", "two")
    written = await replace(world.ports, base, "one", "two")
    assert (written.replayed, written.revision_id) == (True, base.revision_id)
    assert len(await load.head_log(world.ports.objects, base.conversation_id)) == 1


async def test_going_back_to_an_earlier_transcript_is_that_revision_again() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await replace(world.ports, base, "two")
    third = await replace(world.ports, second, "one")
    assert third.revision_id == base.revision_id
    assert await texts(world, base.conversation_id) == ["one"]
    assert len(await world.ports.catalog.query("SELECT 1 FROM revisions")) == 2


async def test_an_unchanged_export_leaves_the_replacement_and_a_newer_one_only_adds_branches() -> None:
    world = await memory_world()
    base = await imported(world, "one", "two")
    await replace(world.ports, base, "corrected")
    (same,) = await bring(world.ports, make.chain("a", "one", "two"), import_id="again")
    assert same.status == "unchanged"
    for step in (3, 4):
        newer = make.chain("a", *["one", "two", "three", "four"][:step], updated_at=f"2026-02-0{step}T00:00:00.000Z")
        (grown,) = await bring(world.ports, newer, import_id=f"newer-{step}")
        assert grown.status == "updated"
        assert await texts(world, base.conversation_id) == ["corrected"]
    assert {"one", "two", "three", "four", "corrected"} <= set(await texts(world, base.conversation_id, branch="all"))


async def test_a_replacement_can_be_appended_to() -> None:
    world = await memory_world()
    second = await replace(world.ports, await imported(world, "one"), "other")
    await append(world.ports, second, "and more")
    assert await texts(world, second.conversation_id) == ["other", "and more"]


async def test_a_rebuild_gives_the_same_rows() -> None:
    world = await memory_world()
    second = await replace(world.ports, await imported(world, "one"), "other", idempotency_key="k")
    await replace(world.ports, second, "and another")
    live = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await digest(rebuilt.ports.catalog) == live


async def test_a_stale_base_is_a_conflict_and_writes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    current = await append(world.ports, base, "two")
    objects = (await world.ports.objects.list("")).objects
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT) as caught:
        await replace(world.ports, base, "late")
    assert caught.value.details["current_revision_id"] == current.revision_id
    assert (await world.ports.objects.list("")).objects == objects


async def test_a_repeated_key_is_answered_after_others_went_on() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    first = await replace(world.ports, base, "two", "three", idempotency_key="k")
    await append(world.ports, first, "four")
    again = await replace(world.ports, base, "two", "three", idempotency_key="k")
    assert again.replayed
    assert (again.revision_id, again.previous_revision_id, again.first_offset, again.message_count) == (
        first.revision_id,
        base.revision_id,
        0,
        2,
    )
    assert await texts(world, base.conversation_id) == ["two", "three", "four"]


# ------------------------------------------------------------------ the tool


def messages(*words: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": word} for word in words]


@pytest.mark.parametrize("count", [1, limits.MAX_STORE_MESSAGES - 1, limits.MAX_STORE_MESSAGES])
async def test_the_receipt_verifies_every_message(count: int) -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    receipt = await (await client(world.ports)).answer(
        "memory_replace",
        conversation_id=base.conversation_id,
        base_revision_id=base.revision_id,
        messages=messages(*["x" * 100] * count),
        verify=True,
    )
    assert receipt["previous_revision_id"] == base.revision_id
    assert (receipt["verification"]["status"], receipt["verification"]["checked_messages"]) == ("passed", count)
    if count == 1:
        assert [item["text"] for item in receipt["verification"]["readback"]["messages"]] == ["x" * 100]
    else:
        assert [item["offset"] for item in receipt["readback_requests"]] == list(range(0, count, 20))


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": messages("x") * (limits.MAX_STORE_MESSAGES + 1)}, "messages"),
        ({"messages": messages(" ")}, "messages"),
        ({"messages": [{"role": "r" * (limits.MAX_ROLE_CHARS + 1), "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": "x", "timestamp": "soon"}]}, "messages[0].timestamp"),
        ({"tags": ["a"]}, "tags"),
        ({"idempotency_key": "k" * (limits.MAX_IDEMPOTENCY_KEY_CHARS + 1)}, "idempotency_key"),
        ({"base_revision_id": None}, "base_revision_id"),
        ({"base_revision_id": A_UUID}, "base_revision_id"),
        ({"conversation_id": "x"}, "conversation_id"),
        ({"verify": "maybe"}, "verify"),
    ],
)
async def test_bad_arguments_are_refused_before_storage_is_touched(arguments: dict[str, Any], field: str) -> None:
    valid = {"conversation_id": A_UUID, "base_revision_id": A_REVISION, "messages": messages("x")}
    error = await (await client()).refused("memory_replace", **{**valid, **arguments})
    assert error["code"] == "VALIDATION"
    assert error["field"] == field


async def test_a_request_above_its_bytes_is_refused_whole_with_a_way_out() -> None:
    at = await client()
    error = await at.refused(
        "memory_replace",
        conversation_id=A_UUID,
        base_revision_id=A_REVISION,
        messages=messages(*["é" * 60_000] * 10),
    )
    assert error["code"] == "REQUEST_TOO_LARGE"
    assert error["max_request_bytes"] == limits.MAX_INLINE_JSON_WRITE_BYTES < error["request_bytes"]
    assert 1 <= error["suggested_max_items"] < 10


async def test_missing_deleted_and_foreign_are_one_answer() -> None:
    world = await memory_world()
    kept, gone = await store(world.ports, "kept"), await store(world.ports, "gone")
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    await owner.answer("memory_delete_conversations", conversation_ids=[gone.conversation_id])
    answers = [
        await at.refused(
            "memory_replace", conversation_id=which, base_revision_id=kept.revision_id, messages=messages("x")
        )
        for at, which in ((owner, A_UUID), (owner, gone.conversation_id), (stranger, kept.conversation_id))
    ]
    assert answers == [{"code": "NOT_FOUND", "message": "conversation not found"}] * 3
    assert await texts(world, kept.conversation_id) == ["kept"]
