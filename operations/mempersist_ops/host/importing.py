"""An import from a file on this machine, from its first byte to the last vector."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.imports import uploads
from mempersist.imports.records import Receipt
from mempersist.imports.status import ImportStatus, import_receipt, import_status, list_imports
from mempersist.limits import MAX_IMPORT_BYTES
from mempersist_ops.host.background import work_until
from mempersist_ops.host.runtime import Host

Progress = Callable[[str, str, int, int], None]
"""Is told the step, the unit counted, how many are done and of how many."""
_BLOCK_BYTES: Final = 1024 * 1024


async def import_file(host: Host, path: Path, namespace: str | None, *, force: bool, progress: Progress) -> Receipt:
    """Store the file, import it and index what it brought. Killed anywhere, the next start of anything goes on.

    :raises MempersistError: what refused the upload; RETRYABLE_INFRASTRUCTURE if the import's job was given up.
    """
    size = os.stat(path).st_size  # noqa: PTH116 - a local file's size, at once
    import_id = None if force else await _begun(host, path, size, namespace)
    if import_id is None:
        accepted = await uploads.direct(
            host.ports,
            OWNER,
            filename=path.name,
            body=_blocks(path, size, progress),
            size=size,
            namespace=namespace,
            force=force,
            max_bytes=MAX_IMPORT_BYTES,
        )
        import_id = accepted.import_id
    await finish(host, import_id, progress)
    await index(host, progress)
    return await import_receipt(host.ports, OWNER, import_id)


async def _begun(host: Host, path: Path, size: int, namespace: str | None) -> str | None:
    """An import of the same file that was interrupted: running the command again goes on with that one."""
    candidates = [
        status
        for status in await list_imports(host.ports, OWNER)
        if not status.ended
        and status.status != "failed"
        and (status.filename, status.size_bytes) == (path.name, size)
        and namespace in {None, status.namespace}
    ]
    if not candidates:
        return None
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return next((status.import_id for status in candidates if status.sha256 == sha256), None)


async def finish(host: Host, import_id: str, progress: Progress) -> None:
    """Work until the import has ended. :raises MempersistError: if its job was given up after too many tries."""

    async def ended() -> bool:
        status = await import_status(host.ports, OWNER, import_id)
        if not status.ended and status.status == "failed":
            raise given_up(status)
        if status.bytes_total:
            progress("importing", "bytes", status.bytes_done, status.bytes_total)
        return status.ended

    await work_until(host, ended)


async def index(host: Host, progress: Progress) -> None:
    """Work until no conversation waits for the index but those whose job was given up."""
    most = 0

    async def indexed() -> bool:
        nonlocal most
        rows = await host.ports.catalog.query(
            "SELECT count(*) AS waiting FROM jobs WHERE kind = 'index' AND status <> 'failed'"
        )
        waiting = rows[0]["waiting"]
        most = max(most, waiting)
        progress("indexing", "conversations", most - waiting, most)
        return not waiting

    await work_until(host, indexed)


def given_up(status: ImportStatus) -> MempersistError:
    message = f"import {status.import_id} was given up after too many tries: {status.error_message or 'no reason kept'}"
    return MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message, details={"cause": status.error_code})


async def _blocks(path: Path, size: int, progress: Progress) -> AsyncIterator[bytes]:
    done = 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block
            done += len(block)
            progress("storing", "bytes", done, size)
