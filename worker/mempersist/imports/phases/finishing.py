"""Last turn of an import: its receipt, then its row among the finished ones."""

from __future__ import annotations

import re

from mempersist import jobs
from mempersist.archive import keys
from mempersist.imports import staging
from mempersist.imports.counts import Counts, reason
from mempersist.imports.projection import import_statements
from mempersist.imports.records import (
    SOURCE_TYPE,
    Ending,
    FindingRow,
    Receipt,
    encode_receipt,
)
from mempersist.imports.runs import Run, now_of
from mempersist.imports.state import Failure, State
from mempersist.jobs import DONE, Job, Outcome
from mempersist.ports import ObjectNotFound, Ports, PreconditionFailed, Statement

_MANY = 5
"""More than one in this many conversations gone from an export is worth a note."""
_DIGITS = re.compile(r"(\d+)")


async def step(ports: Ports, job: Job, run: Run) -> Outcome:
    """Write the receipt, which says how the import ended from then on, and put its row in the place of the run's."""
    receipt = await _receipt(ports, run)
    await staging.drop(ports.objects, keys.import_work(run.import_id))
    await ports.catalog.batch(
        [
            *import_statements(receipt),
            Statement(
                "DELETE FROM import_runs WHERE import_id = ? AND account_id = ? AND turn = ?",
                (run.import_id, run.account, run.turn),
            ),
            jobs.finished(job),
        ]
    )
    return DONE


async def _receipt(ports: Ports, run: Run) -> bytes:
    """The receipt that stands, or a new one."""
    key = keys.import_receipt(run.import_id)
    try:
        return await ports.objects.get(key)
    except ObjectNotFound:
        data = encode_receipt(await _compose(ports, run))
    try:
        await ports.objects.put(key, data, if_absent=True)
    except PreconditionFailed:
        return await ports.objects.get(key)
    return data


async def _compose(ports: Ports, run: Run) -> Receipt:
    state = run.state
    findings = await recorded_findings(ports, run)
    counts = state.counts
    if state.duplicate_of is None and state.failure is None:
        counts += await _final_counts(ports, run)
        if counts.reasons.get("note", {}).get("CONVERSATIONS_ABSENT"):
            message = f"{counts.conversations_absent} conversations of earlier imports are not in this one; they stay"
            findings.append(FindingRow("export", "note", "CONVERSATIONS_ABSENT", message))
    status, failure = verdict(state, counts)
    return Receipt(
        import_id=run.import_id,
        account=run.account,
        namespace=run.namespace,
        filename=run.filename,
        sha256=run.sha256 or "",
        size_bytes=run.size_bytes,
        status=status,
        counts=counts,
        created_at=run.created_at,
        completed_at=now_of(ports),
        duplicate_of=state.duplicate_of,
        failure=failure,
        findings=tuple(findings),
        unrecorded=state.unrecorded,
    )


def verdict(state: State, counts: Counts) -> tuple[Ending, Failure | None]:
    """How an import ended, from what it counted."""
    conversations = counts.conversations
    if state.duplicate_of is not None:
        return "duplicate", None
    if state.failure is not None:
        return "failed", state.failure
    if not conversations.found and counts.failures:
        return "failed", Failure("NOTHING_READ", "no conversation could be read; the findings say why")
    if conversations.found and not conversations.imported + conversations.unchanged:
        problem = f"none of {conversations.found} conversations could be imported; the findings say why"
        return "failed", Failure("NOTHING_IMPORTED", problem)
    if counts.messages.found and not counts.messages_with_text:
        problem = "no message came out with text; this export may have a newer format than this version can read"
        return "failed", Failure("NO_TEXT", problem)
    return ("complete_with_errors" if counts.failures else "complete"), None


async def recorded_findings(ports: Ports, run: Run, limit: int = -1) -> list[FindingRow]:
    """A run's findings in the order of their positions, numbers in them compared as numbers."""
    rows = await ports.catalog.query(
        "SELECT position, severity, code, message, source_id FROM import_findings WHERE import_id = ?"
        " ORDER BY position, code LIMIT ?",
        (run.import_id, limit),
    )
    found = [
        FindingRow(row["position"], row["severity"], row["code"], row["message"], row["source_id"]) for row in rows
    ]
    return sorted(found, key=_natural)


def _natural(finding: FindingRow) -> tuple[list[tuple[str, int]], str]:
    parts = _DIGITS.split(finding.position)
    return [("", int(part)) if index % 2 else (part, 0) for index, part in enumerate(parts)], finding.code


async def _final_counts(ports: Ports, run: Run) -> Counts:
    """What can be counted only at the end: assets without bytes, and conversations that the export no longer has."""
    refs = await ports.catalog.query(
        "SELECT count(*) AS referenced, count(*) FILTER (WHERE NOT EXISTS (SELECT 1 FROM assets AS a"
        " WHERE a.account_id = ?1 AND a.asset_id = r.asset_id)) AS missing"
        " FROM import_asset_refs AS r WHERE import_id = ?2",
        (run.account, run.import_id),
    )
    items = await ports.catalog.query(
        "SELECT (SELECT count(*) FROM import_items WHERE import_id = ?1) AS held,"
        " (SELECT count(*) FROM conversations AS c WHERE c.account_id = ?2 AND c.source_type = ?3"
        " AND c.deleted_at IS NULL AND NOT EXISTS (SELECT 1 FROM import_items AS i"
        " WHERE i.import_id = ?1 AND i.conversation_id = c.conversation_id)) AS absent",
        (run.import_id, run.account, SOURCE_TYPE),
    )
    absent = items[0]["absent"]
    known_before = absent + items[0]["held"] - run.state.counts.created
    counts = Counts(
        assets_referenced=refs[0]["referenced"], assets_missing=refs[0]["missing"], conversations_absent=absent
    )
    if absent * _MANY > known_before:
        counts += reason("note", "CONVERSATIONS_ABSENT")
    return counts
