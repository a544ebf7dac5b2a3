"""The sweeper: settles writes that were interrupted and re-sends work that no message reached.

Run once a minute. Everything it does is safe to do twice, and each run is bounded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from mempersist import timestamps
from mempersist.archive.commit import refold
from mempersist.catalog import bulk
from mempersist.imports import restart
from mempersist.limits import INTENT_GRACE_SECONDS
from mempersist.ports import AccountId, Ports, QueueName, QueueUnavailable

_MAX_INTENTS = 20
_MAX_JOBS = 100


@dataclass(frozen=True, slots=True)
class SweepReport:
    """``intents`` settled, ``jobs`` re-sent, ``imports`` started again."""

    intents: int
    jobs: int
    imports: int


async def sweep(ports: Ports, *, grace_seconds: int = INTENT_GRACE_SECONDS) -> SweepReport:
    """One bounded round. ``grace_seconds`` is how long a write or a message may be under way undisturbed; a host that
    knows that nothing else runs, as at its start, may pass 0.

    :raises CatalogError: / :raises StorageError: when a store is out of reach; the next round goes on.
    """
    before = timestamps.from_ms(ports.clock.now_ms() - grace_seconds * 1000)
    restarted = await restart.restart_interrupted(ports, before)
    return SweepReport(await _intents(ports, before), await _jobs(ports, before), restarted)


async def _intents(ports: Ports, before: str) -> int:
    rows = await ports.catalog.query(
        f"SELECT intent_id, account_id, conversation_ids_json FROM intents WHERE created_at <= ?"
        f" ORDER BY created_at LIMIT {_MAX_INTENTS}",
        (before,),
    )
    for row in rows:
        for conversation_id in json.loads(row["conversation_ids_json"]):
            await refold(ports, AccountId(row["account_id"]), conversation_id, force=True)
        await ports.catalog.batch(bulk.delete("intents", "intent_id", [row["intent_id"]]))
    return len(rows)


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
