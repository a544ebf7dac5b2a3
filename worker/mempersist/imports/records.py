"""The two canonical objects of an import: the record written when it is accepted, the receipt written when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from mempersist import canonical
from mempersist.archive import keys
from mempersist.archive.codec import UnreadableObject
from mempersist.archive.model import JsonObject
from mempersist.imports.counts import Counts, Severity
from mempersist.imports.state import Failure
from mempersist.ports import AccountId
from mempersist.text import printable

RECORD_FORMAT: Final = "mempersist.import.v1"
RECEIPT_FORMAT: Final = "mempersist.import-receipt.v1"
SOURCE_TYPE: Final = "chatgpt"
_MAX_POSITION_CHARS = 200
_MAX_MESSAGE_CHARS = 300
_MAX_SOURCE_ID_CHARS = 100

Ending = Literal["complete", "complete_with_errors", "failed", "duplicate"]


@dataclass(frozen=True, slots=True)
class ImportRecord:
    """An accepted upload: whose it is and where it goes. With the uploaded bytes it is enough to run the import.

    :param sha256: of the upload, where it was known when the upload was accepted.
    :param force: import even what was imported before, byte for byte.
    """

    import_id: str
    account: AccountId
    namespace: str
    filename: str
    size_bytes: int
    created_at: str
    sha256: str | None = None
    force: bool = False

    @property
    def object_key(self) -> str:
        return keys.import_source(self.import_id, self.filename)


@dataclass(frozen=True, slots=True)
class FindingRow:
    """What there is to say of one item. ``position`` is ``file:ordinal``; ``message`` never holds stored text."""

    position: str
    severity: Severity
    code: str
    message: str
    source_id: str | None = None

    def bounded(self) -> FindingRow:
        """The same with every text printable and short; a long position keeps its end."""
        return FindingRow(
            printable(self.position)[-_MAX_POSITION_CHARS:],
            self.severity,
            self.code,
            printable(self.message)[:_MAX_MESSAGE_CHARS],
            printable(self.source_id)[:_MAX_SOURCE_ID_CHARS] if self.source_id is not None else None,
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """How an import ended.

    :param findings: notes and every skipped or failed item, up to the limits of both.
    :param unrecorded: findings beyond those limits; the counts have them.
    """

    import_id: str
    account: AccountId
    namespace: str
    filename: str
    sha256: str
    size_bytes: int
    status: Ending
    counts: Counts
    created_at: str
    completed_at: str
    duplicate_of: str | None = None
    failure: Failure | None = None
    findings: tuple[FindingRow, ...] = ()
    unrecorded: int = 0

    @property
    def object_key(self) -> str:
        return keys.import_source(self.import_id, self.filename)


def finding_json(finding: FindingRow) -> JsonObject:
    value = {
        "position": finding.position,
        "severity": finding.severity,
        "code": finding.code,
        "message": finding.message,
    }
    return value if finding.source_id is None else {**value, "sourceId": finding.source_id}


def encode_record(record: ImportRecord) -> bytes:
    value: JsonObject = {
        "format": RECORD_FORMAT,
        "importId": record.import_id,
        "accountId": record.account,
        "namespace": record.namespace,
        "sourceType": SOURCE_TYPE,
        "filename": record.filename,
        "sizeBytes": record.size_bytes,
        "createdAt": record.created_at,
    }
    if record.sha256 is not None:
        value["sha256"] = record.sha256
    if record.force:
        value["force"] = True
    return canonical.dumps(value)


def decode_record(data: bytes) -> ImportRecord:
    """:raises UnreadableObject:"""
    value = _load(data, RECORD_FORMAT)
    try:
        return ImportRecord(
            import_id=value["importId"],
            account=AccountId(value["accountId"]),
            namespace=value["namespace"],
            filename=value["filename"],
            size_bytes=value["sizeBytes"],
            created_at=value["createdAt"],
            sha256=value.get("sha256"),
            force=value.get("force", False),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableObject(f"not a valid {RECORD_FORMAT} object ({type(error).__name__})") from error


def receipt_json(receipt: Receipt) -> JsonObject:
    """The receipt as people and programs get it, and as it is stored."""
    value: JsonObject = {
        "format": RECEIPT_FORMAT,
        "importId": receipt.import_id,
        "accountId": receipt.account,
        "namespace": receipt.namespace,
        "sourceType": SOURCE_TYPE,
        "filename": receipt.filename,
        "objectKey": receipt.object_key,
        "sha256": receipt.sha256,
        "sizeBytes": receipt.size_bytes,
        "status": receipt.status,
        "counts": receipt.counts.as_json(),
        "findings": [finding_json(finding) for finding in receipt.findings],
        "findingsNotListed": receipt.unrecorded,
        "createdAt": receipt.created_at,
        "completedAt": receipt.completed_at,
    }
    if receipt.duplicate_of is not None:
        value["duplicateOf"] = receipt.duplicate_of
    if receipt.failure is not None:
        value["error"] = {"code": receipt.failure.code, "message": receipt.failure.message}
    return value


def encode_receipt(receipt: Receipt) -> bytes:
    return canonical.dumps(receipt_json(receipt))


def decode_receipt(data: bytes) -> Receipt:
    """:raises UnreadableObject:"""
    value = _load(data, RECEIPT_FORMAT)
    try:
        error = value.get("error")
        return Receipt(
            import_id=value["importId"],
            account=AccountId(value["accountId"]),
            namespace=value["namespace"],
            filename=value["filename"],
            sha256=value["sha256"],
            size_bytes=value["sizeBytes"],
            status=value["status"],
            counts=Counts.from_json(value["counts"]),
            created_at=value["createdAt"],
            completed_at=value["completedAt"],
            duplicate_of=value.get("duplicateOf"),
            failure=Failure(error["code"], error["message"]) if error else None,
            findings=tuple(
                FindingRow(item["position"], item["severity"], item["code"], item["message"], item.get("sourceId"))
                for item in value["findings"]
            ),
            unrecorded=value["findingsNotListed"],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableObject(f"not a valid {RECEIPT_FORMAT} object ({type(error).__name__})") from error


def _load(data: bytes, expected: str) -> Any:
    try:
        value = canonical.loads(data)
        found = value["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableObject(f"not a valid {expected} object ({type(error).__name__})") from error
    if found != expected:
        raise UnreadableObject(f"format {str(found)[:80]!r} is not known here; expected {expected}")
    return value
