"""Restoring an archive file into a data directory: proved first, copied, folded, compared."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist_ops.archive_file import layout, restore
from mempersist_ops.host import datadir
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.importing import Progress
from mempersist_ops.host.runtime import stores
from mempersist_ops.stores.embedded.objects import FileObjectStore


@dataclass(frozen=True, slots=True)
class Restoration:
    """What a restore did. ``merged``: the directory had memories before, so its digest is not the file's alone."""

    summary: layout.Summary
    copied: restore.Restored
    merged: bool
    catalog_digest: str


async def restore_file(directory: DataDirectory, path: Path, progress: Progress) -> Restoration:
    """Restore ``path`` while nothing else uses the directory. Interrupted, it is run again and goes on.

    :raises MempersistError: PERMANENT_PARSER for a file that is not right, IMPORT_CONFLICT for a directory that it does
        not fit into; nothing was written in both cases.
    """
    with (
        closing(datadir.DirectoryLock(directory)) as lock,
        restore.opened(path) as archive,
        closing(FileObjectStore(directory.root)) as objects,
    ):
        lock.require_alone()
        summary = await restore.check(archive, lambda done, total: progress("checking", "objects", done, total))
        merged = await _begin(directory, archive, objects, summary)
        copied = await restore.copy(
            archive,
            objects,
            summary,
            leave_out=await restore.buried(archive, objects) if merged else frozenset(),
            progress=lambda done, total: progress("restoring", "objects", done, total),
        )
        async with stores(directory) as host:
            report = await rebuild_catalog(host.ports)
            found = (await digest(host.ports.catalog)).total
        if report.damaged:
            message = f"restored object {report.damaged[0].key} cannot be read back: {report.damaged[0].problem}"
            raise MempersistError(Code.CANONICAL_STORAGE, message)
        if not merged and found != summary.catalog_digest:
            raise MempersistError(
                Code.CANONICAL_STORAGE, f"the restored catalog has the digest {found}, not {summary.catalog_digest}"
            )
        directory.restoring.unlink()
    return Restoration(summary, copied, merged, found)


async def _begin(directory: DataDirectory, archive: ZipFile, objects: FileObjectStore, summary: layout.Summary) -> bool:
    """Make sure that the file fits, note what is being restored, and make room; whether it is merged.

    A directory in which this very restore was interrupted is taken up where it was left.
    """
    note = _note(directory)
    if note is None:
        merged = not await restore.counts_as_empty(objects)
        if merged:
            await restore.check_fits(archive, objects, await restore.buried(archive, objects))
        else:
            _check_room(directory, summary)
        note = {"objectsSha256": summary.objects_sha256, "merged": merged}
        datadir.write_private(directory.restoring, json.dumps(note) + "\n")
    elif note.get("objectsSha256") != summary.objects_sha256:
        message = f"a restore of another file into {directory.root} was interrupted; finish that one first"
        raise MempersistError(Code.IMPORT_CONFLICT, message)
    if not note["merged"]:
        await _make_room(directory, objects)
    return bool(note["merged"])


def _check_room(directory: DataDirectory, summary: layout.Summary) -> None:
    free = shutil.disk_usage(directory.root).free
    if summary.size_bytes > free:
        message = f"the archive has {summary.size_bytes} bytes, and {directory.root} has room for {free}"
        raise MempersistError(Code.CANONICAL_STORAGE, message)


async def _make_room(directory: DataDirectory, objects: FileObjectStore) -> None:
    """Remove what a first start made: the account's log, and the projections of an archive without memories."""
    await restore.clear_accounts(objects)
    for database in (directory.catalog, directory.vectors, directory.queue):
        for suffix in ("", "-wal", "-shm"):
            database.with_name(database.name + suffix).unlink(missing_ok=True)


def _note(directory: DataDirectory) -> dict[str, object] | None:
    try:
        note: dict[str, object] = json.loads(directory.restoring.read_bytes())
    except FileNotFoundError:
        return None
    return note
