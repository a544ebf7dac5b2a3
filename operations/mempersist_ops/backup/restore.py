"""Writing a snapshot's objects into an empty archive, all of them or some; what is damaged is left out and named."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass, field

from mempersist.archive import codec, keys
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectStore, PreconditionFailed
from mempersist_ops.archive_file.layout import BLOCK_BYTES, ObjectLine, is_head
from mempersist_ops.archive_file.restore import clear_accounts, counts_as_empty
from mempersist_ops.backup import check, layout, repository
from mempersist_ops.backup.layout import Snapshot

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to restore. ``conversation``: one alone, by id. ``until``: as of this time, ISO 8601 UTC."""

    conversation: str | None = None
    until: str | None = None

    @property
    def everything(self) -> bool:
        return self.conversation is None and self.until is None


@dataclass(slots=True)
class Restored:
    """``left_out``: keys of objects that are damaged or missing in the backup, and of those that need them."""

    written: int = 0
    unchanged: int = 0
    later: int = 0
    left_out: list[str] = field(default_factory=list)


async def restore(
    store: ObjectStore, of: Snapshot, into: ObjectStore, wanted: Wanted, progress: Progress = lambda *_: None
) -> Restored:
    """Copy what is wanted of snapshot ``of`` into an archive that holds nothing yet; run again, it goes on.

    A conversation of which a body is damaged is left out whole: a log must not lead to what is not there.

    :raises MempersistError: IMPORT_CONFLICT for an archive that holds something else; NOT_FOUND for a conversation that
        the snapshot does not have.
    """
    chosen = [line async for line in repository.lines(store, of) if _is_wanted(line.key, wanted)]
    if wanted.conversation is not None and not any(is_head(line.key) for line in chosen):
        raise MempersistError(Code.NOT_FOUND, f"backup: snapshot {of.id} has no conversation {wanted.conversation}")
    await _make_room(into, chosen)
    report = Restored()
    bad = {line.key async for line in _damaged(store, chosen)}
    lost = {_conversation(key) for key in bad} - {None}
    for done, line in enumerate(chosen):
        progress(done, len(chosen))
        if line.key in bad or _conversation(line.key) in lost:
            report.left_out.append(line.key)
        elif wanted.until is not None and await _is_later(store, line, wanted.until):
            report.later += 1
        else:
            await _put(store, line, into, report)
    progress(len(chosen), len(chosen))
    return report


def _is_wanted(key: str, wanted: Wanted) -> bool:
    if wanted.conversation is None:
        return True
    if key.startswith(keys.CONVERSATIONS):
        return _conversation(key) == wanted.conversation
    return key == keys.FORMAT_KEY or key.startswith(keys.ACCOUNTS)


def _conversation(key: str) -> str | None:
    return key.split("/")[2] if key.startswith(keys.CONVERSATIONS) else None


async def _make_room(into: ObjectStore, chosen: Iterable[ObjectLine]) -> None:
    """A first start wrote an account of its own, which gives way. An archive that holds anything else must hold
    nothing but what is being restored, as after an interruption."""
    if await counts_as_empty(into):
        await clear_accounts(into)
        return
    ours = {line.key for line in chosen}
    for prefix in (keys.CONVERSATIONS, keys.IMPORTS, keys.ASSETS):
        page = await into.list(prefix)
        if any(info.key not in ours for info in page.objects):
            message = "backup: the archive there holds other memories; restore into an empty directory"
            raise MempersistError(Code.IMPORT_CONFLICT, message)


async def _damaged(store: ObjectStore, chosen: Iterable[ObjectLine]) -> AsyncIterator[ObjectLine]:
    checked: dict[str, bool] = {}
    for line in chosen:
        if line.sha256 not in checked:
            checked[line.sha256] = await check.blob_problem(store, line.sha256, line.size) is None
        if not checked[line.sha256]:
            yield line


async def _is_later(store: ObjectStore, line: ObjectLine, until: str) -> bool:
    """Whether a log's entry was written after ``until``. Bodies that only later entries need do no harm."""
    if is_head(line.key):
        return codec.decode_head(await store.get(layout.blob(line.sha256))).at > until
    if line.key.startswith(keys.ACCOUNTS):
        entry = codec.decode_account_entry(await store.get(layout.blob(line.sha256)))
        return entry.seq > 0 and entry.at > until
    return False


async def _put(store: ObjectStore, line: ObjectLine, into: ObjectStore, report: Restored) -> None:
    where = layout.blob(line.sha256)
    try:
        if line.size <= BLOCK_BYTES:
            await into.put(line.key, await store.get(where), if_absent=True)
        elif await into.head(line.key) is None:
            await into.put(line.key, _blocks(store, where, line.size))
        else:
            raise PreconditionFailed
        report.written += 1
    except PreconditionFailed:
        info = await into.head(line.key)
        if info is None or info.size != line.size:
            message = f"backup: the archive there has another {line.key}; restore into an empty directory"
            raise MempersistError(Code.IMPORT_CONFLICT, message) from None
        report.unchanged += 1


async def _blocks(store: ObjectStore, where: str, size: int) -> AsyncIterator[bytes]:
    for offset in range(0, size, BLOCK_BYTES):
        yield await store.get(where, offset=offset, length=BLOCK_BYTES)
