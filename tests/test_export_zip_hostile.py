"""A hostile or damaged ZIP costs at most the member that is damaged, and never memory or disk."""

from __future__ import annotations

import struct
import tracemalloc
import zlib
from collections.abc import AsyncIterator

import pytest

from mempersist import limits
from mempersist.errors import Code, MempersistError
from mempersist.imports.layout import asset_members, read_layout
from mempersist.imports.problems import ItemError
from mempersist.imports.zipreader import Member, inflate, members, read_directory
from tests.rigs.sources import BytesSource, collect, until_error
from tests.rigs.zips import Entry, archive, plain

MIB = limits.MIB


async def member_list(data: bytes) -> list[Member]:
    source = BytesSource(data)
    return await collect(members(source, await read_directory(source)))


async def inflate_error(entry: Entry, **options: int) -> str:
    """The code with which the middle one of three members is refused; its neighbours must be readable."""
    source = BytesSource(archive([Entry(b"before", b"1"), entry, Entry(b"after", b"2")]))
    directory = await read_directory(source)
    before, bad, after = await collect(members(source, directory))
    assert await collect(inflate(source, directory, before)) == [b"1"]
    assert await collect(inflate(source, directory, after)) == [b"2"]
    with pytest.raises(ItemError) as caught:
        await collect(inflate(source, directory, bad, **options))
    assert not caught.value.skipped
    return caught.value.code


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (Entry(b"../../etc/passwd", b"x"), "UNSAFE_NAME"),
        (Entry(b"folder/../../x", b"x"), "UNSAFE_NAME"),
        (Entry(b"..\\x", b"x"), "UNSAFE_NAME"),
        (Entry(b"/etc/passwd", b"x"), "UNSAFE_NAME"),
        (Entry(b"C:\\x", b"x"), "UNSAFE_NAME"),
        (Entry(b"nul\0.json", b"x"), "UNSAFE_NAME"),
        (Entry(b"n" * 2000, b"x"), "UNSAFE_NAME"),
        (Entry(b"link", b"/etc/passwd", attributes=0o120777 << 16), "SYMLINK"),
        (Entry(b"secret", b"x", flags=1), "ENCRYPTED"),
        (Entry(b"strong", b"x", flags=0x41), "ENCRYPTED"),
        (Entry(b"bzip2", b"x", method=12, packed=b"BZh"), "UNSUPPORTED_COMPRESSION"),
        (Entry(b"aes", b"x", method=99, packed=b"?"), "UNSUPPORTED_COMPRESSION"),
        (Entry(b"crc", b"x" * 99, crc32=1), "CRC_MISMATCH"),
        (Entry(b"stored crc", b"x" * 99, method=0, crc32=1), "CRC_MISMATCH"),
        (Entry(b"claims less", b"x" * 99, size=98), "SIZE_MISMATCH"),
        (Entry(b"claims more", b"x" * 99, size=100), "SIZE_MISMATCH"),
        (Entry(b"stored claims more", b"x" * 99, method=0, size=100), "SIZE_MISMATCH"),
        (Entry(b"garbage", b"x" * 99, packed=b"\xff" * 40), "BAD_DATA"),
        (Entry(b"cut", b"x" * 99, packed=zlib.compress(b"x" * 99, wbits=-15)[:-4]), "BAD_DATA"),
        (Entry(b"nothing packed", b"x" * 99, packed=b""), "BAD_DATA"),
        (Entry(b"beyond the end", b"x", packed_size=10_000), "BAD_ENTRY"),
        (Entry(b"no header there", b"x", at=3), "BAD_ENTRY"),
    ],
)
async def test_a_member_is_refused_by_itself(entry: Entry, code: str) -> None:
    assert await inflate_error(entry) == code


async def test_a_member_over_the_callers_bound_is_refused_before_it_is_read() -> None:
    assert await inflate_error(Entry(b"big", b"x" * 1000), max_bytes=999) == "TOO_LARGE"


async def test_a_bomb_that_admits_its_size_is_refused_at_once() -> None:
    assert await inflate_error(Entry(b"bomb", b"\0" * (4 * MIB))) == "BOMB"


async def test_a_bomb_that_denies_its_size_is_stopped_while_it_inflates() -> None:
    stream = zlib.compress(b"\0" * (64 * MIB), 9, wbits=-15)
    padding = b"\0" * (10 * MIB // limits.MAX_ARCHIVE_EXPANSION)
    source = BytesSource(archive([Entry(b"bomb", packed=stream + padding, size=10 * MIB)]))
    directory = await read_directory(source)
    (member,) = await collect(members(source, directory))
    tracemalloc.start()
    sizes, error = await until_error(len(piece) async for piece in inflate(source, directory, member))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert isinstance(error, ItemError)
    assert error.code == "SIZE_MISMATCH"
    assert sum(sizes) <= 10 * MIB
    assert peak < 8 * MIB


async def test_a_small_file_of_zeros_is_no_bomb() -> None:
    source = BytesSource(archive([Entry(b"silence.wav", b"\0" * MIB)]))
    directory = await read_directory(source)
    (member,) = await collect(members(source, directory))
    assert member.packed_size * limits.MAX_ARCHIVE_EXPANSION * 4 < member.size
    assert b"".join(await collect(inflate(source, directory, member))) == b"\0" * MIB


async def test_members_that_share_their_bytes_are_left_out() -> None:
    kernel = Entry(b"file-kernel1.dat", b"\0" * 5000)
    entries = [kernel, Entry(b"file-other22.dat", b"\0" * 5000, at=0), Entry(b"file-inside3.dat", b"\0" * 10, at=20)]
    data = archive([*entries, Entry(b"file-honest4.dat", b"honest"), Entry(b"conversations.json", b"[]")])
    source = BytesSource(data)
    layout = await read_layout(source, "export.zip")
    assert layout.skipped == {"OVERLAP": 3}
    assert sorted(finding.position for finding in layout.findings) == ["member 0", "member 1", "member 2"]
    assert [asset.asset_id for asset in await collect(asset_members(source, layout, {}))] == ["file-honest4"]


async def test_of_members_with_one_name_the_first_counts() -> None:
    source = BytesSource(
        archive([Entry(b"conversations.json", b'[{"a": 1}]'), Entry(b"conversations.json", b'[{"b": 2}]')])
    )
    layout = await read_layout(source, "export.zip")
    assert [file.member.index for file in layout.conversations if file.member] == [0]
    assert layout.skipped == {"DUPLICATE_NAME": 1}
    assert [finding.severity for finding in layout.findings] == ["failed"]


async def test_an_archive_made_of_overlaps_is_refused_as_a_whole() -> None:
    entries = [Entry(b"conversations.json", b"[]")] + [Entry(b"file-%d.dat" % n, b"x", at=0) for n in range(1500)]
    with pytest.raises(MempersistError) as caught:
        await read_layout(BytesSource(archive(entries)), "export.zip")
    assert caught.value.details == {"reason": "BAD_ARCHIVE"}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "NOT_A_ZIP"),
        (b"just some text", "NOT_A_ZIP"),
        (plain({"a": b"x" * 999})[:-30], "TRUNCATED_ARCHIVE"),
        (plain({"a": b"x" * 999})[:-1], "TRUNCATED_ARCHIVE"),
        (plain({"a": b"x" * 999})[:50], "TRUNCATED_ARCHIVE"),
        (archive([Entry(b"a", b"x")], disk=1), "SPLIT_ARCHIVE"),
    ],
)
async def test_an_archive_that_cannot_be_opened_says_why(data: bytes, reason: str) -> None:
    with pytest.raises(MempersistError) as caught:
        await read_directory(BytesSource(data))
    assert (caught.value.code, caught.value.details) == (Code.PERMANENT_PARSER, {"reason": reason})


async def test_too_many_members_are_refused_by_their_claim_and_by_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    claims = bytearray(archive([Entry(b"a", b"x")], zip64=True))
    record = claims.index(b"PK\6\6")
    claims[record + 24 : record + 40] = struct.pack("<2Q", 300_000, 300_000)
    with pytest.raises(MempersistError) as caught:
        await read_directory(BytesSource(bytes(claims)))
    assert caught.value.details == {"reason": "TOO_MANY_MEMBERS"}

    monkeypatch.setattr(limits, "MAX_ARCHIVE_MEMBERS", 3)
    understated = bytearray(archive([Entry(b"%d" % n) for n in range(4)]))
    understated[-14:-10] = struct.pack("<2H", 1, 1)
    with pytest.raises(MempersistError) as caught:
        await member_list(bytes(understated))
    assert caught.value.details == {"reason": "TOO_MANY_MEMBERS"}


async def test_a_damaged_directory_is_an_error_after_the_entries_that_are_whole() -> None:
    data = bytearray(archive([Entry(b"one", b"1"), Entry(b"two", b"2")]))
    second = data.rindex(b"PK\1\2")
    data[second : second + 4] = b"????"
    source = BytesSource(bytes(data))
    seen, error = await until_error(members(source, await read_directory(source)))
    assert [member.name for member in seen] == ["one"]
    assert isinstance(error, MempersistError)
    assert error.details == {"reason": "BAD_ARCHIVE"}


async def test_a_flood_of_false_end_records_costs_few_reads() -> None:
    source = BytesSource(b"PK\3\4" + b"PK\5\6" * 10_000)
    reads = 0
    original = source.read

    async def counting(offset: int, length: int) -> bytes:
        nonlocal reads
        reads += 1
        return await original(offset, length)

    source.read = counting  # type: ignore[method-assign]
    with pytest.raises(MempersistError):
        await read_directory(source)
    assert reads < 100


async def everything_in(source: BytesSource) -> AsyncIterator[bytes]:
    directory = await read_directory(source)
    async for member in members(source, directory):
        async for piece in inflate(source, directory, member):
            yield piece


async def test_an_archive_cut_or_altered_anywhere_raises_only_known_errors() -> None:
    data = archive([Entry(b"conversations.json", b"[]", zip64=True), Entry(b"file-a.dat", b"x" * 50)], zip64=True)
    for at in range(len(data)):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]):
            _, error = await until_error(everything_in(BytesSource(broken)))
            assert error is None or isinstance(error, ItemError | MempersistError), (at, error)
