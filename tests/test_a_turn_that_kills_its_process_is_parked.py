"""A job whose turn never comes back, because it takes the process with it, is given up after eight tries, and said."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence

import pytest

from mempersist import jobs
from mempersist.jobs import Delivery, Job, Outcome
from mempersist.limits import LEASE_SECONDS, MAX_DELIVERIES
from mempersist.ports import Ports
from mempersist.recovery.sweep import sweep
from tests.rigs.faults import Crash
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import store


async def dies(_: Ports, __: Sequence[Job]) -> Sequence[Outcome]:
    raise Crash


async def deliver(world: World, job_id: str) -> bool:
    """Deliver the job's message once; whether its turn was begun, which kills the process."""
    message = Delivery("m", {"version": 1, "job_id": job_id})
    try:
        await jobs.handle(world.ports, "index", [message], dies)
    except Crash:
        return True
    return False


async def the_job(world: World) -> dict[str, object]:
    (row,) = await world.ports.catalog.query("SELECT job_id, status, attempts, error_code, error_message FROM jobs")
    return dict(row)


async def test_it_is_tried_eight_times_and_then_parked_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    world = await memory_world()
    await store(world.ports, "words that no process survives")
    job_id = str((await the_job(world))["job_id"])
    begun = 0
    for _ in range(3 * MAX_DELIVERIES):
        begun += await deliver(world, job_id)
        assert not await deliver(world, job_id), "the lease of the dead turn still holds"
        world.clock.advance((LEASE_SECONDS + 1) * 1000)
    assert begun == MAX_DELIVERIES
    with caplog.at_level(logging.ERROR, logger="mempersist"):
        await sweep(world.ports)
    parked = await the_job(world)
    assert (parked["status"], parked["error_code"]) == ("failed", "RETRYABLE_INFRASTRUCTURE")
    assert "cut off 8 times" in str(parked["error_message"])
    lines = [json.loads(record.getMessage()) for record in caplog.records]
    assert [(line["event"], line["job_id"]) for line in lines] == [("job_parked", job_id)]
    assert not await deliver(world, job_id)


async def test_a_turn_that_made_progress_begins_its_count_anew() -> None:
    world = await memory_world()
    await store(world.ports, "words")
    job_id = str((await the_job(world))["job_id"])
    for _ in range(MAX_DELIVERIES - 1):
        await deliver(world, job_id)
        world.clock.advance((LEASE_SECONDS + 1) * 1000)
    job = await jobs.claim(world.ports, job_id, "owner")
    assert job is not None
    await world.ports.catalog.batch([jobs.released(job, "2026-01-01T00:00:00.000Z")])
    assert (await the_job(world))["attempts"] == 0
    await sweep(world.ports)
    await drain(world)
    assert await world.ports.catalog.query("SELECT 1 FROM jobs") == ()


async def test_a_last_try_that_still_runs_is_left_alone() -> None:
    world = await memory_world()
    await store(world.ports, "words")
    job_id = str((await the_job(world))["job_id"])
    for _ in range(MAX_DELIVERIES):
        await deliver(world, job_id)
        world.clock.advance((LEASE_SECONDS + 1) * 1000)
    await world.ports.catalog.query("UPDATE jobs SET lease_expires_at = '2099-01-01T00:00:00.000Z'")
    await sweep(world.ports)
    assert (await the_job(world))["status"] == "running"
