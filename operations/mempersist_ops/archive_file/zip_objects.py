"""An archive file as an object store that can only be read: what a rebuild folds to prove the file."""

from __future__ import annotations

import zipfile
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, NoReturn

from mempersist.ports import (
    Body,
    ObjectInfo,
    ObjectNotFound,
    ObjectPage,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from mempersist_ops.archive_file import layout


@contextmanager
def member(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    """Open a member. :raises ObjectNotFound: :raises StorageError: where the ZIP is damaged, also while it is read."""
    try:
        with archive.open(name) as file:
            yield file
    except KeyError:
        raise ObjectNotFound(name) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise StorageError(f"{name} cannot be read from the ZIP ({type(error).__name__})") from error


class ZipObjects:
    """The members of ``archive`` that are canonical objects. Every write :raises StorageError:"""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._keys = sorted(name for name in archive.namelist() if layout.is_key(name))

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        with member(self._archive, key) as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    async def head(self, key: str) -> ObjectInfo | None:
        try:
            return self._info(key)
        except KeyError:
            return None

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        """As the port says; ``cursor`` is the last key or folded prefix of the page before."""
        objects: list[ObjectInfo] = []
        prefixes: list[str] = []
        at = bisect_left(self._keys, prefix) if cursor is None else self._after(cursor, delimiter)
        last = ""
        while at < len(self._keys) and self._keys[at].startswith(prefix):
            if len(objects) + len(prefixes) == limit:
                return ObjectPage(tuple(objects), tuple(prefixes), last)
            key = self._keys[at]
            folded = _folded(key, prefix, delimiter)
            if folded is None:
                objects.append(self._info(key))
                last, at = key, at + 1
            else:
                prefixes.append(folded)
                last, at = folded, self._after(folded, delimiter)
        return ObjectPage(tuple(objects), tuple(prefixes), None)

    def _after(self, cursor: str, delimiter: str | None) -> int:
        """Where the keys behind ``cursor`` begin: behind everything under it if it is a folded prefix."""
        if delimiter is not None and cursor.endswith(delimiter):
            return bisect_left(self._keys, cursor[:-1] + chr(ord(cursor[-1]) + 1))
        return bisect_right(self._keys, cursor)

    def _info(self, key: str) -> ObjectInfo:
        info = self._archive.getinfo(key)
        return ObjectInfo(key, info.file_size, f"{info.CRC:08x}", "1980-01-01T00:00:00.000Z")

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        del body
        if if_absent and await self.head(key) is not None:
            raise PreconditionFailed(key)
        _refuse(key)

    async def delete(self, keys: Sequence[str]) -> None:
        _refuse(", ".join(keys))

    async def create_multipart(self, key: str) -> str:
        _refuse(key)

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        del upload_id, number, body
        _refuse(key)

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        del upload_id, parts
        _refuse(key)

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        del upload_id
        _refuse(key)


def _folded(key: str, prefix: str, delimiter: str | None) -> str | None:
    if delimiter is None:
        return None
    cut = key.find(delimiter, len(prefix))
    return None if cut < 0 else key[: cut + len(delimiter)]


def _refuse(what: str) -> NoReturn:
    raise StorageError(f"an archive file is read only: {what}")
