"""Backups and data directories: a restore into one, and a drill in a scratch one."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectStore
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.recovery.verify import Verification, verify
from mempersist_ops.backup import repository
from mempersist_ops.backup import restore as restoring
from mempersist_ops.backup.layout import Snapshot
from mempersist_ops.backup.restore import Restored, Wanted
from mempersist_ops.host import datadir
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.importing import Progress
from mempersist_ops.host.runtime import stores
from mempersist_ops.stores.embedded.objects import FileObjectStore


@dataclass(frozen=True, slots=True)
class Drill:
    """What a restore of ``snapshot`` into scratch stores came to. ``good``: the same digest, and nothing damaged."""

    snapshot: Snapshot
    restored: Restored
    catalog_digest: str
    verification: Verification

    @property
    def good(self) -> bool:
        whole = self.catalog_digest == self.snapshot.catalog_digest and not self.restored.left_out
        return whole and self.verification.severity() != "damage"


async def restore(
    directory: DataDirectory, store: ObjectStore, snapshot_id: str | None, wanted: Wanted, progress: Progress
) -> tuple[Restored, str]:
    """Restore while nothing else uses the directory; what was written, and the catalog's digest.

    :raises MempersistError: NOT_FOUND; IMPORT_CONFLICT; CANONICAL_STORAGE when all of it folds to another digest.
    """
    await repository.require(store)
    of = await chosen(store, snapshot_id)
    with closing(datadir.DirectoryLock(directory)) as lock, closing(FileObjectStore(directory.root)) as objects:
        lock.require_alone()
        datadir.write_private(directory.restoring, json.dumps({"snapshot": of.id}) + "\n")
        report = await restoring.restore(
            store, of, objects, wanted, lambda done, total: progress("restoring", "objects", done, total)
        )
        _forget_projections(directory)
        async with stores(directory) as host:
            await rebuild_catalog(host.ports)
            found = (await digest(host.ports.catalog)).total
        if wanted.everything and not report.left_out and found != of.catalog_digest:
            message = f"the restored catalog has the digest {found}, not the snapshot's {of.catalog_digest}"
            raise MempersistError(Code.CANONICAL_STORAGE, message)
        directory.restoring.unlink()
    return report, found


async def chosen(store: ObjectStore, snapshot_id: str | None) -> Snapshot:
    """The snapshot named, or the newest that can be read. :raises MempersistError: NOT_FOUND if there is none."""
    if snapshot_id is not None:
        return await repository.snapshot(store, snapshot_id)
    for one in reversed(await repository.snapshot_ids(store)):
        try:
            return await repository.snapshot(store, one)
        except MempersistError:
            continue
    raise MempersistError(Code.NOT_FOUND, "backup: it has no snapshot that can be read")


async def drill(store: ObjectStore, progress: Progress) -> Drill:
    """Restore the newest snapshot into a directory that is thrown away, and verify what came of it."""
    await repository.require(store)
    of = await chosen(store, None)
    with tempfile.TemporaryDirectory(prefix="mempersist-drill-") as scratch:
        directory = datadir.create(Path(scratch) / "archive")
        report, found = await restore(directory, store, of.id, Wanted(), progress)
        async with stores(directory) as host:
            checked = await verify(host.ports, progress=lambda done: progress("verifying", "objects", done, done))
    return Drill(of, report, found, checked)


def _forget_projections(directory: DataDirectory) -> None:
    for database in (directory.catalog, directory.vectors, directory.queue):
        for suffix in ("", "-wal", "-shm"):
            database.with_name(database.name + suffix).unlink(missing_ok=True)
