"""Writes ZIP archives by hand, so that every field can lie."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass
class Entry:
    """A member to write. What is None is told truthfully; ``at`` makes the directory point to another offset."""

    name: bytes
    data: bytes = b""
    method: int = 8
    flags: int = 0
    made_by: int = 0x0314
    attributes: int = 0
    crc32: int | None = None
    packed: bytes | None = None
    packed_size: int | None = None
    size: int | None = None
    at: int | None = None
    zip64: bool = False
    descriptor: bool = False

    def packed_bytes(self) -> bytes:
        if self.packed is not None:
            return self.packed
        if self.method != 8:
            return self.data
        stream = zlib.compressobj(9, zlib.DEFLATED, -15)
        return stream.compress(self.data) + stream.flush()


def archive(
    entries: Sequence[Entry], *, prefix: bytes = b"", comment: bytes = b"", zip64: bool = False, disk: int = 0
) -> bytes:
    """The archive's bytes. ``prefix`` comes first and no offset knows of it, as in a self-extracting archive."""
    body = bytearray()
    directory = bytearray()
    for entry in entries:
        packed = entry.packed_bytes()
        crc32 = zlib.crc32(entry.data) if entry.crc32 is None else entry.crc32
        size = len(entry.data) if entry.size is None else entry.size
        packed_size = len(packed) if entry.packed_size is None else entry.packed_size
        offset = len(body) if entry.at is None else entry.at
        flags = entry.flags | (8 if entry.descriptor else 0)
        local = (0, 0, 0) if entry.descriptor else (crc32, packed_size, size)
        if entry.zip64:
            local = (local[0], 0xFFFFFFFF, 0xFFFFFFFF)
        local_extra = struct.pack("<2H2Q", 1, 16, size, packed_size) if entry.zip64 else b""
        body += struct.pack(
            "<4s5H3L2H", b"PK\3\4", 45, flags, entry.method, 0, 33, *local, len(entry.name), len(local_extra)
        )
        body += entry.name + local_extra + packed
        if entry.descriptor:
            body += struct.pack("<4s3L", b"PK\7\x08", crc32, packed_size, size)
        extra = struct.pack("<2H3Q", 1, 24, size, packed_size, offset) if entry.zip64 else b""
        extra = struct.pack("<2H4s", 0x7777, 4, b"junk") + extra
        shown = (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF) if entry.zip64 else (packed_size, size, offset)
        directory += struct.pack(
            "<4s6H3L5H2L",
            *(b"PK\1\2", entry.made_by, 45, flags, entry.method, 0, 33, crc32, shown[0], shown[1]),
            *(len(entry.name), len(extra), 0, 0, 0, entry.attributes, shown[2]),
        )
        directory += entry.name + extra
    end = bytearray()
    count, length, start = len(entries), len(directory), len(body)
    if zip64:
        end += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, disk, disk, count, count, length, start)
        end += struct.pack("<4sLQL", b"PK\6\7", 0, start + length, 1)
        count, length, start = 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFF
    end += struct.pack("<4s4H2LH", b"PK\5\6", disk, disk, count, count, length, start, len(comment))
    return prefix + bytes(body) + bytes(directory) + bytes(end) + comment


def plain(files: Mapping[str, bytes | str], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An ordinary archive, as the standard library writes it."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as target:
        for name, data in files.items():
            target.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), data, compress_type=method)
    return out.getvalue()
