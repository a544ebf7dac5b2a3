"""Reading an archive file back: the whole file is proved first, then copied object by object, then folded.

What may be restored where:

- into a directory without conversations, imports or assets: always. The account that such a directory made for itself
  at its first start gives way to the file's.
- into any other: only where every object that both have is the same, byte for byte. That is so for copies of one
  archive, of which the file may hold more or less; it is never so for two archives that began apart. Conversations
  that were deleted since the file was written stay deleted.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mempersist.archive import codec, keys
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectNotFound, ObjectStore, StorageError
from mempersist_ops.archive_file import layout, scratch
from mempersist_ops.archive_file.zip_objects import ZipObjects, member

Progress = Callable[[int, int], None]
_SUMMARY_LIMIT = 1024 * 1024
_LINE_LIMIT = 4096


@dataclass(frozen=True, slots=True)
class Restored:
    """How many objects were written, stood there already, or belong to conversations deleted since."""

    written: int
    unchanged: int
    left_out: int


def is_archive_file(path: Path) -> bool:
    """Whether ``path`` is a ZIP that `export` wrote, by the member that says so."""
    try:
        with zipfile.ZipFile(path) as archive:
            return layout.SUMMARY in archive.NameToInfo
    except (zipfile.BadZipFile, OSError, NotImplementedError):
        return False


@contextmanager
def opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """:raises MempersistError: PERMANENT_PARSER if it is no readable ZIP."""
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, OSError, NotImplementedError) as error:
        raise layout.damaged(str(path), f"cannot be opened ({type(error).__name__})") from error
    with archive:
        yield archive


async def check(archive: zipfile.ZipFile, progress: Progress = lambda *_: None) -> layout.Summary:
    """Prove the file: every object is listed and there, has its size and hash, and together they fold to its digest.

    :raises MempersistError: PERMANENT_PARSER that names the first object that is not right.
    """
    summary = _summary(archive)
    _check_names(archive)
    listed = hashlib.sha256()
    count = size = 0
    before = ""
    for count, (raw, line) in enumerate(_lines(archive), start=1):
        progress(count - 1, summary.objects)
        if before and layout.in_order((before, line.key)) != [before, line.key]:
            raise layout.damaged(line.key, "stands out of order in the list")
        before = line.key
        listed.update(raw)
        _check_object(archive, line)
        size += line.size
    members = len(archive.NameToInfo) - 2
    if listed.hexdigest() != summary.objects_sha256 or (count, size) != (summary.objects, summary.size_bytes):
        raise layout.damaged(layout.OBJECTS, "is not the list that the summary names")
    if members != count:
        raise layout.damaged(f"the ZIP has {members} objects, but {count}", "are listed")
    if await _digest(archive) != summary.catalog_digest:
        raise layout.damaged("the objects", "do not fold to the catalog digest of the summary")
    progress(count, summary.objects)
    return summary


async def buried(archive: zipfile.ZipFile, store: ObjectStore) -> frozenset[str]:
    """Conversations of the file that ``store`` has deleted since: restoring them would dig up what was purged."""
    found = set()
    for conversation_id in sorted({key.split("/")[2] for key in archive.namelist() if layout.is_head(key)}):
        page = await store.list(keys.head_prefix(conversation_id))
        if page.objects and page.objects[-1].key not in archive.NameToInfo:
            newest = codec.decode_head(await store.get(page.objects[-1].key))
            if newest.deleted:
                found.add(conversation_id)
    return frozenset(found)


async def check_fits(archive: zipfile.ZipFile, store: ObjectStore, leave_out: frozenset[str] = frozenset()) -> None:
    """:raises MempersistError: IMPORT_CONFLICT that names the first object of which ``store`` has another one."""
    for _, line in _lines(archive):
        if _conversation_of(line.key) not in leave_out:
            await _stands(store, line)


async def copy(
    archive: zipfile.ZipFile,
    store: ObjectStore,
    summary: layout.Summary,
    *,
    leave_out: frozenset[str] = frozenset(),
    progress: Progress = lambda *_: None,
) -> Restored:
    """Write the checked file's objects into ``store``, in file order. What stands there already is left alone, so that
    an interrupted restore is simply run again.

    :param leave_out: conversations not to restore, see :func:`buried`.
    :raises MempersistError: IMPORT_CONFLICT where ``store`` has another object, which :func:`check_fits` rules out.
    """
    written = unchanged = 0
    for done, (_, line) in enumerate(_lines(archive)):
        progress(done, summary.objects)
        if _conversation_of(line.key) in leave_out:
            continue
        if await _stands(store, line):
            unchanged += 1
        else:
            await store.put(line.key, _blocks(archive, line.key), if_absent=True)
            written += 1
    progress(summary.objects, summary.objects)
    return Restored(written, unchanged, summary.objects - written - unchanged)


def _conversation_of(key: str) -> str | None:
    return key.split("/")[2] if key.startswith(keys.CONVERSATIONS) else None


async def counts_as_empty(store: ObjectStore) -> bool:
    """Whether the store holds nothing but what a first start writes."""
    for prefix in (keys.CONVERSATIONS, keys.IMPORTS, keys.ASSETS):
        if (await store.list(prefix, limit=1)).objects:
            return False
    for key in await _account_keys(store):
        if codec.decode_account_entry(await store.get(key)).operation != "create":
            return False
    return True


async def clear_accounts(store: ObjectStore) -> None:
    """Remove the account logs of a store that :func:`counts_as_empty`."""
    await store.delete(await _account_keys(store))


async def _account_keys(store: ObjectStore) -> list[str]:
    return [info.key for info in (await store.list(keys.ACCOUNTS)).objects]


# ------------------------------------------------------------------ the file's parts


def _summary(archive: zipfile.ZipFile) -> layout.Summary:
    try:
        with member(archive, layout.SUMMARY) as file:
            return layout.decode_summary(file.read(_SUMMARY_LIMIT))
    except (ObjectNotFound, StorageError):
        raise layout.damaged(layout.SUMMARY, "is missing or cannot be read") from None


def _check_names(archive: zipfile.ZipFile) -> None:
    names = archive.namelist()
    if len(names) != len(archive.NameToInfo):
        raise layout.damaged("the ZIP", "has two members of one name")
    for name in names:
        if name not in {layout.SUMMARY, layout.OBJECTS} and not layout.is_key(name):
            raise layout.damaged(repr(name[:200]), "is not the key of an archive's object")


def _lines(archive: zipfile.ZipFile) -> Iterator[tuple[bytes, layout.ObjectLine]]:
    try:
        with member(archive, layout.OBJECTS) as file:
            while raw := file.readline(_LINE_LIMIT):
                yield raw, layout.decode_line(raw)
    except (ObjectNotFound, StorageError):
        raise layout.damaged(layout.OBJECTS, "is missing or cannot be read") from None


def _check_object(archive: zipfile.ZipFile, line: layout.ObjectLine) -> None:
    hashed = hashlib.sha256()
    size = 0
    try:
        with member(archive, line.key) as file:
            # One byte more than listed is enough to know; a bomb is not unpacked further.
            while size <= line.size and (block := file.read(min(layout.BLOCK_BYTES, line.size - size + 1))):
                hashed.update(block)
                size += len(block)
    except ObjectNotFound:
        raise layout.damaged(line.key, "is listed but missing") from None
    except StorageError:
        raise layout.damaged(line.key, "cannot be unpacked") from None
    if size != line.size or hashed.hexdigest() != line.sha256:
        raise layout.damaged(line.key, "does not have the size and hash that the list gives")
    if layout.sha256_in(line.key) not in {None, line.sha256}:
        raise layout.damaged(line.key, "does not match the hash in its key")


async def _digest(archive: zipfile.ZipFile) -> str:
    try:
        return (await scratch.digest_of(ZipObjects(archive))).total
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise layout.damaged("an object", f"that the archive needs is missing or damaged ({error})") from error


async def _blocks(archive: zipfile.ZipFile, key: str) -> AsyncIterator[bytes]:
    with member(archive, key) as file:
        while block := file.read(layout.BLOCK_BYTES):
            yield block


async def _stands(store: ObjectStore, line: layout.ObjectLine) -> bool:
    """Whether the object is there with the bytes of the file. :raises MempersistError: if its bytes are others."""
    info = await store.head(line.key)
    if info is None:
        return False
    hashed = hashlib.sha256()
    if info.size == line.size:
        for offset in range(0, info.size, layout.BLOCK_BYTES):
            hashed.update(await store.get(line.key, offset=offset, length=layout.BLOCK_BYTES))
    if info.size != line.size or hashed.hexdigest() != line.sha256:
        message = f"the archive here has another {line.key} than the file; restore into an empty directory instead"
        raise MempersistError(Code.IMPORT_CONFLICT, message)
    return True
