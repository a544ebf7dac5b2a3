"""Tags are live: changing them touches no revision, and what was removed does not come back."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive import load
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs.mcp import client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, replace, restore, retag, store

A_REVISION = "0" * 64
A_UUID = "00000000-0000-4000-8000-000000000000"


async def tags_of(world: World, conversation_id: str) -> tuple[str, ...]:
    return (await read_page(world.ports, OWNER, conversation_id)).conversation.tags


async def test_removals_come_before_additions_and_the_order_is_kept() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["a", "b", "c"])
    written = await retag(world.ports, base, remove=["B", "x"], add=[" D ", "a", "b"])
    assert written.tags == ("a", "c", "d", "b")
    assert await tags_of(world, base.conversation_id) == written.tags


async def test_no_revision_is_new_and_what_a_list_is_sorted_by_stays() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["a"])
    world.clock.advance(60_000)
    before = await read_page(world.ports, OWNER, base.conversation_id)
    written = await retag(world.ports, base, add=["b"])
    after = await read_page(world.ports, OWNER, base.conversation_id)
    assert written.revision_id == base.revision_id == after.conversation.revision_id
    assert after.conversation.updated_at == before.conversation.updated_at
    assert after.messages == before.messages
    assert len(await world.ports.catalog.query("SELECT 1 FROM revisions")) == 1


async def test_a_change_of_tags_writes_one_object() -> None:
    world = await memory_world()
    base = await store(world.ports, "words")
    before = {info.key for info in (await world.ports.objects.list("")).objects}
    await retag(world.ports, base, add=["b"])
    after = {info.key for info in (await world.ports.objects.list("")).objects}
    assert [key.split("/")[3] for key in after - before] == ["head"]


async def test_tags_that_were_removed_stay_away_through_every_later_write() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["old", "kept"])
    await retag(world.ports, base, remove=["old"])
    second = await append(world.ports, base, "more", tags=["new"])
    assert await tags_of(world, base.conversation_id) == ("kept", "new")
    third = await replace(world.ports, second, "other words")
    assert await tags_of(world, base.conversation_id) == ("kept", "new")
    await restore(world.ports, third, base.revision_id)
    assert await tags_of(world, base.conversation_id) == ("kept", "new")


async def test_the_tags_come_back_from_the_archive_alone() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["a", "b"])
    await retag(world.ports, base, remove=["a"], add=["c"], idempotency_key="k")
    live = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await digest(rebuilt.ports.catalog) == live
    assert await tags_of(rebuilt, base.conversation_id) == ("b", "c")


async def test_a_change_that_changes_nothing_writes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["a"])
    written = await retag(world.ports, base, add=["a"], remove=["x"])
    assert (written.replayed, written.tags) == (True, ("a",))
    assert len(await load.head_log(world.ports.objects, base.conversation_id)) == 1


async def test_a_repeated_key_answers_with_the_tags_of_then_and_changes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "words")
    first = await retag(world.ports, base, add=["a"], idempotency_key="k")
    await retag(world.ports, base, remove=["a"])
    again = await retag(world.ports, base, add=["a"], idempotency_key="k")
    assert (first.replayed, again.replayed, again.tags) == (False, True, ("a",))
    assert await tags_of(world, base.conversation_id) == ()


async def test_a_key_is_remembered_even_where_there_was_nothing_to_do() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=["a"])
    await retag(world.ports, base, add=["a"], idempotency_key="k")
    await retag(world.ports, base, remove=["a"])
    await retag(world.ports, base, add=["a"], idempotency_key="k")
    assert await tags_of(world, base.conversation_id) == ()


async def test_a_key_that_stands_for_another_request_is_a_conflict() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", idempotency_key="k")
    for change in ({"add": ["a"]}, {"remove": ["a"]}):
        with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT):
            await retag(world.ports, base, **change, idempotency_key="k")


async def test_a_stale_base_is_a_conflict_that_names_the_current_revision() -> None:
    world = await memory_world()
    base = await store(world.ports, "words")
    current = await append(world.ports, base, "more")
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT) as caught:
        await retag(world.ports, base, add=["a"])
    assert caught.value.details["current_revision_id"] == current.revision_id


async def test_the_tags_of_a_conversation_never_become_more_than_are_allowed() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", tags=[f"t{index}" for index in range(limits.MAX_TAGS - 1)])
    await retag(world.ports, base, add=["last"])
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.VALIDATION):
        await retag(world.ports, base, add=["one-more"])
    assert "one-more" in (await retag(world.ports, base, remove=["t0"], add=["one-more"])).tags


# ------------------------------------------------------------------ the tool


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "add"),
        ({"add": [], "remove": []}, "add"),
        ({"add": None}, "add"),
        ({"add": [str(index) for index in range(limits.MAX_TAGS + 1)]}, "add"),
        ({"remove": [str(index) for index in range(limits.MAX_TAGS + 1)]}, "remove"),
        ({"add": ["x" * (limits.MAX_TAG_CHARS + 1)]}, "add[0]"),
        ({"remove": ["ok", " "]}, "remove[1]"),
        ({"add": [""]}, "add[0]"),
        ({"add": ["a"], "idempotency_key": "k" * (limits.MAX_IDEMPOTENCY_KEY_CHARS + 1)}, "idempotency_key"),
        ({"add": ["a"], "idempotency_key": " "}, "idempotency_key"),
        ({"add": ["a"], "base_revision_id": "0" * 63}, "base_revision_id"),
        ({"add": ["a"], "conversation_id": "0" * 65}, "conversation_id"),
        ({"add": ["a"], "tags": ["b"]}, "tags"),
    ],
)
async def test_bad_arguments_are_refused_before_storage_is_touched(arguments: dict[str, Any], field: str) -> None:
    error = await (await client()).refused(
        "memory_update_tags", **{"conversation_id": A_UUID, "base_revision_id": A_REVISION, **arguments}
    )
    assert error["code"] == "VALIDATION"
    assert error["field"].startswith(field)


@pytest.mark.parametrize("count", [1, limits.MAX_TAGS - 1, limits.MAX_TAGS])
@pytest.mark.parametrize("size", [1, limits.MAX_TAG_CHARS - 1, limits.MAX_TAG_CHARS])
async def test_tags_within_their_bounds_are_taken(count: int, size: int) -> None:
    world = await memory_world()
    base = await store(world.ports, "words")
    tags = [chr(0x3041 + index) * size for index in range(count)]
    answer = await (await client(world.ports)).answer(
        "memory_update_tags",
        conversation_id=base.conversation_id,
        base_revision_id=base.revision_id,
        add=tags,
        idempotency_key="k" * limits.MAX_IDEMPOTENCY_KEY_CHARS,
    )
    assert answer["tags"] == tags
    assert (answer["durable"], answer["indexing"]["status"], answer["revision_id"]) == (
        True,
        "queued",
        base.revision_id,
    )


async def test_missing_deleted_and_foreign_are_one_answer() -> None:
    world = await memory_world()
    kept, gone = await store(world.ports, "kept"), await store(world.ports, "gone")
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    await owner.answer("memory_delete_conversations", conversation_ids=[gone.conversation_id])
    answers = [
        await at.refused("memory_update_tags", conversation_id=which, base_revision_id=kept.revision_id, add=["a"])
        for at, which in ((owner, A_UUID), (owner, gone.conversation_id), (stranger, kept.conversation_id))
    ]
    assert answers == [{"code": "NOT_FOUND", "message": "conversation not found"}] * 3
    await drain(world)
    assert await tags_of(world, kept.conversation_id) == ()
