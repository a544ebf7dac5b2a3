"""The files of the sample: pictures and a sound that are computed.

The pictures are not compressed, so that they are the same with every version of zlib.
"""

from __future__ import annotations

import math
import struct
import zlib
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Asset:
    """``member`` is its name in the ZIP, ``name`` what a person called it."""

    asset_id: str
    member: str
    name: str
    media_type: str
    data: bytes


def _png(size: int) -> bytes:
    """A square picture: a green bed under a blue sky."""
    rows = bytearray()
    for y in range(size):
        rows.append(0)
        for x in range(size):
            shade = (x * 5 + y * 3) % 40
            rows += bytes((90, 160 - shade, 60)) if y > size // 2 else bytes((120, 170, 215 + shade))
    header = struct.pack(">2L5B", size, size, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 0)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def _wav(seconds: float, rate: int = 8000) -> bytes:
    """A tone that falls from 440 to 220 Hz."""
    count = int(seconds * rate)
    samples = bytearray()
    for index in range(count):
        pitch = 440 - 220 * index / count
        samples.append(128 + round(60 * math.sin(2 * math.pi * pitch * index / rate)))
    form = struct.pack("<4sL2H2L2H", b"fmt ", 16, 1, 1, rate, rate, 1, 8)
    body = b"WAVE" + form + struct.pack("<4sL", b"data", count) + bytes(samples)
    return struct.pack("<4sL", b"RIFF", len(body)) + body


BALCONY = Asset("file-BalconyBeds01", "file-BalconyBeds01.dat", "balcony in april.png", "image/png", _png(48))
PLOT = Asset("file-HistogramPlot2", "file-HistogramPlot2.dat", "histogram.png", "image/png", _png(24))
DOUGH = Asset("file_00000000d0a9", "file_00000000d0a9.dat", "voice note.wav", "audio/wav", _wav(0.5))
ASSETS = (BALCONY, DOUGH, PLOT)
