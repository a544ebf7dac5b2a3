"""Inflated members as scratch objects, so that reading one can go on at any byte.

Deflate has no points to resume at, so a packed member is inflated into pieces of equal size once, and read from them.
The last piece is written only when the member has been inflated to its end and its checksum was right: where it
stands, all stand. Scratch objects may vanish; the member is then inflated again.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from mempersist.imports.runs import keep_lease
from mempersist.imports.source import ByteSource
from mempersist.imports.zipreader import Directory, Member, inflate
from mempersist.jobs import Job
from mempersist.limits import MAX_TURN_STAGE_BYTES, STAGE_PIECE_BYTES
from mempersist.ports import ObjectNotFound, ObjectStore, Ports

_PIECE_DIGITS = 6
_RENEW_EVERY_PIECES = 16


class PiecesLost(Exception):
    """A scratch object has vanished; ``prefix`` says whose."""

    def __init__(self, prefix: str) -> None:
        super().__init__("scratch objects of an import have vanished")
        self.prefix = prefix


@dataclass(frozen=True, slots=True)
class PieceSource:
    """A staged member as a source of bytes."""

    objects: ObjectStore
    prefix: str
    size: int

    async def read(self, offset: int, length: int) -> bytes:
        """:raises PiecesLost:"""
        end = min(offset + length, self.size)
        parts = []
        while offset < end:
            index, within = divmod(offset, STAGE_PIECE_BYTES)
            wanted = min(end - offset, STAGE_PIECE_BYTES - within)
            try:
                part = await self.objects.get(_piece(self.prefix, index), offset=within, length=wanted)
            except ObjectNotFound:
                raise PiecesLost(self.prefix) from None
            if len(part) != wanted:
                raise PiecesLost(self.prefix)
            parts.append(part)
            offset += wanted
        return parts[0] if len(parts) == 1 else b"".join(parts)


async def is_staged(objects: ObjectStore, prefix: str, member: Member) -> bool:
    return member.size == 0 or await objects.head(_piece(prefix, (member.size - 1) // STAGE_PIECE_BYTES)) is not None


async def stage(ports: Ports, job: Job, source: ByteSource, directory: Directory, member: Member, prefix: str) -> bool:
    """Inflate ``member`` into pieces under ``prefix``; False when the turn's bound came first and more is to do.

    :raises ItemError: the member is damaged; its pieces are of no use then.
    :raises LeaseLost:
    """
    present = await _present(ports.objects, prefix)
    written = 0
    index = 0
    held = bytearray()
    async with contextlib.aclosing(inflate(source, directory, member)) as chunks:
        async for chunk in chunks:
            held += chunk
            while len(held) > STAGE_PIECE_BYTES:
                if index not in present:
                    if written >= MAX_TURN_STAGE_BYTES:
                        return False
                    await ports.objects.put(_piece(prefix, index), bytes(held[:STAGE_PIECE_BYTES]))
                    written += STAGE_PIECE_BYTES
                if index % _RENEW_EVERY_PIECES == _RENEW_EVERY_PIECES - 1:
                    await keep_lease(ports, job)
                del held[:STAGE_PIECE_BYTES]
                index += 1
    if held:
        await ports.objects.put(_piece(prefix, index), bytes(held))
    return True


async def drop(objects: ObjectStore, prefix: str) -> None:
    """Delete all scratch objects under ``prefix``."""
    while True:
        page = await objects.list(prefix)
        if not page.objects:
            return
        await objects.delete([info.key for info in page.objects])


def _piece(prefix: str, index: int) -> str:
    return f"{prefix}{index:0{_PIECE_DIGITS}d}"


async def _present(objects: ObjectStore, prefix: str) -> set[int]:
    present: set[int] = set()
    cursor: str | None = None
    while True:
        page = await objects.list(prefix, cursor=cursor)
        present.update(int(info.key[len(prefix) :]) for info in page.objects if info.size == STAGE_PIECE_BYTES)
        cursor = page.cursor
        if cursor is None:
            return present
