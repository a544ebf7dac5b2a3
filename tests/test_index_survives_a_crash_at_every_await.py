"""Promises 4 and 6 for the index: whenever a turn dies or a port fails, the next turns end what was begun."""

from __future__ import annotations

import contextlib

import pytest

from mempersist.ports import CatalogError, QueueUnavailable
from mempersist.recovery.sweep import sweep
from tests.rigs.faults import Crash, FaultPlan, Moment, wrap
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, store


async def waiting() -> World:
    """A conversation whose newest head waits for the index, with chunks to keep, to add and to drop."""
    world = await memory_world()
    written = await store(world.ports, "first short words", "x" * 400)
    await drain(world)
    await append(world.ports, written, "more short words", "y" * 400)
    return world


async def chunks(world: World) -> list[tuple[str, int, str]]:
    rows = await world.ports.catalog.query("SELECT chunk_id, embedded, body FROM chunks ORDER BY chunk_id")
    return [(row["chunk_id"], row["embedded"], row["body"]) for row in rows]


async def is_as_after_a_clean_run(world: World, expected: list[tuple[str, int, str]]) -> None:
    world.clock.advance(10_000_000)
    await sweep(world.ports, grace_seconds=0)
    await drain(world)
    assert await chunks(world) == expected
    assert (await world.ports.vectors.describe()).count == len(expected)
    (state,) = await world.ports.catalog.query("SELECT status, chunk_count FROM index_state")
    assert (state["status"], state["chunk_count"]) == ("indexed", len(expected))
    assert await world.ports.catalog.query("SELECT 1 FROM jobs") == ()


async def clean_run() -> tuple[list[tuple[str, int, str]], int]:
    world, plan = await waiting(), FaultPlan()
    await drain(world, ports=wrap(world.ports, plan))
    return await chunks(world), len(plan.calls)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_crash_at_any_call_leaves_nothing_that_a_later_turn_does_not_mend(moment: Moment) -> None:
    expected, calls = await clean_run()
    assert len(expected) >= 4
    for at in range(calls):
        world = await waiting()
        with pytest.raises(Crash):
            await drain(world, ports=wrap(world.ports, FaultPlan(at=at, moment=moment)))
        await is_as_after_a_clean_run(world, expected)


async def test_trouble_at_any_call_is_tried_again() -> None:
    expected, calls = await clean_run()
    for at in range(calls):
        world = await waiting()
        plan = FaultPlan(at=at, kind="trouble")
        with contextlib.suppress(CatalogError, QueueUnavailable):  # the delivery itself may be what failed
            await drain(world, ports=wrap(world.ports, plan))
        await is_as_after_a_clean_run(world, expected)
