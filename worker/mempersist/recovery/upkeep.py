"""What the person who runs an archive may ask of it: work that was given up, indexing anew, and whether all agrees."""

from __future__ import annotations

from dataclasses import dataclass

from mempersist import cursors, jobs, timestamps
from mempersist.archive import keys
from mempersist.archive.commit import index_job_id, send_index_jobs
from mempersist.catalog.conversations import require_namespace
from mempersist.errors import not_found
from mempersist.index.generation import active_generation, enqueue_statements
from mempersist.ports import AccountId, ObjectInfo, Ports, QueueName, QueueUnavailable, Row, Statement
from mempersist.recovery.verify import Finding, Slice, Verification, conversations, projections

MAX_REINDEX = 500
MAX_CHECKED = 50
_TOGETHER = 50


@dataclass(frozen=True, slots=True)
class Parked:
    """Jobs that were given up, the latest first. ``dead_letters`` are queue messages that stand for such jobs."""

    jobs: tuple[Row, ...]
    dead_letters: int
    next_cursor: str | None


async def parked(ports: Ports, account: AccountId, *, limit: int, cursor: str | None) -> Parked:
    """:raises MempersistError: VALIDATION for a cursor of something else."""
    at = cursors.decode("parked-jobs", cursor, (str, str)) if cursor is not None else None
    after = " AND (updated_at, job_id) < (?2, ?3)" if at else ""
    rows = await ports.catalog.query(
        "SELECT job_id, kind, subject_id, attempts, error_code, error_message, created_at, updated_at FROM jobs"
        f" WHERE account_id = ?1 AND status = 'failed'{after} ORDER BY updated_at DESC, job_id DESC LIMIT {limit + 1}",
        (account, *(at or ())),
    )
    (letters,) = await ports.catalog.query(
        "SELECT count(*) AS n FROM dead_letters WHERE job_id IN (SELECT job_id FROM jobs WHERE account_id = ?)",
        (account,),
    )
    page = rows[:limit]
    more = len(rows) > limit
    following = cursors.encode("parked-jobs", (page[-1]["updated_at"], page[-1]["job_id"])) if more else None
    return Parked(page, letters["n"], following)


async def retry(ports: Ports, account: AccountId, job_id: str) -> bool:
    """Give a parked job a clean record and send it; whether the queue took its message, else the sweeper sends it.

    :raises MempersistError: NOT_FOUND for a job that is not parked, or another account's.
    """
    now = timestamps.from_ms(ports.clock.now_ms())
    rows = await ports.catalog.query(
        "UPDATE jobs SET status = 'pending', attempts = 0, error_code = NULL, error_message = NULL, available_at = ?1,"
        " updated_at = ?1 WHERE job_id = ?2 AND account_id = ?3 AND status = 'failed' RETURNING kind, subject_id",
        (now, job_id, account),
    )
    if not rows:
        raise not_found("job")
    await ports.catalog.batch(
        [
            Statement("DELETE FROM dead_letters WHERE job_id = ?", (job_id,)),
            Statement(
                "UPDATE index_state SET status = 'queued', error_code = NULL WHERE account_id = ? AND"
                " conversation_id = ? AND status = 'failed'",
                (account, rows[0]["subject_id"]),
            ),
        ]
    )
    queue: QueueName = rows[0]["kind"]
    try:
        await ports.queue.send(queue, [{"version": 1, "job_id": job_id}])
    except QueueUnavailable:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Requeued:
    queued: int
    next_cursor: str | None


async def reindex(
    ports: Ports, account: AccountId, *, namespace: str | None, limit: int, cursor: str | None
) -> Requeued:
    """Queue a page of the account's conversations for the active generation. A turn reads each one again and puts right
    what the index lacks; what it has already is not paid for twice, so repeating this is harmless.

    :raises MempersistError: VALIDATION; AUTHENTICATION for a namespace that the account does not own.
    """
    if namespace is not None:
        await require_namespace(ports, account, namespace)
    after = cursors.decode("reindex", cursor, (str,))[0] if cursor is not None else ""
    rows = await ports.catalog.query(
        "SELECT conversation_id, head_seq, revision_id FROM conversations WHERE account_id = ?1 AND deleted_at IS NULL"
        f" AND conversation_id > ?2 AND (?3 IS NULL OR namespace = ?3) ORDER BY conversation_id LIMIT {limit + 1}",
        (account, after, namespace),
    )
    page = rows[:limit]
    generation = await active_generation(ports)
    now = timestamps.from_ms(ports.clock.now_ms())
    for start in range(0, len(page), _TOGETHER):
        some = page[start : start + _TOGETHER]
        ids = [index_job_id(ports, row["conversation_id"]) for row in some]
        statements: list[Statement] = []
        for job_id, row in zip(ids, some, strict=True):
            conversation_id = row["conversation_id"]
            statements += enqueue_statements(
                account, conversation_id, row["head_seq"], row["revision_id"], generation, now
            )
            statements.append(jobs.upsert(job_id, "index", account, conversation_id, now))
        await ports.catalog.batch(statements)
        await send_index_jobs(ports, ids)
    more = len(rows) > limit
    return Requeued(len(page), cursors.encode("reindex", (page[-1]["conversation_id"],)) if more else None)


@dataclass(frozen=True, slots=True)
class Integrity:
    """How much of what there is, and what does not agree in a page of conversations."""

    counts: Row
    checked: int
    findings: tuple[Finding, ...]
    next_cursor: str | None


async def integrity(ports: Ports, account: AccountId, *, limit: int, cursor: str | None) -> Integrity:
    """Hold the logs, manifests and sizes of a page of conversations against the catalog and the index, without reading
    their bodies. :raises MempersistError: VALIDATION."""
    after = cursors.decode("integrity", cursor, (str,))[0] if cursor is not None else ""
    rows = await ports.catalog.query(
        "SELECT conversation_id FROM conversations WHERE account_id = ? AND conversation_id > ?"
        f" ORDER BY conversation_id LIMIT {limit + 1}",
        (account, after),
    )
    report = Verification()
    for row in rows[:limit]:
        name = row["conversation_id"]
        objects = await _objects(ports, name)
        if not any("/head/" in info.key for info in objects):
            report.found("CATALOG_STRANGER", name)
            continue
        found = await conversations.check(ports, name, objects, Slice(bodies=False), report)
        await projections.check(ports, found, report)
    more = len(rows) > limit
    following = cursors.encode("integrity", (rows[limit - 1]["conversation_id"],)) if more else None
    return Integrity(await _counts(ports, account), len(rows[:limit]), tuple(report.findings), following)


async def _objects(ports: Ports, conversation_id: str) -> list[ObjectInfo]:
    found: list[ObjectInfo] = []
    cursor: str | None = None
    while True:
        page = await ports.objects.list(keys.conversation(conversation_id), cursor=cursor)
        found += page.objects
        cursor = page.cursor
        if cursor is None:
            return found


async def _counts(ports: Ports, account: AccountId) -> Row:
    generation = await active_generation(ports)
    (row,) = await ports.catalog.query(
        "SELECT (SELECT count(*) FROM conversations WHERE account_id = ?1 AND deleted_at IS NULL) AS conversations,"
        " (SELECT count(*) FROM index_state WHERE account_id = ?1 AND generation = ?2 AND status = 'indexed')"
        " AS indexed,"
        " (SELECT count(*) FROM index_state WHERE account_id = ?1 AND generation = ?2 AND status = 'failed')"
        " AS index_failed,"
        " (SELECT count(*) FROM intents WHERE account_id = ?1) AS open_writes,"
        " (SELECT count(*) FROM jobs WHERE account_id = ?1 AND status = 'failed') AS parked_jobs,"
        " (SELECT count(*) FROM jobs WHERE account_id = ?1 AND status <> 'failed') AS open_jobs",
        (account, generation),
    )
    return row
