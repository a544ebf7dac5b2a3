"""Promises 4 and 6: whenever the process dies, what was acknowledged is there, and the next start goes on."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from mempersist.archive import load, memories
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from mempersist.errors import MempersistError
from mempersist.ports import CatalogError, Ports, StorageError
from tests.rigs.checks import is_whole, started_again
from tests.rigs.faults import Crash, FaultPlan, Moment, wrap
from tests.rigs.worlds import drain, memory_world
from tests.rigs.writes import append, store, user

Act = Callable[[Ports, Written], Awaitable[object]]


async def store_new(ports: Ports, _: Written) -> object:
    return await store(ports, "brand new words", namespace="fresh", tags=["t"], idempotency_key="s")


async def append_more(ports: Ports, base: Written) -> object:
    return await append(ports, base, "appended words", idempotency_key="a")


async def delete(ports: Ports, base: Written) -> object:
    return await delete_conversation(ports, OWNER, base.conversation_id)


async def count_calls(act: Act) -> int:
    world = await memory_world()
    base = await store(world.ports, "first words")
    await drain(world)
    plan = FaultPlan()
    await act(wrap(world.ports, plan), base)
    return len(plan.calls)


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", [store_new, append_more, delete])
async def test_a_crash_at_any_call_leaves_a_whole_archive(act: Act, moment: Moment) -> None:
    for at in range(await count_calls(act)):
        world = await memory_world()
        base = await store(world.ports, "first words")
        await drain(world)
        with pytest.raises(Crash):
            await act(wrap(world.ports, FaultPlan(at=at, moment=moment)), base)
        await started_again(world)
        await is_whole(world)


@pytest.mark.parametrize("act", [store_new, append_more])
async def test_repeating_the_request_after_a_crash_does_it_exactly_once(act: Act) -> None:
    for at in range(await count_calls(act)):
        world = await memory_world()
        base = await store(world.ports, "first words")
        with pytest.raises(Crash):
            await act(wrap(world.ports, FaultPlan(at=at, moment="after")), base)
        written = await act(world.ports, base)
        assert isinstance(written, Written)
        log = await load.head_log(world.ports.objects, written.conversation_id)
        assert [entry.idempotency_key for entry, _ in log].count("s" if act is store_new else "a") == 1
        await started_again(world)
        await is_whole(world)


@pytest.mark.parametrize("act", [store_new, append_more, delete])
async def test_trouble_at_any_call_is_reported_or_repaired_and_never_a_false_success(act: Act) -> None:
    for at in range(await count_calls(act)):
        world = await memory_world()
        base = await store(world.ports, "first words")
        await drain(world)
        plan = FaultPlan(at=at, kind="trouble")
        result: object = None
        with contextlib.suppress(MempersistError, CatalogError, StorageError):
            result = await act(wrap(world.ports, plan), base)
        await started_again(world)
        await is_whole(world)
        if isinstance(result, Written):
            text = "brand new words" if act is store_new else "appended words"
            assert (await memories.verify_written(world.ports, OWNER, result, user(text))).passed, plan.calls[at]


async def test_a_write_whose_catalog_failed_after_the_commit_is_durable_and_says_so() -> None:
    world = await memory_world()
    base = await store(world.ports, "first words")
    calls = FaultPlan()
    await append(wrap(world.ports, calls), base, "probe")
    at = calls.calls.index("catalog.batch", calls.calls.index("objects.put") + 1)
    world = await memory_world()
    base = await store(world.ports, "first words")
    written = await append(wrap(world.ports, FaultPlan(at=at, kind="trouble")), base, "appended words")
    assert (await memories.verify_written(world.ports, OWNER, written, user("appended words"))).passed


async def test_a_queue_that_refuses_is_not_a_failed_write() -> None:
    world = await memory_world()
    calls = FaultPlan()
    await store(wrap(world.ports, calls), "probe")
    world = await memory_world()
    plan = FaultPlan(at=calls.calls.index("queue.send"), kind="trouble")
    written = await store(wrap(world.ports, plan), "kept words")
    assert (written.index_queued, written.index_error is None) == (False, False)
    await started_again(world)
    await is_whole(world)
