"""An archive file as an object store that can only be read: what a rebuild folds to prove the file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

from mempersist.ports import ObjectInfo, ObjectNotFound, StorageError
from mempersist_ops.archive_file import layout
from mempersist_ops.stores.read_only import ReadOnlyObjects


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


class ZipObjects(ReadOnlyObjects):
    """The members of ``archive`` that are canonical objects."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        super().__init__(name for name in archive.namelist() if layout.is_key(name))
        self._archive = archive

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        with member(self._archive, key) as file:
            file.seek(offset)
            return file.read(-1 if length is None else length)

    def _info(self, key: str) -> ObjectInfo:
        info = self._archive.getinfo(key)
        return ObjectInfo(key, info.file_size, f"{info.CRC:08x}", "1980-01-01T00:00:00.000Z")
