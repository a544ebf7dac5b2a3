"""Byte ranges of an upload: what scanners and archive readers read from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from mempersist.ports import ObjectStore


class ByteSource(Protocol):
    """Bytes that can be read in any order. ``size`` is their number."""

    @property
    def size(self) -> int: ...

    async def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes from ``offset`` on, fewer only where the source ends."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """An object of the store, read by ranges."""

    objects: ObjectStore
    key: str
    size: int

    async def read(self, offset: int, length: int) -> bytes:
        """:raises ObjectNotFound: and :raises StorageError: as the store does."""
        wanted = min(length, self.size - offset)
        return await self.objects.get(self.key, offset=offset, length=wanted) if wanted > 0 else b""


@dataclass(frozen=True, slots=True)
class SliceSource:
    """A part of another source: a stored member of an archive, read in place."""

    inner: ByteSource
    offset: int
    size: int

    async def read(self, offset: int, length: int) -> bytes:
        wanted = min(length, self.size - offset)
        return await self.inner.read(self.offset + offset, wanted) if wanted > 0 else b""
