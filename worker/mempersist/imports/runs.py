"""Rows of imports that have not ended, and the one way in which a turn moves them on.

A turn reads the row, does its work, and writes what it did together with the next checkpoint in one batch. Every
statement of that batch acts only while the row still stands at the turn that was read, so of two turns that ran on the
same checkpoint one counts and the other changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mempersist import canonical, jobs, timestamps
from mempersist.catalog.bulk import json_parameters
from mempersist.imports.counts import NOTHING, Counts, reason
from mempersist.imports.records import FindingRow, ImportRecord
from mempersist.imports.state import State
from mempersist.limits import MAX_IMPORT_FINDINGS, MAX_IMPORT_NOTES
from mempersist.ports import AccountId, Ports, SqlValue, Statement


class LeaseLost(Exception):
    """Another worker has the import now; this turn stops and nothing of it counts."""


@dataclass(frozen=True, slots=True)
class Run:
    """An accepted import that has not ended, as of turn ``turn``."""

    import_id: str
    account: AccountId
    namespace: str
    filename: str
    object_key: str
    size_bytes: int
    sha256: str | None
    turn: int
    state: State
    created_at: str


@dataclass(frozen=True, slots=True)
class Step:
    """What a turn did.

    :param counts: to be added to the state's, with one reason for each of ``findings``, which are counted here.
    :param statements: further rows of the turn, safe to repeat.
    """

    state: State
    findings: Sequence[FindingRow] = ()
    counts: Counts = NOTHING
    statements: Sequence[Statement] = ()
    sha256: str | None = None


async def load(ports: Ports, account: AccountId, import_id: str) -> Run | None:
    """The run if its upload has been accepted and its import has not ended."""
    rows = await ports.catalog.query(
        "SELECT * FROM import_runs WHERE account_id = ? AND import_id = ? AND status IN ('uploaded', 'processing')",
        (account, import_id),
    )
    if not rows:
        return None
    row = rows[0]
    return Run(
        import_id=row["import_id"],
        account=AccountId(row["account_id"]),
        namespace=row["namespace"],
        filename=row["filename"],
        object_key=row["object_key"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        turn=row["turn"],
        state=State.decode(row["checkpoint_json"]),
        created_at=row["created_at"],
    )


def job_id(import_id: str) -> str:
    return canonical.job_id("import", import_id)


def job_statement(account: AccountId, import_id: str, now: str) -> Statement:
    return jobs.upsert(job_id(import_id), "import", account, import_id, now)


def accepted_statements(record: ImportRecord, now: str) -> list[Statement]:
    """The run and its job, for an upload whose bytes and record stand in the store. A known run is left as it is."""
    return [
        Statement(
            "INSERT INTO import_runs (import_id, account_id, namespace, filename, object_key, status, sha256,"
            " size_bytes, checkpoint_json, created_at, updated_at)"
            " VALUES (?1, ?2, ?3, ?4, ?5, 'uploaded', ?6, ?7, ?8, ?9, ?10) ON CONFLICT (import_id) DO UPDATE SET"
            " status = 'uploaded', sha256 = ?6, size_bytes = ?7, checkpoint_json = ?8, updated_at = ?10"
            " WHERE status = 'uploading'",
            (
                record.import_id,
                record.account,
                record.namespace,
                record.filename,
                record.object_key,
                record.sha256,
                record.size_bytes,
                State(force=record.force).encode(),
                record.created_at,
                now,
            ),
        ),
        Statement("DELETE FROM upload_parts WHERE import_id = ?", (record.import_id,)),
        job_statement(record.account, record.import_id, now),
    ]


def settle(run: Run, job: jobs.Job, step: Step, now: str) -> list[Statement]:
    """Statements that record ``step``, move the run to its next turn and give the job back."""
    kept, state = _record(step)
    return [
        *insert_at_turn(
            run,
            "import_findings",
            ("position", "severity", "code", "message", "source_id"),
            ([item.position, item.severity, item.code, item.message, item.source_id] for item in kept),
        ),
        *step.statements,
        Statement(
            "UPDATE import_runs SET status = 'processing', turn = turn + 1, checkpoint_json = ?,"
            " sha256 = coalesce(sha256, ?), updated_at = ? WHERE import_id = ? AND account_id = ? AND turn = ?",
            (state.encode(), step.sha256, now, run.import_id, run.account, run.turn),
        ),
        jobs.released(job, now),
    ]


def insert_at_turn(run: Run, table: str, columns: Sequence[str], rows: Iterable[Sequence[SqlValue]]) -> list[Statement]:
    """INSERTs of ``rows`` for this import, which do nothing once the run has moved on; known rows stay."""
    values = ", ".join(f"value ->> {index}" for index in range(len(columns)))
    sql = (
        f"INSERT INTO {table} (import_id, {', '.join(columns)}) SELECT ?1, {values} FROM json_each(?2)"
        " WHERE EXISTS (SELECT 1 FROM import_runs WHERE import_id = ?1 AND account_id = ?3 AND turn = ?4)"
        " ON CONFLICT DO NOTHING"
    )
    return [
        Statement(sql, (run.import_id, parameter, run.account, run.turn))
        for parameter in json_parameters(list(row) for row in rows)
    ]


async def keep_lease(ports: Ports, job: jobs.Job) -> None:
    """:raises LeaseLost:"""
    if not await jobs.renew(ports, job):
        raise LeaseLost


def now_of(ports: Ports) -> str:
    return timestamps.from_ms(ports.clock.now_ms())


def _record(step: Step) -> tuple[list[FindingRow], State]:
    """The findings that fit under the limits, and the state with all of them counted."""
    state = step.state
    counts = state.counts + step.counts
    kept = []
    noted, recorded, unrecorded = state.noted, state.recorded, state.unrecorded
    for finding in step.findings:
        counts += reason(finding.severity, finding.code)
        if finding.severity == "note":
            fits, noted = noted < MAX_IMPORT_NOTES, noted + 1
        else:
            fits, recorded = recorded < MAX_IMPORT_FINDINGS, recorded + 1
        if fits:
            kept.append(finding.bounded())
        else:
            unrecorded += 1
    return kept, replace(state, counts=counts, noted=noted, recorded=recorded, unrecorded=unrecorded)
