"""What there is to say of an import, whether it runs or has ended."""

from __future__ import annotations

import json
from dataclasses import dataclass

from mempersist.archive import keys
from mempersist.archive.model import JsonObject
from mempersist.errors import not_found
from mempersist.imports.counts import Counts
from mempersist.imports.records import SOURCE_TYPE, FindingRow, Receipt, decode_receipt, finding_json
from mempersist.imports.state import State
from mempersist.limits import MAX_LIST_ITEMS, MAX_STATUS_FINDINGS
from mempersist.ports import AccountId, ObjectNotFound, Ports, Row


@dataclass(frozen=True, slots=True)
class ImportStatus:
    """An upload or import.

    :param status: ``uploading``, ``uploaded``, ``processing``, ``complete``, ``complete_with_errors``, ``failed`` or
        ``duplicate``. A run whose job was parked after too many failed turns is ``failed`` until its job is retried.
    :param phase: what it is at: ``hash``, ``survey``, ``files``, ``assets``, ``finish``; None when it has ended.
    :param bytes_done: of ``bytes_total`` bytes of conversations and assets; the total is 0 until it is known.
    :param total_items: conversations in the export; known at the end. :param processed_items: those dealt with.
    :param findings: the first of them by position.
    """

    import_id: str
    namespace: str
    filename: str
    size_bytes: int | None
    sha256: str | None
    status: str
    duplicate_of: str | None
    phase: str | None
    bytes_done: int
    bytes_total: int
    total_items: int | None
    processed_items: int
    error_code: str | None
    error_message: str | None
    created_at: str
    updated_at: str
    counts: Counts
    findings: tuple[FindingRow, ...] = ()

    @property
    def ended(self) -> bool:
        return self.phase is None

    def as_json(self) -> JsonObject:
        """With the field names of the service contract. ``checkpoint_ordinal`` is that of the last settled item."""
        return {
            "id": self.import_id,
            "source_type": SOURCE_TYPE,
            "namespace": self.namespace,
            "filename": self.filename,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
            "status": self.status,
            "duplicate_of": self.duplicate_of,
            "phase": self.phase,
            "bytes_done": self.bytes_done,
            "bytes_total": self.bytes_total,
            "checkpoint_ordinal": self.processed_items - 1,
            "total_items": self.total_items,
            "processed_items": self.processed_items,
            "error_code": self.error_code,
            "error_message": self.error_message,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "counts": self.counts.as_json(),
            "findings": [finding_json(finding) for finding in self.findings],
        }


_RUNS = (
    "SELECT r.*, j.status AS job_status, j.error_code, j.error_message FROM import_runs AS r"
    " LEFT JOIN jobs AS j ON j.subject_id = r.import_id AND j.kind = 'import' WHERE r.account_id = ?"
)


async def import_status(ports: Ports, account: AccountId, import_id: str) -> ImportStatus:
    """:raises MempersistError: NOT_FOUND, also for another account's import."""
    rows = await ports.catalog.query(f"{_RUNS} AND r.import_id = ?", (account, import_id))
    if rows:
        found = await ports.catalog.query(
            "SELECT f.position, f.severity, f.code, f.message, f.source_id FROM import_findings AS f"
            " WHERE f.import_id = ? ORDER BY f.severity = 'note', f.position, f.code LIMIT ?",
            (import_id, MAX_STATUS_FINDINGS),
        )
        return _running(
            rows[0],
            tuple(FindingRow(f["position"], f["severity"], f["code"], f["message"], f["source_id"]) for f in found),
        )
    rows = await ports.catalog.query(
        "SELECT * FROM imports WHERE account_id = ? AND import_id = ?", (account, import_id)
    )
    if not rows:
        raise not_found("import")
    receipt = await _stored_receipt(ports, import_id)
    # Failures first, as in the list of a run: it is they that a short list must not leave out.
    findings = sorted(receipt.findings, key=lambda finding: finding.severity == "note") if receipt else []
    return _ended(rows[0], tuple(findings[:MAX_STATUS_FINDINGS]))


async def import_receipt(ports: Ports, account: AccountId, import_id: str) -> Receipt:
    """The whole receipt of an import that has ended. :raises MempersistError: NOT_FOUND"""
    rows = await ports.catalog.query(
        "SELECT 1 FROM imports WHERE account_id = ? AND import_id = ?", (account, import_id)
    )
    receipt = await _stored_receipt(ports, import_id) if rows else None
    if receipt is None:
        raise not_found("import")
    return receipt


async def list_imports(ports: Ports, account: AccountId, *, limit: int = MAX_LIST_ITEMS) -> tuple[ImportStatus, ...]:
    """Those that run first, then those that have ended, each newest first; without their findings."""
    limit = min(limit, MAX_LIST_ITEMS)
    running = await ports.catalog.query(f"{_RUNS} ORDER BY r.created_at DESC, r.import_id LIMIT ?", (account, limit))
    ended = await ports.catalog.query(
        "SELECT * FROM imports WHERE account_id = ? ORDER BY created_at DESC, import_id LIMIT ?", (account, limit)
    )
    return (*(_running(row, ()) for row in running), *(_ended(row, ()) for row in ended))[:limit]


async def _stored_receipt(ports: Ports, import_id: str) -> Receipt | None:
    try:
        return decode_receipt(await ports.objects.get(keys.import_receipt(import_id)))
    except ObjectNotFound:
        return None


def _running(row: Row, findings: tuple[FindingRow, ...]) -> ImportStatus:
    state = State.decode(row["checkpoint_json"])
    parked = row["job_status"] == "failed"
    return ImportStatus(
        import_id=row["import_id"],
        namespace=row["namespace"],
        filename=row["filename"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        status="failed" if parked else row["status"],
        duplicate_of=None,
        phase=state.phase,
        bytes_done=state.bytes_done,
        bytes_total=state.bytes_total,
        total_items=None,
        processed_items=state.counts.conversations.found,
        error_code=row["error_code"],
        error_message=row["error_message"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        counts=state.counts,
        findings=findings,
    )


def _ended(row: Row, findings: tuple[FindingRow, ...]) -> ImportStatus:
    counts = Counts.from_json(json.loads(row["counts_json"]))
    return ImportStatus(
        import_id=row["import_id"],
        namespace=row["namespace"],
        filename=row["filename"],
        size_bytes=row["size_bytes"],
        sha256=row["sha256"],
        status=row["status"],
        duplicate_of=row["duplicate_of"],
        phase=None,
        bytes_done=row["size_bytes"],
        bytes_total=row["size_bytes"],
        total_items=counts.conversations.found,
        processed_items=counts.conversations.found,
        error_code=row["error_code"],
        error_message=row["error_message"],
        created_at=row["created_at"],
        updated_at=row["completed_at"],
        counts=counts,
        findings=findings,
    )
