"""The object store on a file system: what R2 promises, with files that a person can look at.

An object is written to a temporary file, synced, and only then given its name, so that a name always stands for a whole
object; ``os.link`` makes the exclusive create, which one of any number of processes wins. Directories are synced before
a put returns. Writes run in a few threads, so that concurrent puts share the disk's syncs.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TypeVar

from mempersist import timestamps
from mempersist.ports import (
    Body,
    ObjectInfo,
    ObjectNotFound,
    ObjectPage,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from mempersist.rules.objects import check_key, check_part_number, check_parts
from mempersist_ops.stores.embedded.paths import path_of
from mempersist_ops.stores.embedded.walking import MISSING, walk

T = TypeVar("T")

_WRITERS = 12
_ABANDONED_SECONDS = 3600.0
_COPY_BYTES = 1024 * 1024
_REMEMBERED_DIRECTORIES = 4096
_UPLOAD_ID = re.compile(r"[0-9a-f]{32}")


class FileObjectStore:
    """:class:`mempersist.ports.ObjectStore` below ``root``, which any number of processes may share.

    Objects lie in ``root/objects``, open uploads in ``root/uploads``, unfinished files in ``root/tmp``.

    :raises StorageError: if the directories cannot be made.
    """

    def __init__(self, root: Path) -> None:
        self._objects, self._uploads, self._temporary = root / "objects", root / "uploads", root / "tmp"
        try:
            for directory in (self._objects, self._uploads, self._temporary):
                directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _storage_error(error) from None
        self._remove_abandoned()
        self._threads = ThreadPoolExecutor(_WRITERS, thread_name_prefix="objects")
        self._synced: set[Path] = set()

    def close(self) -> None:
        self._threads.shutdown()

    # -------------------------------------------------------------- single objects

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        path = self._path(key)
        if if_absent and path.exists():
            raise PreconditionFailed(key)
        if isinstance(body, bytes):
            return await self._run(lambda: self._put(key, path, body, if_absent))
        temporary, _ = await self._write_stream(body)
        return await self._run(lambda: self._publish(key, temporary, path, if_absent))

    def _put(self, key: str, path: Path, data: bytes, if_absent: bool) -> ObjectInfo:
        temporary = self._new_temporary()
        try:
            with temporary.open("xb") as file:
                file.write(data)
                _sync(file)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return self._publish(key, temporary, path, if_absent)

    def _publish(self, key: str, temporary: Path, path: Path, if_absent: bool) -> ObjectInfo:
        """Give a synced file its name, durably."""
        try:
            info = _info(key, temporary.stat())
            while not self._named(key, temporary, path, if_absent):
                # A delete has just removed the directory that it had emptied; the temporary file is this call's own.
                self._forget(path.parent)
            with suppress(FileNotFoundError):  # deleted already, by another, and its directory with it
                _sync_directory(path.parent)
            return info
        finally:
            temporary.unlink(missing_ok=True)

    def _named(self, key: str, temporary: Path, path: Path, if_absent: bool) -> bool:
        try:
            self._make_directory(path.parent)
            if if_absent:
                os.link(temporary, path)
            else:
                temporary.replace(path)
        except FileNotFoundError:
            if not temporary.exists():
                raise
            return False
        except FileExistsError:
            raise PreconditionFailed(key) from None
        return True

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        path = self._path(key)
        try:
            with path.open("rb") as file:
                file.seek(offset)
                return file.read(-1 if length is None else length)
        except OSError as error:
            if error.errno in MISSING:
                raise ObjectNotFound(key) from None
            raise _storage_error(error) from None

    async def head(self, key: str) -> ObjectInfo | None:
        path = self._path(key)
        try:
            return _info(key, path.stat())
        except OSError as error:
            if error.errno in MISSING:
                return None
            raise _storage_error(error) from None

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        await self._run(lambda: self._delete(paths))

    def _delete(self, paths: Sequence[Path]) -> None:
        parents = set()
        for path in paths:
            try:
                path.unlink()
            except OSError as error:
                if error.errno not in MISSING:
                    raise
            else:
                parents.add(path.parent)
        for parent in parents:
            with suppress(FileNotFoundError):  # emptied and removed by another of these, or by another process
                _sync_directory(parent)
            self._remove_empty(parent)

    def _remove_empty(self, directory: Path) -> None:
        while directory != self._objects:
            try:
                directory.rmdir()
            except OSError:
                return  # not empty, or another has removed it
            self._synced.discard(directory)
            directory = directory.parent

    def _forget(self, directory: Path) -> None:
        while directory != self._objects:
            self._synced.discard(directory)
            directory = directory.parent

    # -------------------------------------------------------------- listing

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        objects: list[ObjectInfo] = []
        prefixes: list[str] = []
        after = cursor.encode() if cursor is not None else None
        last = cursor
        try:
            for key, path in walk(self._objects, prefix.encode(), after, fold=delimiter == "/"):
                name = key.decode()
                rest = name[len(prefix) :]
                folded = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
                if folded is not None and (folded == last or (after is not None and folded.encode() <= after)):
                    continue
                info = None if folded is not None else _stat(name, path)
                if folded is None and info is None:
                    continue  # deleted meanwhile
                if len(objects) + len(prefixes) == limit:
                    return ObjectPage(tuple(objects), tuple(prefixes), last)
                if folded is not None:
                    prefixes.append(folded)
                elif info is not None:
                    objects.append(info)
                last = folded or name
        except OSError as error:
            raise _storage_error(error) from None
        return ObjectPage(tuple(objects), tuple(prefixes), None)

    # -------------------------------------------------------------- multipart

    async def create_multipart(self, key: str) -> str:
        check_key(key)
        upload_id = secrets.token_hex(16)
        directory = self._uploads / upload_id

        def create() -> None:
            directory.mkdir()
            with (directory / "key").open("xb") as file:
                file.write(key.encode())
                _sync(file)
            _sync_directory(directory)
            _sync_directory(self._uploads)

        await self._run(create)
        return upload_id

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        check_part_number(number)
        directory = self._upload(key, upload_id)
        temporary, etag = await self._write_stream(body)
        size = temporary.stat().st_size

        def publish() -> None:
            try:
                for earlier in directory.glob(f"{number:05d}-*"):
                    if earlier.name != f"{number:05d}-{etag}":
                        earlier.unlink(missing_ok=True)
                temporary.replace(directory / f"{number:05d}-{etag}")
                _sync_directory(directory)
            except FileNotFoundError:
                raise ObjectNotFound(key) from None
            finally:
                temporary.unlink(missing_ok=True)

        await self._run(publish)
        return UploadedPart(number, etag, size)

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        check_parts(parts)
        directory = self._upload(key, upload_id)
        stored = {int(path.name[:5]): path for path in directory.glob("*-*")}
        for part in parts:
            if part.number not in stored:
                raise ObjectNotFound(key)
            if stored[part.number].name[6:] != part.etag:
                raise StorageError(f"part {part.number} was written again with other bytes")

        def join() -> ObjectInfo:
            temporary = self._new_temporary()
            try:
                with temporary.open("xb") as whole:
                    for part in parts:
                        with stored[part.number].open("rb") as piece:
                            shutil.copyfileobj(piece, whole, _COPY_BYTES)
                    _sync(whole)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            info = self._publish(key, temporary, self._path(key), if_absent=False)
            shutil.rmtree(directory, ignore_errors=True)
            return info

        return await self._run(join)

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        with suppress(ObjectNotFound):
            directory = self._upload(key, upload_id)
            await self._run(lambda: shutil.rmtree(directory, ignore_errors=True))

    def _upload(self, key: str, upload_id: str) -> Path:
        directory = self._uploads / upload_id
        try:
            if _UPLOAD_ID.fullmatch(upload_id) and (directory / "key").read_bytes() == key.encode():
                return directory
        except OSError as error:
            if error.errno not in MISSING:
                raise _storage_error(error) from None
        raise ObjectNotFound(key)

    # -------------------------------------------------------------- files

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._objects / path_of(key)

    async def _run(self, work: Callable[[], T]) -> T:
        """``work`` in a writer's thread. It is never abandoned half-way: a cancelled caller waits for its end."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, work)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise
        except OSError as error:
            raise _storage_error(error) from None

    async def _write_stream(self, body: Body) -> tuple[Path, str]:
        """A synced temporary file with ``body``, and the MD5 of its bytes. What ``body`` raises is raised as it is."""
        temporary = self._new_temporary()
        hasher = hashlib.md5(usedforsecurity=False)
        try:
            file = _on_disk(lambda: temporary.open("xb"))
            with file:
                async for chunk in _chunks(body):
                    hasher.update(chunk)
                    _on_disk(partial(file.write, chunk))
                await self._run(lambda: _sync(file))
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return temporary, hasher.hexdigest()

    def _new_temporary(self) -> Path:
        return self._temporary / secrets.token_hex(16)

    def _make_directory(self, directory: Path) -> None:
        """Create it with what is missing above, each name synced; once for each directory and process."""
        if directory in self._synced:
            return
        missing = []
        at = directory
        while at != self._objects and at not in self._synced:
            missing.append(at)
            at = at.parent
        for path in reversed(missing):
            with suppress(FileExistsError):
                path.mkdir()
            # Even one that another process made may not have reached the disk yet.
            _sync_directory(path.parent)
        if len(self._synced) > _REMEMBERED_DIRECTORIES:
            self._synced.clear()  # it only spares calls; an archive may have any number of directories
        self._synced.update(missing)

    def _remove_abandoned(self) -> None:
        """Temporary files that no living write can still own."""
        before = time.time() - _ABANDONED_SECONDS
        for path in self._temporary.iterdir():
            with suppress(OSError):
                if path.stat().st_mtime < before:
                    path.unlink()


async def _chunks(body: Body) -> AsyncIterator[bytes]:
    if isinstance(body, bytes):
        yield body
    else:
        async for chunk in body:
            yield chunk


def _on_disk(work: Callable[[], T]) -> T:
    try:
        return work()
    except OSError as error:
        raise _storage_error(error) from None


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _info(key: str, stat: os.stat_result) -> ObjectInfo:
    modified = timestamps.from_ms(stat.st_mtime_ns // 1_000_000)
    return ObjectInfo(key, stat.st_size, f"{stat.st_mtime_ns:x}-{stat.st_ino:x}-{stat.st_size:x}", modified)


def _stat(key: str, path: Path) -> ObjectInfo | None:
    try:
        return _info(key, path.stat())
    except FileNotFoundError:
        return None


def _storage_error(error: OSError) -> StorageError:
    return StorageError(f"the disk could not do it: {error.strerror or type(error).__name__}")
