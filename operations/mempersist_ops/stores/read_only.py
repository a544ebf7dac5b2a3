"""Object stores that only read: the part of the port that needs nothing but a sorted list of keys."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import NoReturn

from mempersist.ports import Body, ObjectInfo, ObjectPage, PreconditionFailed, StorageError, UploadedPart


class ReadOnlyObjects(ABC):
    """Objects under ``keys``. Every write :raises StorageError:"""

    def __init__(self, keys: Iterable[str]) -> None:
        self._keys = sorted(keys, key=str.encode)
        self._known = frozenset(self._keys)

    @abstractmethod
    def _info(self, key: str) -> ObjectInfo:
        """What is known of an object that is there."""

    async def head(self, key: str) -> ObjectInfo | None:
        return self._info(key) if key in self._known else None

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
    raise StorageError(f"this store only reads: {what}")
