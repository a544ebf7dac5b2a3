"""Killed at any call that an import makes, before it or after it: the next start ends it as if nothing had been."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from mempersist import background, jobs, limits
from mempersist.archive import accounts, keys
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.imports import runs, uploads
from mempersist.imports.phases import finishing
from mempersist.imports.records import decode_receipt, receipt_json
from mempersist.imports.status import import_receipt
from mempersist.imports.turn import run_import_jobs
from mempersist.ports import CatalogError, Ports, QueueUnavailable
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.recovery.sweep import sweep
from tests.rigs import exports
from tests.rigs.faults import Crash, FaultPlan, Moment, wrap
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog

Facts = dict[str, Any]


async def accepted_world() -> tuple[World, str]:
    world = await memory_world()
    data = exports.ugly_zip()
    accepted = await uploads.direct(world.ports, OWNER, filename="export.zip", body=data, size=len(data))
    return world, accepted.import_id


async def facts(world: World, import_id: str) -> Facts:
    """All that an import leaves behind, but for the times at which it did."""
    found: Facts = {}
    for table, columns in {
        "conversations": "conversation_id, title, namespace, head_seq, revision_id, node_count, message_count",
        "revisions": "conversation_id, revision_id, first_seq, import_id, nodes_digest",
        "messages": "conversation_id, source_node_id, ordinal, sequence, segment_sha256, byte_offset",
        "assets": "asset_id, sha256, media_type, import_id",
        "imports": "import_id, status, counts_json",
        "jobs": "job_id",
        "intents": "intent_id",
        "import_runs": "import_id",
        "import_findings": "import_id",
        "import_items": "import_id",
    }.items():
        rows = await world.ports.catalog.query(f"SELECT {columns} FROM {table}")
        found[table] = sorted(tuple(row.values()) for row in rows)
    receipt = receipt_json(await import_receipt(world.ports, OWNER, import_id))
    found["receipt"] = {**receipt, "completedAt": ""}
    found["objects"] = [
        info.key for info in (await world.ports.objects.list("")).objects if not info.key.endswith("receipt.json")
    ]
    return found


async def next_start(world: World) -> None:
    """What a host does when it comes up again, once the leases of the dead one have run out."""
    world.clock.advance((limits.LEASE_SECONDS + limits.INTENT_GRACE_SECONDS + 1) * 1000)
    await sweep(world.ports)
    await drain(world)


async def run_imports(world: World, ports: Ports) -> None:
    """Deliver import messages through ``ports`` until there are none. What is to be indexed waits."""
    while deliveries := await world.queue.receive("import", limit=1):
        await world.queue.settle(await background.deliver(ports, "import", deliveries))


async def broken(plan: FaultPlan) -> tuple[World, str]:
    """A world whose import met ``plan``. What a delivery raises leaves its message to come again."""
    world, import_id = await accepted_world()
    with contextlib.suppress(Crash, CatalogError, QueueUnavailable):
        await run_imports(world, wrap(world.ports, plan))
    return world, import_id


async def clean() -> Facts:
    world, import_id = await accepted_world()
    await drain(world)
    return await facts(world, import_id)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_import_ends_the_same_wherever_it_was_killed(moment: Moment) -> None:
    expected = await clean()
    at, killed = 0, True
    while killed:
        plan = FaultPlan(at, moment)
        world, import_id = await broken(plan)
        killed = plan.dead
        await next_start(world)
        assert await facts(world, import_id) == expected, f"killed {moment} call {at}: {plan.calls[-1]}"
        at += 1
    assert at > 100


async def test_an_import_ends_the_same_whichever_call_reported_trouble() -> None:
    expected = await clean()
    at, met = 0, True
    while met:
        plan = FaultPlan(at, kind="trouble")
        world, import_id = await broken(plan)
        met = len(plan.calls) > at
        await next_start(world)
        assert await facts(world, import_id) == expected, f"trouble at call {at}: {plan.calls[at:][:1]}"
        at += 1
    assert at > 100


async def test_after_a_crash_a_rebuild_gives_the_rows_that_are_there() -> None:
    for at in range(5, 100, 7):
        world, _ = await broken(FaultPlan(at, "after"))
        await next_start(world)
        rebuilt = await with_empty_catalog(world)
        await rebuild_catalog(rebuilt.ports)
        live = await digest(world.ports.catalog)
        assert (await digest(rebuilt.ports.catalog)).total == live.total, f"killed after call {at}"


async def test_a_catalog_lost_in_the_middle_of_an_import_is_rebuilt_and_the_import_goes_on() -> None:
    expected = await clean()
    for at in range(3, 100, 7):
        world, import_id = await broken(FaultPlan(at, "after"))
        world = await with_empty_catalog(world)
        await rebuild_catalog(world.ports)
        await accounts.ensure_owner(world.ports)
        await next_start(world)
        found = await facts(world, import_id)
        assert found["conversations"] == expected["conversations"], f"lost after call {at}"
        assert found["imports"] == expected["imports"], f"lost after call {at}"


async def test_messages_delivered_twice_and_long_after_the_end_change_nothing() -> None:
    expected = await clean()
    world, import_id = await accepted_world()
    late = []
    while received := await world.queue.receive("import", limit=1, lease_seconds=0):
        (message,) = received
        late.append(dict(message.body))
        for _ in range(2):
            decisions = await background.deliver(world.ports, "import", [message])
        await world.queue.settle(decisions)
    await world.ports.queue.send("import", late)
    await drain(world)
    assert await facts(world, import_id) == expected


async def test_two_workers_on_the_same_checkpoint_count_once() -> None:
    expected = await clean()
    world, import_id = await accepted_world()
    for _ in range(100):
        first = await jobs.claim(world.ports, runs.job_id(import_id), "first")
        if first is None:
            break
        world.clock.advance((limits.LEASE_SECONDS + 1) * 1000)
        second = await jobs.claim(world.ports, runs.job_id(import_id), "second")
        assert second is not None
        await asyncio.gather(run_import_jobs(world.ports, [first]), run_import_jobs(world.ports, [second]))
    await next_start(world)
    found = await facts(world, import_id)
    assert found["receipt"]["counts"] == expected["receipt"]["counts"]
    assert found["conversations"] == expected["conversations"]


async def test_of_two_finishing_turns_the_first_receipt_stands() -> None:
    world, import_id = await accepted_world()
    run = await runs.load(world.ports, OWNER, import_id)
    while run is not None and run.state.phase != "finish":
        await world.queue.settle(
            await background.deliver(world.ports, "import", await world.queue.receive("import", limit=1))
        )
        run = await runs.load(world.ports, OWNER, import_id)
    key = keys.import_receipt(import_id)
    job = await jobs.claim(world.ports, runs.job_id(import_id), "rival")
    assert job is not None
    assert run is not None

    async def rival(job: jobs.Job = job, run: runs.Run = run) -> None:
        """What another worker does between this one's look for a receipt and its own put."""
        world.clock.advance(5000)
        await finishing.step(world.ports, job, run)

    ports = replace(world.ports, objects=Interrupted(world.ports.objects, key, rival))
    await finishing.step(ports, job, run)
    receipt = decode_receipt(await world.ports.objects.get(key))
    rows = await world.ports.catalog.query("SELECT completed_at FROM imports")
    assert [row["completed_at"] for row in rows] == [receipt.completed_at]


class Interrupted:
    """An object store where something happens just before the put of ``key``."""

    def __init__(self, inner: Any, key: str, event: Callable[[], Awaitable[None]]) -> None:
        self._inner, self._key, self._event = inner, key, event

    async def put(self, key: str, *args: Any, **options: Any) -> Any:
        if key == self._key:
            await self._event()
        return await self._inner.put(key, *args, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_an_upload_killed_anywhere_is_not_acknowledged_or_is_imported(moment: Moment) -> None:
    data = exports.as_json([exports.conversation("a", "one")])
    at, acknowledged = 0, False
    while not acknowledged:
        world = await memory_world()
        ports = wrap(world.ports, FaultPlan(at, moment))
        with contextlib.suppress(Crash):
            await uploads.direct(ports, OWNER, filename="c.json", body=data, size=len(data))
            acknowledged = True
        await next_start(world)
        rows = await world.ports.catalog.query("SELECT import_id, status FROM imports")
        kept = await world.ports.objects.list(keys.IMPORTS)
        recorded = [info.key for info in kept.objects if info.key.endswith("/import.json")]
        assert [row["status"] for row in rows] == ["complete"] * len(recorded), f"killed {moment} call {at}"
        assert len(recorded) == 1 or not acknowledged
        at += 1
    assert at > 4


async def test_a_message_that_the_queue_did_not_take_is_sent_by_the_sweeper() -> None:
    world = await memory_world()
    data = exports.as_json([exports.conversation("a", "one")])
    count = FaultPlan()
    await uploads.direct(wrap(world.ports, count), OWNER, filename="c.json", body=data, size=len(data))
    world = await memory_world()
    ports = wrap(world.ports, FaultPlan(count.calls.index("queue.send"), kind="trouble"))
    accepted = await uploads.direct(ports, OWNER, filename="c.json", body=data, size=len(data))
    assert not accepted.queued
    await next_start(world)
    assert (await import_receipt(world.ports, OWNER, accepted.import_id)).status == "complete"
