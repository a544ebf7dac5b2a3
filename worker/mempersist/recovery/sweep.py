"""The sweeper: settles writes that were interrupted and re-sends work that no message reached.

Run once a minute. Everything it does is safe to do twice, and each run is bounded.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass

from mempersist import jobs, logs, timestamps
from mempersist.archive import accounts
from mempersist.archive.commit import refold
from mempersist.catalog import intents
from mempersist.imports import restart
from mempersist.limits import INTENT_GRACE_SECONDS
from mempersist.ports import Ports, QueueName, QueueUnavailable

_MAX_INTENTS = 20
_MAX_JOBS = 100


@dataclass(frozen=True, slots=True)
class SweepReport:
    """``intents`` settled, ``jobs`` re-sent, ``imports`` started again."""

    intents: int
    jobs: int
    imports: int


_NOTHING = SweepReport(0, 0, 0)


async def sweep(ports: Ports, *, grace_seconds: int = INTENT_GRACE_SECONDS) -> SweepReport:
    """One bounded round. ``grace_seconds`` is how long a write or a message may be under way undisturbed; a host that
    knows that nothing else runs, as at its start, may pass 0.

    :raises Exception: what went wrong first, after everything else was done; the next round goes on.
    """
    before = timestamps.from_ms(ports.clock.now_ms() - grace_seconds * 1000)
    trouble: list[Exception] = []
    await _stage(jobs.park_cut_off(ports), trouble)
    restarted = await _stage(restart.restart_interrupted(ports, before), trouble)
    settled = await _stage(_intents(ports, before, trouble), trouble)
    report = SweepReport(settled, await _stage(_jobs(ports, before), trouble), restarted)
    if report != _NOTHING:
        logs.info("sweep", intents=report.intents, jobs=report.jobs, imports=report.imports)
    if trouble:
        raise trouble[0]
    return report


async def _stage(work: Awaitable[int], trouble: list[Exception]) -> int:
    """One stage of a round: what goes wrong in it is kept for the end, and holds up no other."""
    try:
        return await work
    except Exception as error:
        trouble.append(error)
        return 0


async def _intents(ports: Ports, before: str, trouble: list[Exception]) -> int:
    settled = 0
    for intent in await intents.begun_before(ports.catalog, before, _MAX_INTENTS):
        settled += await _stage(_settle(ports, intent), trouble)
    return settled


async def _settle(ports: Ports, intent: intents.Intent) -> int:
    await accounts.catch_up(ports, intent.account)
    for conversation_id in intent.conversation_ids:
        await refold(ports, intent.account, conversation_id, force=True)
    await ports.catalog.batch([intents.settled(intent.intent_id)])
    return 1


async def _jobs(ports: Ports, before: str) -> int:
    """Jobs that are due and were not touched since ``before``; touching them spaces out the re-sending."""
    now = timestamps.from_ms(ports.clock.now_ms())
    rows = await ports.catalog.query(
        "UPDATE jobs SET updated_at = ?1 WHERE job_id IN (SELECT job_id FROM jobs WHERE updated_at <= ?2 AND"
        " ((status = 'pending' AND available_at <= ?1) OR (status = 'running' AND lease_expires_at <= ?1))"
        f" ORDER BY updated_at LIMIT {_MAX_JOBS}) RETURNING job_id, kind",
        (now, before),
    )
    queues: tuple[QueueName, ...] = ("import", "index")
    try:
        for queue in queues:
            bodies = [{"version": 1, "job_id": row["job_id"]} for row in rows if row["kind"] == queue]
            if bodies:
                await ports.queue.send(queue, bodies)
    except QueueUnavailable:
        return 0
    return len(rows)
