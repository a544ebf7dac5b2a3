"""Background jobs: leases, retries and the hand-over between a queue's deliveries and the turns that do the work.

A job row exists exactly as long as its work is not done. A queue message only says "look at this job": a message that
comes twice, late or never changes nothing, because the row decides and the sweeper re-sends what no message reached.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from mempersist import logs, timestamps
from mempersist.defects import place_of
from mempersist.errors import Code, MempersistError
from mempersist.limits import LEASE_SECONDS, MAX_DELIVERIES
from mempersist.ports import (
    AccountId,
    CatalogError,
    IndexUnavailable,
    ObjectNotFound,
    Ports,
    QueueName,
    QueueUnavailable,
    Statement,
    StorageError,
)

JobKind = QueueName
_BACKOFF_BASE_SECONDS = 2
_BACKOFF_CAP_SECONDS = 600
_CUT_OFF = f"its turn was cut off {MAX_DELIVERIES} times without a word, as by a process that ran out of memory"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message as a queue hands it over."""

    id: str
    body: Mapping[str, Any]
    attempts: int = 1


@dataclass(frozen=True, slots=True)
class Decision:
    """What the queue shall do with a delivery."""

    id: str
    action: Literal["ack", "retry"]
    delay_seconds: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """A claimed job. ``owner`` is the lease's name: statements that end the job act only while it holds."""

    job_id: str
    kind: JobKind
    account: AccountId
    subject_id: str
    attempts: int
    owner: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. ``done``: its batch held :func:`finished`. ``continue``: its batch held :func:`released`.
    ``failed``: nothing was settled and the job shall be tried again, or parked with this code and message."""

    kind: Literal["done", "continue", "failed"]
    code: Code = Code.RETRYABLE_INFRASTRUCTURE
    message: str = ""


_TROUBLE = (CatalogError, StorageError, ObjectNotFound, IndexUnavailable, QueueUnavailable)
DONE = Outcome("done")
CONTINUE = Outcome("continue")
Turn = Callable[[Ports, Sequence[Job]], Awaitable[Sequence[Outcome]]]


def upsert(job_id: str, kind: JobKind, account: AccountId, subject_id: str, now: str) -> Statement:
    """Make the job pending. A turn that runs on it just now loses its lease, so that it cannot end newer work."""
    return Statement(
        "INSERT INTO jobs"
        " (job_id, kind, account_id, subject_id, status, attempts, available_at, created_at, updated_at)"
        " VALUES (?1, ?2, ?3, ?4, 'pending', 0, ?5, ?5, ?5)"
        " ON CONFLICT (job_id) DO UPDATE SET status = 'pending', attempts = 0, lease_owner = NULL,"
        " lease_expires_at = NULL, available_at = ?5, error_code = NULL, error_message = NULL, updated_at = ?5",
        (job_id, kind, account, subject_id, now),
    )


def finished(job: Job) -> Statement:
    """Delete the job, if its lease still holds."""
    return Statement("DELETE FROM jobs WHERE job_id = ? AND lease_owner = ?", (job.job_id, job.owner))


def released(job: Job, now: str) -> Statement:
    """Back to pending with a clean record: the turn made progress and the next one goes on."""
    return Statement(
        "UPDATE jobs SET status = 'pending', attempts = 0, lease_owner = NULL, lease_expires_at = NULL,"
        " available_at = ?1, updated_at = ?1 WHERE job_id = ?2 AND lease_owner = ?3",
        (now, job.job_id, job.owner),
    )


async def claim(ports: Ports, job_id: str, owner: str) -> Job | None:
    """Take the lease, or None: no such job, not due, parked, or another's lease still runs."""
    return (await claim_all(ports, [job_id], owner)).get(job_id)


async def claim_all(ports: Ports, job_ids: Sequence[str], owner: str, kind: JobKind | None = None) -> dict[str, Job]:
    """Take the leases that are to be had of ``job_ids``, of jobs of ``kind`` only if it is given; by job id."""
    now_ms = ports.clock.now_ms()
    rows = await ports.catalog.query(
        "UPDATE jobs SET status = 'running', attempts = attempts + 1, lease_owner = ?1, lease_expires_at = ?2,"
        " updated_at = ?3 WHERE job_id IN (SELECT value FROM json_each(?4)) AND (?5 IS NULL OR kind = ?5)"
        " AND ((status = 'pending' AND available_at <= ?3) OR (status = 'running' AND lease_expires_at <= ?3"
        f" AND attempts < {MAX_DELIVERIES}))"
        " RETURNING job_id, kind, account_id, subject_id, attempts",
        (
            owner,
            timestamps.from_ms(now_ms + LEASE_SECONDS * 1000),
            timestamps.from_ms(now_ms),
            json.dumps(list(job_ids)),
            kind,
        ),
    )
    return {
        row["job_id"]: Job(
            row["job_id"], row["kind"], AccountId(row["account_id"]), row["subject_id"], row["attempts"], owner
        )
        for row in rows
    }


async def park_cut_off(ports: Ports) -> int:
    """Park the jobs whose turns again and again ended without a word, as one that takes more memory than there is does:
    the process dies, and nothing is left to count the failure but the lease. How many there were."""
    now = timestamps.from_ms(ports.clock.now_ms())
    rows = await ports.catalog.query(
        "UPDATE jobs SET status = 'failed', lease_owner = NULL, lease_expires_at = NULL, error_code = ?1,"
        " error_message = ?2, updated_at = ?3 WHERE status = 'running' AND lease_expires_at <= ?3 AND attempts >= ?4"
        " RETURNING job_id, kind, attempts",
        (Code.RETRYABLE_INFRASTRUCTURE.value, _CUT_OFF, now, MAX_DELIVERIES),
    )
    for row in rows:
        logs.error("job_parked", job_id=row["job_id"], kind=row["kind"], attempts=row["attempts"], code="CUT_OFF")
    return len(rows)


async def renew(ports: Ports, job: Job) -> bool:
    """Extend the lease; False when it was lost, and the turn should stop."""
    now_ms = ports.clock.now_ms()
    rows = await ports.catalog.query(
        "UPDATE jobs SET lease_expires_at = ?1, updated_at = ?2 WHERE job_id = ?3 AND lease_owner = ?4"
        " RETURNING job_id",
        (timestamps.from_ms(now_ms + LEASE_SECONDS * 1000), timestamps.from_ms(now_ms), job.job_id, job.owner),
    )
    return bool(rows)


def backoff_seconds(attempts: int, jitter: float) -> int:
    """Wait before try ``attempts + 1``: doubling from two seconds, capped, spread by ``jitter`` in 0..1."""
    base = min(_BACKOFF_CAP_SECONDS, _BACKOFF_BASE_SECONDS << max(0, attempts - 1))
    return max(1, round(base * (0.5 + jitter / 2)))


async def failed(ports: Ports, job: Job, outcome: Outcome, delivery_id: str) -> Decision:
    """Put the job back with a backoff, or park it as ``failed`` after too many tries or an error no retry can mend."""
    hopeless = outcome.code in {Code.PERMANENT_PARSER, Code.VALIDATION, Code.NOT_FOUND}
    parked = hopeless or job.attempts >= MAX_DELIVERIES
    if parked:
        logs.error("job_parked", job_id=job.job_id, kind=job.kind, attempts=job.attempts, code=outcome.code.value)
    now_ms = ports.clock.now_ms()
    # The spread only has to differ between jobs, not between runs.
    delay = 0 if parked else backoff_seconds(job.attempts, int(job.job_id[:4], 16) / 0xFFFF)
    await ports.catalog.query(
        "UPDATE jobs SET status = ?1, lease_owner = NULL, lease_expires_at = NULL, available_at = ?2,"
        " error_code = ?3, error_message = ?4, updated_at = ?5 WHERE job_id = ?6 AND lease_owner = ?7",
        (
            "failed" if parked else "pending",
            timestamps.from_ms(now_ms + delay * 1000),
            outcome.code.value,
            outcome.message[:500],
            timestamps.from_ms(now_ms),
            job.job_id,
            job.owner,
        ),
    )
    return Decision(delivery_id, "ack") if parked else Decision(delivery_id, "retry", delay)


async def handle(ports: Ports, queue: QueueName, deliveries: Sequence[Delivery], turn: Turn) -> list[Decision]:
    """Run ``turn`` over the jobs that ``deliveries`` name and say what becomes of each message.

    ``turn`` gets only jobs whose lease this call holds. Trouble of any kind ends as a retry; where a turn of several
    jobs meets a defect, each is run alone, so that the one that has it does not hold up the others.

    :raises CatalogError: where the end of a job that failed could not be written down; its lease then runs out.
    """
    owner = ports.ids.token(16)
    named: dict[str, Delivery] = {}
    decisions: list[Decision] = []
    for delivery in deliveries:
        job_id = delivery.body.get("job_id")
        if delivery.body.get("version") != 1 or not isinstance(job_id, str) or job_id in named:
            decisions.append(Decision(delivery.id, "ack"))
        else:
            named[job_id] = delivery
    started = ports.clock.now_ms()
    try:
        jobs = await claim_all(ports, list(named), owner, queue) if named else {}
    except _TROUBLE as error:
        logs.error("turn_not_begun", queue=queue, messages=len(deliveries), defect=place_of(error))
        return decisions + [again(delivery) for delivery in named.values()]
    decisions += [Decision(delivery.id, "ack") for job_id, delivery in named.items() if job_id not in jobs]
    claimed = [(delivery, jobs[job_id]) for job_id, delivery in named.items() if job_id in jobs]
    if not claimed:
        return decisions
    outcomes = await _run(ports, [job for _, job in claimed], turn)
    logs.info(
        "turn",
        queue=queue,
        messages=len(deliveries),
        jobs=[job.job_id for _, job in claimed],
        outcomes=[outcome.code.value if outcome.kind == "failed" else outcome.kind for outcome in outcomes],
        duration_ms=ports.clock.now_ms() - started,
    )
    for (delivery, job), outcome in zip(claimed, outcomes, strict=True):
        if outcome.kind == "failed":
            decisions.append(await failed(ports, job, outcome, delivery.id))
        else:
            if outcome.kind == "continue":
                await ports.queue.send(queue, [{"version": 1, "job_id": job.job_id}])
            decisions.append(Decision(delivery.id, "ack"))
    return decisions


async def _run(ports: Ports, jobs: Sequence[Job], turn: Turn) -> Sequence[Outcome]:
    try:
        return await turn(ports, jobs)
    except MempersistError as error:
        return [Outcome("failed", error.code, error.message)] * len(jobs)
    except _TROUBLE as error:
        return [Outcome("failed", Code.RETRYABLE_INFRASTRUCTURE, type(error).__name__)] * len(jobs)
    except Exception as error:  # a defect of ours: the log has its place, and no other job shall wait for it
        logs.error("turn_defect", jobs=[job.job_id for job in jobs], defect=place_of(error))
        if len(jobs) == 1:
            return [Outcome("failed", Code.RETRYABLE_INFRASTRUCTURE, place_of(error))]
        return [(await _run(ports, [job], turn))[0] for job in jobs]


def again(delivery: Delivery) -> Decision:
    """Give a message back; the oftener it came, the longer it waits."""
    return Decision(delivery.id, "retry", backoff_seconds(delivery.attempts + 2, 1.0))
