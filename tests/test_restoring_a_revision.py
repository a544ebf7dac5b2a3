"""Restoring moves the head to an earlier revision: nothing is copied, nothing is lost, and doing it twice is once."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive import codec, load
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectNotFound
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.mcp import client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, bring, replace, restore, retag, store

A_REVISION = "0" * 64
A_UUID = "00000000-0000-4000-8000-000000000000"


async def texts(world: World, conversation_id: str, **query: Any) -> list[str]:
    page = await read_page(world.ports, OWNER, conversation_id, limit=1000, **query)
    return [message.node.text for message in page.messages]


async def keys(world: World) -> set[str]:
    return {info.key for info in (await world.ports.objects.list("")).objects}


async def test_the_earlier_transcript_is_current_again_and_the_later_one_stays_readable() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    before = await keys(world)
    written = await restore(world.ports, second, base.revision_id)
    assert (written.revision_id, written.previous_revision_id) == (base.revision_id, second.revision_id)
    assert await texts(world, base.conversation_id) == ["one"]
    assert await texts(world, base.conversation_id, revision_id=second.revision_id) == ["one", "two"]
    (new,) = await keys(world) - before
    entry = codec.decode_head(await world.ports.objects.get(new))
    assert (entry.operation, entry.revision_id) == ("restore", base.revision_id)
    assert len(await world.ports.catalog.query("SELECT 1 FROM revisions")) == 2


async def test_every_branch_of_an_import_comes_back() -> None:
    world = await memory_world()
    nodes = [make.node("a", None), make.node("b", "a", "left"), make.node("c", "a", "right")]
    (outcome,) = await bring(world.ports, make.conversation("s1", nodes))
    before = await read_page(world.ports, OWNER, outcome.conversation_id, branch="all")
    base = await store(world.ports, "unused")
    there = {"conversation_id": outcome.conversation_id, "base_revision_id": outcome.revision_id}
    second = await replace(world.ports, base, "straight", **there)
    await restore(world.ports, second, str(outcome.revision_id))
    after = await read_page(world.ports, OWNER, outcome.conversation_id, branch="all")
    assert after.messages == before.messages


async def test_search_follows_the_restored_revision() -> None:
    world = await memory_world()
    base = await store(world.ports, "a barometer")
    second = await replace(world.ports, base, "a thermometer")
    await drain(world)
    await restore(world.ports, second, base.revision_id)
    await drain(world)
    assert (await search(world.ports, OWNER, query="thermometer", limit=5)).results == ()
    (hit,) = (await search(world.ports, OWNER, query="barometer", limit=5)).results
    assert hit.revision_id == base.revision_id


async def test_repeating_a_restore_succeeds_and_changes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    first = await restore(world.ports, second, base.revision_id)
    await retag(world.ports, base, add=["t"])
    before = await keys(world)
    again = await restore(world.ports, second, base.revision_id)
    assert again.replayed
    assert (again.revision_id, again.previous_revision_id) == (first.revision_id, first.previous_revision_id)
    assert await keys(world) == before


async def test_restoring_the_current_revision_is_a_success_without_a_write() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    before = await keys(world)
    assert (await restore(world.ports, base, base.revision_id)).replayed
    assert await keys(world) == before


async def test_the_same_step_can_be_taken_again_after_a_step_back() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    for _ in range(2):
        assert not (await restore(world.ports, second, base.revision_id)).replayed
        assert await texts(world, base.conversation_id) == ["one"]
        assert not (await restore(world.ports, base, second.revision_id)).replayed
        assert await texts(world, base.conversation_id) == ["one", "two"]


async def test_another_way_to_the_same_revision_is_no_repetition() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    third = await append(world.ports, second, "three")
    await restore(world.ports, third, base.revision_id)
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT) as caught:
        await restore(world.ports, second, base.revision_id)
    assert caught.value.details["current_revision_id"] == base.revision_id


async def test_a_stale_base_is_a_conflict_and_writes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    third = await append(world.ports, second, "three")
    before = await keys(world)
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT) as caught:
        await restore(world.ports, second, base.revision_id)
    assert caught.value.details["current_revision_id"] == third.revision_id
    assert await keys(world) == before


async def test_a_repeated_key_is_answered_after_others_went_on() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    first = await restore(world.ports, second, base.revision_id, idempotency_key="k")
    await append(world.ports, first, "other")
    again = await restore(world.ports, second, base.revision_id, idempotency_key="k")
    assert again.replayed
    assert (again.revision_id, again.previous_revision_id, again.message_count) == (
        base.revision_id,
        second.revision_id,
        1,
    )
    assert await texts(world, base.conversation_id) == ["one", "other"]


async def test_an_append_after_a_restore_continues_the_restored_transcript() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    restored = await restore(world.ports, second, base.revision_id)
    await append(world.ports, restored, "instead")
    assert await texts(world, base.conversation_id) == ["one", "instead"]


async def test_a_rebuild_gives_the_same_rows() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await append(world.ports, base, "two")
    await restore(world.ports, second, base.revision_id, idempotency_key="k")
    live = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await digest(rebuilt.ports.catalog) == live


async def test_a_revision_whose_bodies_are_lost_is_not_restored() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    second = await replace(world.ports, base, "two")
    (ref,) = (
        await load.manifest(
            world.ports.objects, f"canonical/conversations/{base.conversation_id}/revisions/{base.revision_id}.json"
        )
    ).manifest.segments
    await world.ports.objects.delete([f"canonical/conversations/{base.conversation_id}/segments/{ref.sha256}.jsonl"])
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.CANONICAL_STORAGE) as caught:
        await restore(world.ports, second, base.revision_id)
    assert ObjectNotFound.__name__ in caught.value.message
    assert await texts(world, base.conversation_id) == ["two"]


# ------------------------------------------------------------------ the tool


async def test_the_receipt_verifies_the_whole_revision() -> None:
    world = await memory_world()
    base = await store(world.ports, *[f"message {index}" for index in range(45)])
    second = await append(world.ports, base, "two")
    receipt = await (await client(world.ports)).answer(
        "memory_restore_revision",
        conversation_id=base.conversation_id,
        revision_id=base.revision_id,
        base_revision_id=second.revision_id,
        verify=True,
        idempotency_key="k" * limits.MAX_IDEMPOTENCY_KEY_CHARS,
    )
    assert (receipt["revision_id"], receipt["previous_revision_id"]) == (base.revision_id, second.revision_id)
    verification = receipt["verification"]
    assert (verification["status"], verification["checked_messages"]) == ("passed", 45)
    readback = verification["readback"]
    assert [message["text"] for message in readback["messages"]] == [f"message {index}" for index in range(45)]


async def test_a_readback_that_does_not_fit_becomes_requests() -> None:
    world = await memory_world()
    base = await store(world.ports, *["x" * 3000] * 45)
    second = await append(world.ports, base, "two")
    receipt = await (await client(world.ports)).answer(
        "memory_restore_revision",
        conversation_id=base.conversation_id,
        revision_id=base.revision_id,
        base_revision_id=second.revision_id,
        verify=True,
    )
    assert receipt["omitted"] == ["verification.readback"]
    assert [request["offset"] for request in receipt["readback_requests"]] == [0, 20, 40]
    assert receipt["used_serialized_bytes"] <= limits.MAX_RECEIPT_BYTES


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"revision_id": None}, "revision_id"),
        ({"revision_id": "0" * 65}, "revision_id"),
        ({"base_revision_id": A_UUID}, "base_revision_id"),
        ({"conversation_id": ""}, "conversation_id"),
        ({"idempotency_key": ""}, "idempotency_key"),
        ({"idempotency_key": "k" * (limits.MAX_IDEMPOTENCY_KEY_CHARS + 1)}, "idempotency_key"),
        ({"verify": 1}, "verify"),
        ({"tags": []}, "tags"),
    ],
)
async def test_bad_arguments_are_refused_before_storage_is_touched(arguments: dict[str, Any], field: str) -> None:
    valid = {"conversation_id": A_UUID, "revision_id": A_REVISION, "base_revision_id": A_REVISION}
    error = await (await client()).refused("memory_restore_revision", **{**valid, **arguments})
    assert error["code"] == "VALIDATION"
    assert error["field"] == field


async def test_missing_deleted_and_foreign_are_one_answer() -> None:
    world = await memory_world()
    kept, gone = await store(world.ports, "kept"), await store(world.ports, "gone")
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    await owner.answer("memory_delete_conversations", conversation_ids=[gone.conversation_id])
    answers = [
        await at.refused(
            "memory_restore_revision",
            conversation_id=which,
            base_revision_id=kept.revision_id,
            revision_id=kept.revision_id,
        )
        for at, which in ((owner, A_UUID), (owner, gone.conversation_id), (stranger, kept.conversation_id))
    ]
    assert answers == [{"code": "NOT_FOUND", "message": "conversation not found"}] * 3


async def test_a_revision_of_another_conversation_looks_like_one_that_is_not_there() -> None:
    world = await memory_world()
    first, second = await store(world.ports, "one"), await store(world.ports, "two")
    at = await client(world.ports)
    answers = [
        await at.refused(
            "memory_restore_revision",
            conversation_id=first.conversation_id,
            base_revision_id=first.revision_id,
            revision_id=revision,
        )
        for revision in (second.revision_id, A_REVISION)
    ]
    assert answers == [{"code": "NOT_FOUND", "message": "revision not found"}] * 2
