"""A backup's store: its snapshots, their lists, and the objects as they were."""

from __future__ import annotations

from collections.abc import AsyncIterator

from mempersist import canonical
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectInfo, ObjectNotFound, ObjectStore, PreconditionFailed
from mempersist_ops.archive_file.layout import ObjectLine, decode_line
from mempersist_ops.backup import layout
from mempersist_ops.backup.layout import Snapshot
from mempersist_ops.stores.read_only import ReadOnlyObjects


async def prepare(store: ObjectStore) -> None:
    """Make an empty store a backup's. :raises MempersistError: VALIDATION for one that holds something else."""
    page = await store.list("", limit=1)
    try:
        if page.objects:
            await require(store)
        else:
            await store.put(layout.FORMAT_KEY, layout.FORMAT_DATA, if_absent=True)
    except PreconditionFailed:
        await require(store)


async def require(store: ObjectStore) -> None:
    """:raises MempersistError: VALIDATION unless this is a backup of a format that is known here."""
    try:
        known = await store.get(layout.FORMAT_KEY) == layout.FORMAT_DATA
    except ObjectNotFound:
        known = False
    if not known:
        raise MempersistError(Code.VALIDATION, "backup: there is no mempersist backup; name its directory")


async def snapshot_ids(store: ObjectStore) -> list[str]:
    """Oldest first."""
    found = []
    cursor: str | None = None
    while True:
        page = await store.list(layout.SNAPSHOTS, cursor=cursor)
        found += [info.key.removeprefix(layout.SNAPSHOTS).removesuffix(".json") for info in page.objects]
        cursor = page.cursor
        if cursor is None:
            return found


async def snapshot(store: ObjectStore, snapshot_id: str) -> Snapshot:
    """:raises MempersistError: NOT_FOUND, or CANONICAL_STORAGE for a damaged one."""
    try:
        found = layout.decode_snapshot(await store.get(layout.snapshot_key(snapshot_id)))
    except ObjectNotFound:
        raise MempersistError(Code.NOT_FOUND, f"backup: there is no snapshot {snapshot_id}") from None
    except ValueError:
        raise layout.damaged(f"snapshot {snapshot_id}", "is damaged; use another") from None
    if found.id != snapshot_id:
        raise layout.damaged(f"snapshot {snapshot_id}", "says that it is another; use another")
    return found


async def lines(store: ObjectStore, of: Snapshot) -> AsyncIterator[ObjectLine]:
    """The snapshot's objects in its order. :raises MempersistError: CANONICAL_STORAGE for a damaged part."""
    for part in of.parts:
        try:
            data = await store.get(layout.list_part(part))
        except ObjectNotFound:
            raise layout.damaged(f"list {part}", "is missing") from None
        if canonical.sha256_hex(data) != part:
            raise layout.damaged(f"list {part}", "is damaged")
        for line in data.splitlines():
            yield decode_line(line)


class ObjectsThen(ReadOnlyObjects):
    """The objects of a snapshot under their own keys, as a store."""

    def __init__(self, store: ObjectStore, listed: dict[str, ObjectLine]) -> None:
        super().__init__(listed)
        self._store, self._listed = store, listed

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key not in self._listed:
            raise ObjectNotFound
        return await self._store.get(layout.blob(self._listed[key].sha256), offset=offset, length=length)

    def _info(self, key: str) -> ObjectInfo:
        line = self._listed[key]
        return ObjectInfo(key, line.size, line.sha256, "1980-01-01T00:00:00.000Z")
