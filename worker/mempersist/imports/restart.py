"""What the sweeper does for imports: nothing accepted stays undone, nothing abandoned stays for ever."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from mempersist import timestamps
from mempersist.archive import keys
from mempersist.archive.codec import UnreadableObject
from mempersist.imports import runs, staging, uploads
from mempersist.imports.records import decode_record
from mempersist.limits import UPLOAD_EXPIRY_SECONDS
from mempersist.ports import AccountId, ObjectNotFound, Ports

_AT_ONCE = 100


async def restart_interrupted(ports: Ports, before: str) -> int:
    """Set every accepted import going again that nothing would continue, and clear away what was abandoned.

    :param before: ISO 8601; an upload accepted later may still be on its way into the catalog and is left alone.
    :returns: how many imports go on again.
    """
    resumed = await _resume_runs(ports)
    restarted = await _restart_lost(ports, before)
    await _expire_uploads(ports)
    await _purge_scratch(ports)
    return resumed + restarted


async def _resume_runs(ports: Ports) -> int:
    """Runs without a job get one again."""
    rows = await ports.catalog.query(
        "SELECT import_id, account_id FROM import_runs AS r WHERE status IN ('uploaded', 'processing')"
        " AND NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.subject_id = r.import_id AND j.kind = 'import')"
        " ORDER BY created_at LIMIT ?",
        (_AT_ONCE,),
    )
    if rows:
        now = runs.now_of(ports)
        await ports.catalog.batch(
            [runs.job_statement(AccountId(row["account_id"]), row["import_id"], now) for row in rows]
        )
        await uploads.send(ports, [row["import_id"] for row in rows])
    return len(rows)


async def _restart_lost(ports: Ports, before: str) -> int:
    """Imports that the store knows and the catalog does not: it was lost after they were accepted."""
    restarted = 0
    async for import_ids in _children(ports, keys.IMPORTS):
        known = await ports.catalog.query(
            "SELECT value AS import_id FROM json_each(?1)"
            " WHERE value IN (SELECT import_id FROM import_runs) OR value IN (SELECT import_id FROM imports)",
            (json.dumps(import_ids),),
        )
        for import_id in sorted(set(import_ids) - {row["import_id"] for row in known}):
            restarted += await _restart(ports, import_id, before)
    return restarted


async def _restart(ports: Ports, import_id: str, before: str) -> bool:
    """Whether the import goes on again. One with a receipt has ended; one without a record was never accepted."""
    try:
        record = decode_record(await ports.objects.get(keys.import_record(import_id)))
    except (ObjectNotFound, UnreadableObject):
        return False
    if record.created_at > before or await ports.objects.head(keys.import_receipt(import_id)) is not None:
        return False
    if not await ports.catalog.query("SELECT 1 FROM accounts WHERE account_id = ?", (record.account,)):
        return False
    await ports.catalog.batch(runs.accepted_statements(record, runs.now_of(ports)))
    await uploads.send(ports, [import_id])
    return True


async def _expire_uploads(ports: Ports) -> None:
    """Multipart uploads that nobody completed."""
    oldest = timestamps.from_ms(ports.clock.now_ms() - UPLOAD_EXPIRY_SECONDS * 1000)
    rows = await ports.catalog.query(
        "SELECT import_id, object_key, upload_id FROM import_runs WHERE status = 'uploading' AND created_at < ?"
        " ORDER BY created_at LIMIT ?",
        (oldest, _AT_ONCE),
    )
    for row in rows:
        await uploads.discard(ports, row["import_id"], row["object_key"], row["upload_id"])


async def _purge_scratch(ports: Ports) -> None:
    """Scratch objects of imports that have ended: a turn that was late wrote them."""
    async for import_ids in _children(ports, keys.WORK):
        running = await ports.catalog.query(
            "SELECT import_id FROM import_runs WHERE import_id IN (SELECT value FROM json_each(?))",
            (json.dumps(import_ids),),
        )
        for import_id in sorted(set(import_ids) - {row["import_id"] for row in running}):
            await staging.drop(ports.objects, keys.import_work(import_id))


async def _children(ports: Ports, prefix: str) -> AsyncIterator[list[str]]:
    """The names directly under ``prefix``, page by page."""
    cursor: str | None = None
    while True:
        page = await ports.objects.list(prefix, cursor=cursor, delimiter="/")
        names = [child[len(prefix) :].rstrip("/") for child in page.prefixes]
        if names:
            yield names
        cursor = page.cursor
        if cursor is None:
            return
