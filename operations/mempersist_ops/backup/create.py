"""Taking a snapshot: what is new is copied, what was there is not read again, and the whole is folded as a proof."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable

from mempersist import timestamps
from mempersist.errors import MempersistError
from mempersist.ports import AccountId, Clock, Ids, ObjectNotFound, ObjectStore
from mempersist_ops.archive_file import plan, scratch
from mempersist_ops.archive_file.layout import BLOCK_BYTES, ObjectLine, sha256_in
from mempersist_ops.backup import layout, repository
from mempersist_ops.backup.layout import Snapshot

Progress = Callable[[int, int], None]
_HELD_BYTES = 8 * 1024 * 1024


async def create(
    archive: ObjectStore,
    account: AccountId,
    store: ObjectStore,
    key: bytes,
    clock: Clock,
    ids: Ids,
    progress: Progress = lambda *_: None,
) -> Snapshot:
    """Copy what ``store`` does not have of ``account``'s objects, and write a snapshot that names them all.

    Objects never change under their keys, so one that the last snapshot has, with the same size, is not read again.
    The snapshot is written last: stopped anywhere, the next one finds the copies that were made. Writes may go on
    meanwhile; the snapshot is of one moment.

    :param key: signs the snapshot.
    :raises MempersistError: CANONICAL_STORAGE where an object of the archive is missing or damaged; nothing is written
        then that a later snapshot could mistake for a good one.
    """
    await repository.prepare(store)
    before = await _listed_before(store)
    chosen = await plan.objects_of(archive, account, sources=True)
    listed: dict[str, ObjectLine] = {}
    new_objects = new_bytes = 0
    for done, name in enumerate(chosen):
        progress(done, len(chosen))
        info = await archive.head(name)
        if info is None:
            raise layout.damaged(f"object {name}", "is gone; its conversation was deleted meanwhile, or it is lost")
        known = before.get(name)
        if known is not None and known.size == info.size:
            listed[name] = known
            continue
        listed[name] = await _copied(archive, store, name, info.size)
        new_objects, new_bytes = new_objects + 1, new_bytes + info.size
    digest = (await scratch.digest_of(repository.ObjectsThen(store, listed))).total
    parts = []
    for part in layout.cut(listed.values()):
        sha256 = hashlib.sha256(part).hexdigest()
        if await store.head(layout.list_part(sha256)) is None:
            await store.put(layout.list_part(sha256), part)
        parts.append(sha256)
    now = timestamps.from_ms(clock.now_ms())
    made = Snapshot(
        f"{now.replace(':', '').replace('-', '').replace('.', '')}-{ids.uuid()[:8]}",
        now,
        account,
        len(listed),
        sum(line.size for line in listed.values()),
        tuple(parts),
        digest,
        new_objects,
        new_bytes,
    ).signed(key)
    await store.put(layout.snapshot_key(made.id), made.encode(), if_absent=True)
    progress(len(chosen), len(chosen))
    return made


async def _listed_before(store: ObjectStore) -> dict[str, ObjectLine]:
    """What the newest snapshot that can be read has; nothing where there is none."""
    for snapshot_id in reversed(await repository.snapshot_ids(store)):
        try:
            of = await repository.snapshot(store, snapshot_id)
            return {line.key: line async for line in repository.lines(store, of)}
        except MempersistError:
            continue
    return {}


async def _copied(archive: ObjectStore, store: ObjectStore, name: str, size: int) -> ObjectLine:
    held = await _read(archive, name) if size <= _HELD_BYTES else None
    hashed = hashlib.sha256(held or b"")
    if held is None:
        async for block in _blocks(archive, name, size):
            hashed.update(block)
    sha256 = hashed.hexdigest()
    if sha256_in(name) not in {None, sha256} or (held is not None and len(held) != size):
        raise layout.damaged(f"object {name}", "is not what its key says; `mempersist verify` tells more")
    where = layout.blob(sha256)
    if await store.head(where) is None:
        await store.put(where, held if held is not None else _blocks(archive, name, size))
    return ObjectLine(name, sha256, size)


async def _read(archive: ObjectStore, name: str) -> bytes:
    try:
        return await archive.get(name)
    except ObjectNotFound:
        raise layout.damaged(f"object {name}", "is gone; take the snapshot again") from None


async def _blocks(archive: ObjectStore, name: str, size: int) -> AsyncIterator[bytes]:
    for offset in range(0, size, BLOCK_BYTES):
        yield await archive.get(name, offset=offset, length=BLOCK_BYTES)
