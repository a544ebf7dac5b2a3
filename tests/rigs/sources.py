"""Byte sources for scanners and archive readers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TypeVar

Item = TypeVar("Item")


@dataclass
class BytesSource:
    """Bytes in memory. ``longest`` is the longest range that was asked for, ``total`` the bytes handed out."""

    data: bytes
    longest: int = 0
    total: int = 0

    @property
    def size(self) -> int:
        return len(self.data)

    async def read(self, offset: int, length: int) -> bytes:
        self.longest = max(self.longest, length)
        part = self.data[offset : offset + length]
        self.total += len(part)
        return part


@dataclass
class PatternSource:
    """A large file that is never held: ``parts`` are (length, maker), ``maker(offset, length)`` gives its bytes."""

    parts: list[tuple[int, Callable[[int, int], bytes]]]
    longest: int = 0
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = sum(length for length, _ in self.parts)

    async def read(self, offset: int, length: int) -> bytes:
        self.longest = max(self.longest, length)
        out = []
        begin = 0
        for part_length, make in self.parts:
            low, high = max(offset, begin), min(offset + length, begin + part_length)
            if low < high:
                out.append(make(low - begin, high - low))
            begin += part_length
        return b"".join(out)


def literal(data: bytes) -> tuple[int, Callable[[int, int], bytes]]:
    """A part of a :class:`PatternSource` that is these bytes."""
    return len(data), lambda offset, length: data[offset : offset + length]


def repeated(byte: bytes, times: int) -> tuple[int, Callable[[int, int], bytes]]:
    """A part of a :class:`PatternSource` that is one byte many times."""
    return times, lambda _offset, length: byte * length


async def until_error(items: AsyncIterator[Item]) -> tuple[list[Item], Exception | None]:
    """What came before the first error, and that error."""
    seen: list[Item] = []
    try:
        async for item in items:
            seen.append(item)  # noqa: PERF401 - a comprehension would lose them at the error
    except Exception as error:
        return seen, error
    return seen, None


async def collect(items: AsyncIterator[Item]) -> list[Item]:
    return [item async for item in items]
