"""Writing the archive file: streamed, reproducible, and checked by folding what was written into a scratch catalog."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, ObjectNotFound, ObjectStore
from mempersist_ops.archive_file import layout, plan, scratch
from mempersist_ops.archive_file.zip_objects import ZipObjects

Progress = Callable[[int, int], None]
"""Is told how many of how many objects are done."""


async def export(
    store: ObjectStore, account: AccountId, path: Path, *, sources: bool = True, progress: Progress = lambda *_: None
) -> layout.Summary:
    """Write ``account``'s archive to ``path``, which appears only when it is whole.

    Memory grows with the number of objects (well under a kilobyte each), never with their size. The same objects give
    the same file, byte for byte.

    :raises MempersistError: CANONICAL_STORAGE where an object is missing or damaged; VALIDATION if ``path`` cannot be
        written.
    """
    chosen = await plan.objects_of(store, account, sources=sources)
    with _appearing(path) as file:
        return await _write(store, account, file, chosen, sources=sources, progress=progress)


@contextmanager
def _appearing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its place at ``path`` when it is written, and leaves nothing behind when that fails."""
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".partial")
    except OSError as error:
        raise MempersistError(Code.VALIDATION, f"{path} cannot be written ({error.strerror})") from error
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


async def _write(
    store: ObjectStore,
    account: AccountId,
    file: IO[bytes],
    chosen: Sequence[str],
    *,
    sources: bool,
    progress: Progress,
) -> layout.Summary:
    listed = hashlib.sha256()
    size = 0
    with zipfile.ZipFile(file, "w") as archive, tempfile.TemporaryFile() as lines:
        for done, key in enumerate(chosen):
            progress(done, len(chosen))
            line = await _copy(store, key, archive)
            size += line.size
            encoded = line.encode()
            listed.update(encoded)
            lines.write(encoded)
        lines.seek(0)
        with archive.open(_member(layout.OBJECTS), "w", force_zip64=True) as member:
            shutil.copyfileobj(lines, member)
        progress(len(chosen), len(chosen))
    with zipfile.ZipFile(file, "r") as archive:
        digest = await scratch.digest_of(ZipObjects(archive))
    summary = layout.Summary(account, len(chosen), size, sources, listed.hexdigest(), digest.total)
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(_member(layout.SUMMARY), summary.encode())
    return summary


async def _copy(store: ObjectStore, key: str, archive: zipfile.ZipFile) -> layout.ObjectLine:
    """Copy one object into the file by ranges. :raises MempersistError: if it is gone or not what its key says."""
    info = await store.head(key)
    if info is None:
        raise _changed(key, "is gone; the conversation was deleted meanwhile, or the object is lost")
    member = _member(key)
    member.file_size = info.size
    hashed = hashlib.sha256()
    copied = 0
    with archive.open(member, "w") as target:
        while copied < info.size:
            try:
                block = await store.get(key, offset=copied, length=layout.BLOCK_BYTES)
            except ObjectNotFound:
                block = b""
            if not block:
                raise _changed(key, "ended early")
            hashed.update(block)
            target.write(block)
            copied += len(block)
    sha256 = hashed.hexdigest()
    named = layout.sha256_in(key)
    if named is not None and named != sha256:
        raise _changed(key, "does not match the hash in its key")
    return layout.ObjectLine(key, sha256, copied)


def _member(name: str) -> zipfile.ZipInfo:
    """A member with nothing of this machine or this moment in it; text is packed, what is packed already is not."""
    info = zipfile.ZipInfo(name, layout.MEMBER_TIME)
    info.create_system = 3
    info.external_attr = 0o600 << 16
    packed = name.endswith((".json", ".jsonl"))
    info.compress_type = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    return info


def _changed(key: str, problem: str) -> MempersistError:
    return MempersistError(
        Code.CANONICAL_STORAGE,
        f"export: object {key} {problem}. Export again; if it stays so, the object is lost or damaged",
    )
