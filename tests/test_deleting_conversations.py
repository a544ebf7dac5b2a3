"""Deleting many conversations in one call: each hidden at once and purged soon, trouble told one by one."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive import codec, keys, load
from mempersist.archive.deletion import Deletion, delete_conversations
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.ports import CatalogError, PreconditionFailed, StorageError
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.recovery.sweep import sweep
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.faults import FaultPlan, wrap
from tests.rigs.mcp import client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, bring, store

A_UUID = "00000000-0000-4000-8000-000000000000"


async def delete(world: World, *conversation_ids: str, key: str | None = None) -> Deletion:
    return await delete_conversations(world.ports, OWNER, conversation_ids, idempotency_key=key)


async def live(world: World) -> set[str]:
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE deleted_at IS NULL")
    return {row["conversation_id"] for row in rows}


async def test_each_is_hidden_at_once_and_only_its_tombstone_stays() -> None:
    world = await memory_world()
    written = [await store(world.ports, f"word{index} of it", title="Secret") for index in range(3)]
    await append(world.ports, written[0], "more of it")
    await drain(world)
    gone = [item.conversation_id for item in written[:2]]
    done = await delete(world, *gone, A_UUID)
    assert (done.deleted, done.missing, done.failed) == (tuple(gone), (A_UUID,), ())
    found = await search(world.ports, OWNER, query="of it", limit=10)
    assert {hit.conversation_id for hit in found.results} == {written[2].conversation_id}
    await drain(world)
    for conversation_id in gone:
        (only,) = (await world.ports.objects.list(keys.conversation(conversation_id))).objects
        body = await world.ports.objects.get(only.key)
        assert codec.decode_head(body).deleted
        assert b"secret" not in body.lower()
    assert (await world.ports.vectors.describe()).count == 1


async def test_uploaded_exports_stay_and_may_bring_the_conversation_back() -> None:
    world = await memory_world()
    (outcome,) = await bring(world.ports, make.chain("a", "one"))
    await drain(world)
    await delete(world, outcome.conversation_id)
    await drain(world)
    assert await live(world) == set()
    (again,) = await bring(world.ports, make.chain("a", "one"), import_id="again")
    assert (again.conversation_id, again.status) == (outcome.conversation_id, "created")
    assert await live(world) == {outcome.conversation_id}


async def test_a_second_call_reports_them_missing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    await delete(world, base.conversation_id)
    done = await delete(world, base.conversation_id)
    assert (done.deleted, done.missing) == ((), (base.conversation_id,))


async def test_a_repeated_key_answers_as_the_first_call_did() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    first = await delete(world, A_UUID, base.conversation_id, key="k")
    assert await delete(world, A_UUID, base.conversation_id, key="k") == first
    await drain(world)
    assert await delete(world, A_UUID, base.conversation_id, key="k") == first
    for wanted in ([base.conversation_id], [base.conversation_id, A_UUID]):
        with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT):
            await delete(world, *wanted, key="k")


async def test_a_repeated_key_does_not_delete_what_was_stored_since() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", idempotency_key="s")
    await delete(world, base.conversation_id, key="k")
    await drain(world)
    world.clock.advance(60_000)
    anew = await store(world.ports, "one", idempotency_key="s")
    assert anew.conversation_id == base.conversation_id
    assert (await delete(world, base.conversation_id, key="k")).deleted == (base.conversation_id,)
    assert await live(world) == {base.conversation_id}


async def test_a_hundred_are_deleted_in_a_handful_of_catalog_calls() -> None:
    world = await memory_world()
    ids = [(await store(world.ports, f"text {index}")).conversation_id for index in range(100)]
    plan = FaultPlan()
    done = await delete_conversations(wrap(world.ports, plan), OWNER, ids)
    assert done.deleted == tuple(ids)
    assert sum(call.startswith("catalog.") for call in plan.calls) == 5
    assert await live(world) == set()


async def test_one_that_cannot_be_deleted_leaves_the_others_deleted_and_the_next_call_goes_on() -> None:
    world = await memory_world()
    ids = [(await store(world.ports, f"text {index}")).conversation_id for index in range(5)]
    put = world.ports.objects.put

    async def failing(key: str, *args: Any, **kwargs: Any) -> Any:
        if ids[2] in key:
            raise StorageError("down")
        return await put(key, *args, **kwargs)

    world.ports.objects.put = failing  # type: ignore[method-assign]
    done = await delete(world, *ids, key="k")
    assert done.deleted == (ids[0], ids[1], ids[3], ids[4])
    assert [(item.conversation_id, item.stage) for item in done.failed] == [(ids[2], "tombstone")]
    assert await live(world) == {ids[2]}
    world.ports.objects.put = put  # type: ignore[method-assign]
    assert (await delete(world, *ids, key="k")).deleted == tuple(ids)
    assert await live(world) == set()


async def test_a_catalog_that_goes_away_behind_the_tombstone_is_told_and_follows() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    batch, query = world.ports.catalog.batch, world.ports.catalog.query
    put = world.ports.objects.put

    async def broken(*_: Any) -> Any:
        raise CatalogError("down")

    async def put_and_lose_the_catalog(key: str, *args: Any, **kwargs: Any) -> Any:
        world.ports.catalog.batch = broken  # type: ignore[method-assign,assignment]
        world.ports.catalog.query = broken  # type: ignore[method-assign,assignment]
        return await put(key, *args, **kwargs)

    world.ports.objects.put = put_and_lose_the_catalog  # type: ignore[method-assign]
    done = await delete(world, base.conversation_id)
    assert [(item.conversation_id, item.stage) for item in done.failed] == [(base.conversation_id, "catalog")]
    world.ports.catalog.batch, world.ports.catalog.query = batch, query  # type: ignore[method-assign]
    world.ports.objects.put = put  # type: ignore[method-assign]
    world.clock.advance(1_000_000)
    await sweep(world.ports)
    assert await live(world) == set()


async def test_an_entry_that_the_catalog_had_missed_does_not_stop_a_deletion() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    rows = await world.ports.catalog.query("SELECT head_hash FROM conversations")
    second = await append(world.ports, base, "two")
    await world.ports.catalog.query("UPDATE conversations SET head_seq = 0, head_hash = ?", (rows[0]["head_hash"],))
    assert (await delete(world, base.conversation_id)).deleted == (base.conversation_id,)
    log = await load.head_log(world.ports.objects, second.conversation_id)
    assert [entry.operation for entry, _ in log] == ["store", "append", "delete"]


async def test_a_rebuild_gives_the_same_rows() -> None:
    world = await memory_world()
    ids = [(await store(world.ports, f"text {index}", tags=["t"])).conversation_id for index in range(4)]
    await delete(world, *ids[:2], key="k")
    for step in ("hidden", "purged"):
        current = await digest(world.ports.catalog)
        rebuilt = await with_empty_catalog(world)
        await rebuild_catalog(rebuilt.ports)
        assert await digest(rebuilt.ports.catalog) == current, step
        await drain(world)


async def test_a_record_that_another_call_wrote_first_is_the_one_that_counts() -> None:
    world = await memory_world()
    base, other = await store(world.ports, "one"), await store(world.ports, "two")
    wanted = (base.conversation_id, other.conversation_id)
    put = world.ports.objects.put

    async def second_comes_first(key: str, *args: Any, **kwargs: Any) -> Any:
        if key.startswith(keys.REQUESTS):
            world.ports.objects.put = put  # type: ignore[method-assign]
            await delete(world, *wanted, key="k")
            raise PreconditionFailed(key)
        return await put(key, *args, **kwargs)

    world.ports.objects.put = second_comes_first  # type: ignore[method-assign]
    assert (await delete(world, *wanted, key="k")).deleted == wanted


# ------------------------------------------------------------------ the tool


@pytest.mark.parametrize("count", [1, limits.MAX_DELETE_CONVERSATIONS - 1, limits.MAX_DELETE_CONVERSATIONS])
async def test_the_answer_accounts_for_every_id(count: int) -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    ids = [base.conversation_id, *(f"{index:064x}" for index in range(1, count))]
    answer = await (await client(world.ports)).answer("memory_delete_conversations", conversation_ids=ids)
    assert answer == {"requested": count, "deleted": ids[:1], "missing": ids[1:], "failed": []}


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"conversation_ids": []}, "conversation_ids"),
        ({"conversation_ids": None}, "conversation_ids"),
        ({"conversation_ids": [f"{index:064x}" for index in range(101)]}, "conversation_ids"),
        ({"conversation_ids": [A_UUID, A_UUID]}, "conversation_ids[1]"),
        ({"conversation_ids": [A_UUID, "x"]}, "conversation_ids[1]"),
        ({"conversation_ids": [A_UUID, None]}, "conversation_ids[1]"),
        ({"conversation_ids": [A_UUID], "idempotency_key": " "}, "idempotency_key"),
        ({"conversation_ids": [A_UUID], "idempotency_key": "k" * 129}, "idempotency_key"),
        ({"conversation_ids": [A_UUID], "confirm": True}, "confirm"),
    ],
)
async def test_bad_arguments_are_refused_before_storage_is_touched(arguments: dict[str, Any], field: str) -> None:
    world = await memory_world()
    before = (await world.ports.objects.list("")).objects
    error = await (await client(world.ports)).refused("memory_delete_conversations", **arguments)
    assert error["code"] == "VALIDATION"
    assert error["field"] == field
    assert (await world.ports.objects.list("")).objects == before


async def test_another_accounts_conversation_is_missing_and_stays() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    stranger = await client(world.ports, principal(account="stranger"))
    answer = await stranger.answer("memory_delete_conversations", conversation_ids=[base.conversation_id, A_UUID])
    assert answer == {"requested": 2, "deleted": [], "missing": [base.conversation_id, A_UUID], "failed": []}
    assert await live(world) == {base.conversation_id}
