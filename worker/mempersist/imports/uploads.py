"""How an export arrives: in one request, or in parts that may be sent again.

An upload is accepted once its bytes and its import record are canonical objects; only then does the caller hear of it.
From there on the import runs by itself, even if the catalog is lost meanwhile.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mempersist import names
from mempersist.archive import accounts, keys
from mempersist.errors import Code, MempersistError, not_found, validation
from mempersist.imports import runs
from mempersist.imports.bodies import MeteredBody, object_sha256
from mempersist.imports.duplicates import earlier_import
from mempersist.imports.records import ImportRecord, encode_record
from mempersist.limits import (
    MAX_DIRECT_IMPORT_BYTES,
    MAX_FILENAME_CHARS,
    MAX_IMPORT_BYTES,
    MAX_MULTIPART_PART_BYTES,
    MAX_MULTIPART_PARTS,
    MIB,
    MIN_MULTIPART_PART_BYTES,
)
from mempersist.ports import (
    AccountId,
    Body,
    ObjectNotFound,
    Ports,
    PreconditionFailed,
    QueueUnavailable,
    Row,
    StorageError,
    UploadedPart,
)
from mempersist.text import printable


@dataclass(frozen=True, slots=True)
class Accepted:
    """An upload that will be imported.

    :param sha256: hex; None where the bytes came in parts, which the import hashes first.
    :param duplicate_of: a finished import of the same bytes, in which case nothing will be imported again.
    :param queued: the queue took the message; when False the sweeper will send it.
    """

    import_id: str
    object_key: str
    filename: str
    namespace: str
    size_bytes: int
    sha256: str | None = None
    duplicate_of: str | None = None
    queued: bool = True


@dataclass(frozen=True, slots=True)
class Upload:
    """A multipart upload that waits for its parts, each but the last of the same size within the bounds given."""

    import_id: str
    upload_id: str
    object_key: str
    filename: str
    namespace: str
    min_part_bytes: int = MIN_MULTIPART_PART_BYTES
    max_part_bytes: int = MAX_MULTIPART_PART_BYTES
    max_parts: int = MAX_MULTIPART_PARTS


@dataclass(frozen=True, slots=True)
class PartList:
    """What an upload has so far. ``status``: ``uploading``, or ``accepted`` once it was completed."""

    import_id: str
    status: Literal["uploading", "accepted"]
    parts: tuple[UploadedPart, ...]

    @property
    def size_bytes(self) -> int:
        return sum(part.size for part in self.parts)


async def direct(
    ports: Ports,
    account: AccountId,
    *,
    filename: str,
    body: Body,
    size: int,
    namespace: str | None = None,
    force: bool = False,
    max_bytes: int = MAX_DIRECT_IMPORT_BYTES,
) -> Accepted:
    """Accept an export that comes in one piece.

    :param size: bytes, as announced; a body of another length is refused.
    :param namespace: where new conversations go; the account's default namespace when None.
    :param force: import even if the same bytes were imported before.
    :param max_bytes: the door's bound; a host that reads a local file may allow more.
    :raises MempersistError: VALIDATION, REQUEST_TOO_LARGE, or CANONICAL_STORAGE when nothing was acknowledged.
    """
    filename = _filename(filename)
    namespace = await _namespace(ports, account, namespace)
    too_large = f"body: at most {max_bytes} bytes are taken in one request; use a multipart upload for more"
    if size > max_bytes:
        raise MempersistError(Code.REQUEST_TOO_LARGE, too_large, details={"max_bytes": max_bytes})
    import_id = ports.ids.uuid()
    metered = MeteredBody(body, limit=max_bytes, declared=size, limit_message=too_large)
    key = keys.import_source(import_id, filename)
    try:
        await ports.objects.put(key, metered.body())
        sha256 = metered.sha256 or await object_sha256(ports.objects, key, size)
    except StorageError as error:
        raise metered.refusal or _not_stored() from error
    record = ImportRecord(import_id, account, namespace, filename, size, runs.now_of(ports), sha256=sha256, force=force)
    return await _accept(ports, record)


async def begin_multipart(ports: Ports, account: AccountId, *, filename: str, namespace: str | None = None) -> Upload:
    """Open an upload in parts. :raises MempersistError: VALIDATION, or CANONICAL_STORAGE."""
    filename = _filename(filename)
    namespace = await _namespace(ports, account, namespace)
    import_id = ports.ids.uuid()
    key = keys.import_source(import_id, filename)
    try:
        upload_id = await ports.objects.create_multipart(key)
    except StorageError as error:
        raise _not_stored() from error
    now = runs.now_of(ports)
    await ports.catalog.query(
        "INSERT INTO import_runs (import_id, account_id, namespace, filename, object_key, status, upload_id,"
        " created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, 'uploading', ?6, ?7, ?7)",
        (import_id, account, namespace, filename, key, upload_id, now),
    )
    return Upload(import_id, upload_id, key, filename, namespace)


async def put_part(ports: Ports, account: AccountId, import_id: str, number: int, body: Body) -> UploadedPart:
    """Store part ``number``, replacing an earlier one of that number.

    :raises MempersistError: NOT_FOUND, IMPORT_CONFLICT once the upload is completed, VALIDATION, REQUEST_TOO_LARGE.
    """
    row = await _uploading(ports, account, import_id)
    if not 1 <= number <= MAX_MULTIPART_PARTS:
        raise validation("part", f"{number} is not a part number; parts are numbered 1 to {MAX_MULTIPART_PARTS}")
    # A part that is being replaced counts as missing, so that a crash in between cannot leave a wrong etag behind.
    await ports.catalog.query("DELETE FROM upload_parts WHERE import_id = ? AND part_number = ?", (import_id, number))
    limit_message = f"body: a part has at most {MAX_MULTIPART_PART_BYTES} bytes; cut the file into smaller parts"
    metered = MeteredBody(body, limit=MAX_MULTIPART_PART_BYTES, declared=None, limit_message=limit_message)
    try:
        part = await ports.objects.put_part(row["object_key"], row["upload_id"], number, metered.body())
    except StorageError as error:
        raise metered.refusal or _not_stored() from error
    except ObjectNotFound as error:
        raise _upload_gone() from error
    rows = await ports.catalog.query(
        "INSERT INTO upload_parts (import_id, part_number, etag, size_bytes)"
        " SELECT ?1, ?2, ?3, ?4 WHERE EXISTS (SELECT 1 FROM import_runs WHERE import_id = ?1 AND status = 'uploading')"
        " ON CONFLICT (import_id, part_number) DO UPDATE SET etag = ?3, size_bytes = ?4 RETURNING part_number",
        (import_id, number, part.etag, part.size),
    )
    if not rows:
        raise _completed()
    return part


async def list_parts(ports: Ports, account: AccountId, import_id: str) -> PartList:
    """The parts that have arrived, so that a sender can go on where it stopped. :raises MempersistError: NOT_FOUND"""
    row = await _known(ports, account, import_id)
    if row["status"] != "uploading":
        return PartList(import_id, "accepted", ())
    return PartList(import_id, "uploading", await _parts(ports, import_id))


async def complete(ports: Ports, account: AccountId, import_id: str, *, force: bool = False) -> Accepted:
    """Join the parts and accept the upload. Asked again, it answers the same and does nothing.

    :raises MempersistError: NOT_FOUND; VALIDATION for missing or ill-sized parts; REQUEST_TOO_LARGE;
        CANONICAL_STORAGE when nothing was acknowledged.
    """
    row = await _known(ports, account, import_id)
    if row["status"] != "uploading":
        return Accepted(
            import_id, row["object_key"], row["filename"], row["namespace"], row["size_bytes"], row["sha256"]
        )
    parts = await _parts(ports, import_id)
    _check_parts(parts)
    size = sum(part.size for part in parts)
    try:
        await _join(ports, row["object_key"], row["upload_id"], parts, size)
    except StorageError as error:
        raise _not_stored() from error
    record = ImportRecord(
        import_id, account, row["namespace"], row["filename"], size, row["created_at"], sha256=None, force=force
    )
    return await _accept(ports, record)


async def abort(ports: Ports, account: AccountId, import_id: str) -> None:
    """Forget an upload that was not completed. :raises MempersistError: NOT_FOUND; IMPORT_CONFLICT once completed"""
    row = await _uploading(ports, account, import_id)
    await discard(ports, import_id, row["object_key"], row["upload_id"])


async def discard(ports: Ports, import_id: str, object_key: str, upload_id: str) -> None:
    """Drop the parts and the row of an upload that is still open."""
    try:
        await ports.objects.abort_multipart(object_key, upload_id)
    except StorageError as error:
        raise MempersistError(
            Code.RETRYABLE_INFRASTRUCTURE, "the object store could not drop the upload now; try again"
        ) from error
    await ports.catalog.query("DELETE FROM import_runs WHERE import_id = ? AND status = 'uploading'", (import_id,))


# ------------------------------------------------------------------ acceptance


async def _accept(ports: Ports, record: ImportRecord) -> Accepted:
    """Write the record, then the run and its job, then tell the queue."""
    try:
        with contextlib.suppress(PreconditionFailed):  # an earlier try of the same request wrote it
            await ports.objects.put(keys.import_record(record.import_id), encode_record(record), if_absent=True)
    except StorageError as error:
        raise _not_stored() from error
    await ports.catalog.batch(runs.accepted_statements(record, runs.now_of(ports)))
    duplicate_of = None
    if record.sha256 is not None and not record.force:
        duplicate_of = await earlier_import(ports, record.account, record.import_id, record.sha256)
    return Accepted(
        record.import_id,
        record.object_key,
        record.filename,
        record.namespace,
        record.size_bytes,
        record.sha256,
        duplicate_of,
        await send(ports, [record.import_id]),
    )


async def send(ports: Ports, import_ids: Sequence[str]) -> bool:
    """Tell the import queue; False when it did not take the messages, which the sweeper then sends."""
    bodies = [{"version": 1, "job_id": runs.job_id(import_id)} for import_id in import_ids]
    try:
        for start in range(0, len(bodies), 100):
            await ports.queue.send("import", bodies[start : start + 100])
    except QueueUnavailable:
        return False
    return True


async def _join(ports: Ports, key: str, upload_id: str, parts: Sequence[UploadedPart], size: int) -> None:
    try:
        await ports.objects.complete_multipart(key, upload_id, parts)
    except (ObjectNotFound, StorageError) as error:
        # Joined already by a try whose answer was lost; or an upload that the store no longer has, or trouble.
        info = await ports.objects.head(key)
        if info is None or info.size != size:
            raise (_upload_gone() if isinstance(error, ObjectNotFound) else error) from None


def _check_parts(parts: Sequence[UploadedPart]) -> None:
    if not parts:
        raise validation("parts", "none has arrived; send part 1 first")
    present = {part.number for part in parts}
    missing = [number for number in range(1, parts[-1].number) if number not in present]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (", …" if len(missing) > 10 else "")
        raise MempersistError(
            Code.VALIDATION,
            f"parts: {len(missing)} of {parts[-1].number} are missing ({listed}); send them and complete again",
            details={"field": "parts", "missing_parts": missing[:100]},
        )
    size = sum(part.size for part in parts)
    if size > MAX_IMPORT_BYTES:
        raise MempersistError(
            Code.REQUEST_TOO_LARGE,
            f"parts: {size} bytes in all; an import has at most {MAX_IMPORT_BYTES}",
            details={"max_bytes": MAX_IMPORT_BYTES},
        )
    sizes = {part.size for part in parts[:-1]}
    if len(sizes) > 1 or (sizes and (parts[-1].size > min(sizes) or min(sizes) < MIN_MULTIPART_PART_BYTES)):
        raise validation(
            "parts",
            "all but the last must have the same size, at least"
            f" {MIN_MULTIPART_PART_BYTES // MIB} MiB, and the last may not be larger; send the odd ones again",
        )


# ------------------------------------------------------------------ rows


async def _known(ports: Ports, account: AccountId, import_id: str) -> Row:
    """The row of an upload or import in any state. :raises MempersistError: NOT_FOUND"""
    rows = await ports.catalog.query(
        "SELECT status, upload_id, object_key, filename, namespace, size_bytes, sha256, created_at FROM import_runs"
        " WHERE account_id = ?1 AND import_id = ?2"
        " UNION ALL SELECT status, NULL, object_key, filename, namespace, size_bytes, sha256, created_at FROM imports"
        " WHERE account_id = ?1 AND import_id = ?2",
        (account, import_id),
    )
    if not rows:
        raise not_found("import")
    return rows[0]


async def _uploading(ports: Ports, account: AccountId, import_id: str) -> Row:
    row = await _known(ports, account, import_id)
    if row["status"] != "uploading":
        raise _completed()
    return row


async def _parts(ports: Ports, import_id: str) -> tuple[UploadedPart, ...]:
    rows = await ports.catalog.query(
        "SELECT part_number, etag, size_bytes FROM upload_parts WHERE import_id = ? ORDER BY part_number", (import_id,)
    )
    return tuple(UploadedPart(row["part_number"], row["etag"], row["size_bytes"]) for row in rows)


async def _namespace(ports: Ports, account: AccountId, namespace: str | None) -> str:
    if namespace is None:
        return await accounts.default_namespace(ports, account)
    return names.namespace(namespace)


def _filename(filename: str) -> str:
    name = printable(filename).strip()
    if not name:
        raise validation("filename", "must not be blank")
    if len(name) > MAX_FILENAME_CHARS:
        raise validation("filename", f"has {len(name)} characters; at most {MAX_FILENAME_CHARS} are allowed")
    return name


def _completed() -> MempersistError:
    return MempersistError(Code.IMPORT_CONFLICT, "the upload is completed; begin another one for other bytes")


def _upload_gone() -> MempersistError:
    return MempersistError(
        Code.NOT_FOUND, "import: the store has no such upload any more; it may have expired, begin another one"
    )


def _not_stored() -> MempersistError:
    return MempersistError(
        Code.CANONICAL_STORAGE, "the object store did not take the upload; nothing is acknowledged, send it again"
    )
