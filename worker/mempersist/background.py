"""What a host runs for each delivery of a queue."""

from __future__ import annotations

from collections.abc import Sequence

from mempersist import jobs
from mempersist.archive.codec import UnreadableObject
from mempersist.archive.compaction import compact
from mempersist.archive.deletion import purge_if_deleted
from mempersist.imports.turn import run_import_jobs
from mempersist.index.turn import run_index_jobs
from mempersist.jobs import Decision, Delivery, Job, Outcome
from mempersist.ports import CatalogError, ObjectNotFound, Ports, QueueName, StorageError


async def deliver(ports: Ports, queue: QueueName, deliveries: Sequence[Delivery]) -> list[Decision]:
    """Do the work that ``deliveries`` point to and say what the queue shall do with each of them."""
    return await jobs.handle(ports, queue, deliveries, _index_turn if queue == "index" else run_import_jobs)


async def _index_turn(ports: Ports, claimed: Sequence[Job]) -> Sequence[Outcome]:
    for job in claimed:
        await purge_if_deleted(ports, job)
    outcomes = await run_index_jobs(ports, claimed)
    for job, outcome in zip(claimed, outcomes, strict=True):
        if outcome.kind == "done":
            try:
                await compact(ports, job.account, job.subject_id)
            except (CatalogError, StorageError, ObjectNotFound, UnreadableObject):
                continue  # compaction is housekeeping: the next index turn of the conversation tries again
    return outcomes
