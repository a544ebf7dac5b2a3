"""ZIP and ZIP64 archives over ranged reads, in bounded memory.

Only the central directory is believed, and only as far as the archive bears it out: sizes, checksums and the ratio of
expansion are checked while a member is inflated. A name is a label, never a path.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from mempersist import limits
from mempersist.imports.problems import ItemError, unreadable
from mempersist.imports.source import ByteSource

STORED: Final = 0
DEFLATED: Final = 8

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_HEADER = struct.Struct("<4s5H3L2H")
LOCAL_HEADER_BYTES: Final = _HEADER.size
"""The least that stands before a member's packed bytes."""
_MAX_COMMENT = 65_535
_MAX_END_RECORDS = 16
"""A comment may hold what looks like an end record; of more than this many nothing is believed."""
_PIECE_BYTES = 256 * limits.KIB
_BOMB_FLOOR = limits.MIB
"""Below this many bytes no ratio is a bomb: a small file of zeros packs well."""
_SATURATED_32 = 0xFFFFFFFF
_ENCRYPTED_FLAGS = 0x1 | 0x40 | 0x2000
_UTF8_FLAG = 0x800
_UNIX_SYSTEMS = (3, 19)
_MAX_NAME_CHARS = 1024
_FILE_TYPE = 0o170000
_SYMLINK = 0o120000

_PROBLEMS = {
    "ENCRYPTED": "the file is encrypted; unpack the archive and import conversations.json",
    "UNSUPPORTED_COMPRESSION": "the file is packed by a method other than stored and deflated",
    "SYMLINK": "the entry is a symbolic link",
    "UNSAFE_NAME": "the entry's name is a path outside of the archive, or absurdly long",
    "DUPLICATE_NAME": "another file of the archive has the same name; the first one counts",
    "OVERLAP": "the file shares bytes with another file of the archive",
    "BAD_ENTRY": "the archive's directory is wrong about this file",
    "BAD_DATA": "the file's packed data is damaged; download the export again",
    "BOMB": f"the file expands to more than {limits.MAX_ARCHIVE_EXPANSION} times its packed size",
    "TOO_LARGE": "the file is larger than is imported",
    "SIZE_MISMATCH": "the file has another size than the archive's directory says",
    "CRC_MISMATCH": "the file's checksum is wrong; download the export again",
}


@dataclass(frozen=True, slots=True)
class Directory:
    """The central directory: where it is, how many ``entries`` it claims, and by how many bytes of something else the
    archive is preceded (``shift``)."""

    offset: int
    size: int
    entries: int
    shift: int


@dataclass(frozen=True, slots=True)
class Member:
    """An entry of the directory.

    :param index: its place in the directory, from 0.
    :param name: decoded, with ``/`` between folders.
    :param next_entry: bytes into the directory at which the next entry begins.
    :param problem: why :func:`inflate` refuses it: ENCRYPTED, UNSUPPORTED_COMPRESSION, SYMLINK, UNSAFE_NAME.
    """

    index: int
    name: str
    method: int
    crc32: int
    packed_size: int
    size: int
    header_offset: int
    next_entry: int
    problem: str | None = None

    @property
    def is_directory(self) -> bool:
        return self.name.endswith("/")

    @property
    def stored(self) -> bool:
        """Whether its bytes stand in the archive as they are."""
        return self.method == STORED and self.problem is None


def member_error(code: str) -> ItemError:
    return ItemError(code, _PROBLEMS[code])


async def read_directory(source: ByteSource) -> Directory:
    """Find the central directory.

    :raises MempersistError: NOT_A_ZIP, TRUNCATED_ARCHIVE, SPLIT_ARCHIVE, TOO_MANY_MEMBERS.
    """
    tail_offset = max(0, source.size - _MAX_COMMENT - _END.size - _END64_LOCATOR.size)
    tail = await source.read(tail_offset, source.size - tail_offset)
    at = len(tail)
    for _ in range(_MAX_END_RECORDS):
        at = tail.rfind(b"PK\5\6", 0, at)
        if at < 0:
            break
        directory = await _directory_before(source, tail_offset + at, tail[at : at + _END.size])
        if directory is None:
            continue
        if directory.entries > limits.MAX_ARCHIVE_MEMBERS:
            raise _too_many()
        return directory
    if (await source.read(0, 4)).startswith((b"PK\3\4", b"PK\7\x08")):
        message = "the end of the ZIP is missing: download or upload it again"
        raise unreadable("TRUNCATED_ARCHIVE", message)
    raise unreadable("NOT_A_ZIP", "the file is not a ZIP archive; download the export again")


async def members(
    source: ByteSource, directory: Directory, *, start: int = 0, index: int = 0
) -> AsyncGenerator[Member]:
    """Yield the entries of the directory from byte ``start`` of it on, the first of them numbered ``index``.

    :raises MempersistError: BAD_ARCHIVE where the directory is damaged, TOO_MANY_MEMBERS.
    """
    piece, piece_at, at = b"", start, start
    while at < directory.size:
        if index >= limits.MAX_ARCHIVE_MEMBERS:
            raise _too_many()
        entry = _parse_entry(piece, at - piece_at, at, index)
        if entry is None:
            length = min(_PIECE_BYTES, directory.size - at)
            piece, piece_at = await source.read(directory.offset + at, length), at
            entry = _parse_entry(piece, 0, at, index)
        if entry is None:
            raise unreadable("BAD_ARCHIVE", "the ZIP's directory is damaged: download or upload it again")
        yield entry
        at, index = entry.next_entry, index + 1


async def data_offset(source: ByteSource, directory: Directory, member: Member) -> int:
    """Where a member's packed bytes begin. :raises ItemError: BAD_ENTRY."""
    at = directory.shift + member.header_offset
    header = await source.read(at, _HEADER.size)
    if len(header) < _HEADER.size or not header.startswith(b"PK\3\4"):
        raise member_error("BAD_ENTRY")
    *_, name_length, extra_length = _HEADER.unpack(header)
    begin = at + _HEADER.size + int(name_length) + int(extra_length)
    if begin + member.packed_size > directory.offset:
        raise member_error("BAD_ENTRY")
    return begin


async def inflate(
    source: ByteSource,
    directory: Directory,
    member: Member,
    *,
    max_bytes: int | None = None,
    chunk_bytes: int = limits.MIB,
) -> AsyncGenerator[bytes]:
    """Yield a member's bytes in pieces of at most ``chunk_bytes``.

    Size and checksum are known only at the end: what was yielded before an error is to be thrown away.

    :param max_bytes: a larger member is refused.
    :raises ItemError: the member's ``problem``, BAD_ENTRY, BAD_DATA, BOMB, TOO_LARGE, SIZE_MISMATCH, CRC_MISMATCH.
    """
    if member.problem:
        raise member_error(member.problem)
    if max_bytes is not None and member.size > max_bytes:
        raise member_error("TOO_LARGE")
    if member.size > max(_BOMB_FLOOR, member.packed_size * limits.MAX_ARCHIVE_EXPANSION):
        raise member_error("BOMB")
    begin = await data_offset(source, directory, member)
    pieces = _copy if member.method == STORED else _expand
    total = checksum = 0
    async with contextlib.aclosing(pieces(source, begin, member.packed_size, chunk_bytes)) as unpacked:
        async for piece in unpacked:
            total += len(piece)
            # The directory may claim less than there is.
            if total > member.size:
                raise member_error("SIZE_MISMATCH")
            checksum = zlib.crc32(piece, checksum)
            yield piece
    if total != member.size:
        raise member_error("SIZE_MISMATCH")
    if checksum != member.crc32:
        raise member_error("CRC_MISMATCH")


async def _copy(source: ByteSource, begin: int, length: int, chunk_bytes: int) -> AsyncGenerator[bytes]:
    for at in range(0, length, chunk_bytes):
        yield await source.read(begin + at, min(chunk_bytes, length - at))


async def _expand(source: ByteSource, begin: int, length: int, chunk_bytes: int) -> AsyncGenerator[bytes]:
    stream = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        for at in range(0, length, _PIECE_BYTES):
            packed = await source.read(begin + at, min(_PIECE_BYTES, length - at))
            while packed and not stream.eof:
                piece = stream.decompress(packed, chunk_bytes)
                packed = stream.unconsumed_tail
                if piece:
                    yield piece
        while not stream.eof and (piece := stream.decompress(stream.unconsumed_tail, chunk_bytes)):
            yield piece
    except zlib.error as error:
        raise member_error("BAD_DATA") from error
    if not stream.eof:
        raise member_error("BAD_DATA")


def _too_many() -> Exception:
    bound = limits.MAX_ARCHIVE_MEMBERS
    return unreadable("TOO_MANY_MEMBERS", f"the ZIP has more than {bound} files; import it in parts")


async def _directory_before(source: ByteSource, end_at: int, end: bytes) -> Directory | None:
    """The directory that the record ``end`` at ``end_at`` speaks of; None if it is not there."""
    if len(end) < _END.size:
        return None
    _, disk, first_disk, _, entries, size, offset, comment = _END.unpack(end)
    if end_at + _END.size + comment > source.size:
        return None
    directory_end = end_at
    record_at = await _zip64_record_at(source, end_at)
    if record_at is not None:
        record = await source.read(record_at, _END64.size)
        *_, disk, first_disk, _, entries, size, offset = _END64.unpack(record)
        directory_end = record_at
    for begin in (directory_end - size, offset):
        shift = begin - offset
        if begin < 0 or shift < 0 or begin + size > directory_end:
            continue
        if not entries or await source.read(begin, 4) == b"PK\1\2":
            if disk or first_disk:
                raise unreadable("SPLIT_ARCHIVE", "the ZIP is split over several files; join or unpack them first")
            return Directory(begin, size, entries, shift)
    return None


async def _zip64_record_at(source: ByteSource, end_at: int) -> int | None:
    """Where the ZIP64 end record is, which a locator just before the classic one points to."""
    locator_at = end_at - _END64_LOCATOR.size
    if locator_at < 0:
        return None
    locator = await source.read(locator_at, _END64_LOCATOR.size)
    if not locator.startswith(b"PK\6\7"):
        return None
    _, _, offset, _ = _END64_LOCATOR.unpack(locator)
    for at in (locator_at - _END64.size, offset):
        if 0 <= at <= locator_at - _END64.size and await source.read(at, 4) == b"PK\6\6":
            return int(at)
    return None


def _parse_entry(piece: bytes, begin: int, at: int, index: int) -> Member | None:
    """The entry at ``begin`` of ``piece``, byte ``at`` of the directory; None if it is not, or not all, there."""
    end = begin + _ENTRY.size
    if len(piece) < end:
        return None
    fields = _ENTRY.unpack_from(piece, begin)
    magic, made_by, _, flags, method, _, _, crc32, packed, size = fields[:10]
    name_length, extra_length, comment_length, _, _, attributes, header_offset = fields[10:]
    after = end + name_length + extra_length + comment_length
    if magic != b"PK\1\2" or len(piece) < after:
        return None
    name = _decode_name(piece[end : end + name_length], flags)
    extra = piece[end + name_length : end + name_length + extra_length]
    size, packed, header_offset = _zip64_values(extra, (size, packed, header_offset))
    mode = attributes >> 16 if made_by >> 8 in _UNIX_SYSTEMS else 0
    return Member(
        index=index,
        name=name,
        method=method,
        crc32=crc32,
        packed_size=packed,
        size=size,
        header_offset=header_offset,
        next_entry=at + after - begin,
        problem=_problem(name, method, flags, mode),
    )


def _problem(name: str, method: int, flags: int, mode: int) -> str | None:
    parts = name.split("/")
    if name.startswith("/") or ".." in parts or "\0" in name or parts[0][1:] == ":" or len(name) > _MAX_NAME_CHARS:
        return "UNSAFE_NAME"
    if mode & _FILE_TYPE == _SYMLINK:
        return "SYMLINK"
    if flags & _ENCRYPTED_FLAGS:
        return "ENCRYPTED"
    return None if method in (STORED, DEFLATED) else "UNSUPPORTED_COMPRESSION"


def _decode_name(raw: bytes, flags: int) -> str:
    """Names are UTF-8 where flagged, and often where not; else in the code page of old."""
    try:
        name = raw.decode("utf-8")
    except UnicodeDecodeError:
        name = raw.decode("utf-8", "replace") if flags & _UTF8_FLAG else raw.decode("cp437")
    name = name.replace("\\", "/")
    return name.removeprefix("./")


def _zip64_values(extra: bytes, values: tuple[int, int, int]) -> tuple[int, int, int]:
    """Size, packed size and offset, each taken from the ZIP64 field where the entry has no room for it."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<2H", extra, at)
        if kind == 1:
            wide = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            size, packed, offset = (next(wide, value) if value == _SATURATED_32 else value for value in values)
            return size, packed, offset
        at += 4 + length
    return values
