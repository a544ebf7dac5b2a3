"""Every kind of ZIP that a person may come by is read in bounded pieces."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.imports.scanner import ScannedItem, scan
from mempersist.imports.source import SliceSource
from mempersist.imports.zipreader import Member, data_offset, inflate, members, read_directory
from tests.rigs.sources import BytesSource, PatternSource, collect, literal, repeated
from tests.rigs.zips import Entry, archive, plain


async def read_all(data: bytes, **options: int) -> dict[str, bytes]:
    source = BytesSource(data)
    directory = await read_directory(source)
    out = {}
    async for member in members(source, directory):
        out[member.name] = b"".join(await collect(inflate(source, directory, member, **options)))
    return out


TEXT = b"the quick brown fox " * 500
FILES = {"a.json": b"[]", "folder/b.txt": TEXT, "empty": b""}


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
async def test_stored_and_deflated_members_in_any_chunk_size(method: int, chunk: int) -> None:
    assert await read_all(plain(FILES, method=method), chunk_bytes=chunk) == FILES


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("zip64 entries and end record", archive([Entry(b"a", TEXT, zip64=True), Entry(b"b", b"x")], zip64=True)),
        ("data descriptors", archive([Entry(b"a", TEXT, descriptor=True), Entry(b"b", b"x", descriptor=True)])),
        ("junk before it", archive([Entry(b"a", TEXT), Entry(b"b", b"x")], prefix=b"MZ" + b"\0" * 999)),
        ("zip64 with junk before it", archive([Entry(b"a", TEXT), Entry(b"b", b"x")], prefix=b"MZ" * 9, zip64=True)),
        ("a comment", archive([Entry(b"a", TEXT), Entry(b"b", b"x")], comment=b"made by hand")),
        ("the longest comment", archive([Entry(b"a", TEXT), Entry(b"b", b"x")], comment=b"c" * 65535)),
        ("a stray end record in the comment", archive([Entry(b"a", TEXT), Entry(b"b", b"x")], comment=b"PK\5\6" * 5)),
        (
            "a whole end record in the comment that points nowhere",
            archive(
                [Entry(b"a", TEXT), Entry(b"b", b"x")],
                comment=b"PK\5\6" + b"\0" * 4 + b"\1\0\1\0" + b"\x40\0\0\0" * 2 + b"\0\0",
            ),
        ),
    ],
)
async def test_unusual_but_whole_archives(kind: str, data: bytes) -> None:
    assert await read_all(data) == {"a": TEXT, "b": b"x"}


async def test_an_archive_without_members() -> None:
    assert await read_all(archive([])) == {}


@pytest.mark.parametrize(
    ("raw", "flags", "name"),
    [
        ("übung.json".encode(), 0x800, "übung.json"),
        ("übung.json".encode(), 0, "übung.json"),
        ("übung.json".encode("cp437"), 0, "übung.json"),
        (b"b\xff.json", 0x800, "b\ufffd.json"),
        (b"windows\\folder\\a.json", 0, "windows/folder/a.json"),
        (b"./a.json", 0, "a.json"),
    ],
)
async def test_names_in_every_encoding(raw: bytes, flags: int, name: str) -> None:
    source = BytesSource(archive([Entry(raw, b"x", flags=flags)]))
    (member,) = await collect(members(source, await read_directory(source)))
    assert (member.name, member.problem) == (name, None)


async def test_members_can_be_resumed_after_any_entry() -> None:
    source = BytesSource(plain({f"file {number}": b"x" for number in range(50)}))
    directory = await read_directory(source)
    listed = await collect(members(source, directory))
    assert len(listed) == 50
    for index, member in enumerate(listed):
        assert (
            await collect(members(source, directory, start=member.next_entry, index=index + 1)) == listed[index + 1 :]
        )


async def test_a_large_directory_is_read_in_pieces() -> None:
    source = BytesSource(archive([Entry(b"%0400d" % number) for number in range(3000)]))
    directory = await read_directory(source)
    assert directory.size > 1_000_000
    source.longest = 0
    assert len(await collect(members(source, directory))) == 3000
    assert source.longest <= 256 * 1024


async def test_a_stored_member_is_scanned_where_it_lies() -> None:
    source = BytesSource(plain({"x": b"y", "conversations.json": b'[{"id": 1}, {"id": 2}]'}, method=zipfile.ZIP_STORED))
    directory = await read_directory(source)
    member = (await collect(members(source, directory)))[1]
    assert member.stored
    inner = SliceSource(source, await data_offset(source, directory, member), member.size)
    items = await collect(scan(inner, window_bytes=4))
    assert [item.value for item in items if isinstance(item, ScannedItem)] == [{"id": 1}, {"id": 2}]


async def test_an_archive_beyond_four_gigabytes() -> None:
    """A stored member of 5 GB whose bytes are made up when read, then a small one behind it."""
    small = b'[{"id": "behind"}]'
    big = 5 * 1024**3
    template = archive(
        [
            Entry(b"big.dat", b"", method=0, size=big, packed_size=big, zip64=True),
            replace(Entry(b"conversations.json", small, method=0, zip64=True), at=big + 30 + 7 + 20),
        ],
        zip64=True,
    )
    head, rest = template[: 30 + 7 + 20], template[30 + 7 + 20 :]
    directory_at = rest.index(b"PK\1\2")
    locator = rest.index(b"PK\6\6")
    start = len(head) + big + directory_at
    rest = rest[: locator + 48] + start.to_bytes(8, "little") + rest[locator + 56 :]
    source = PatternSource([literal(head), repeated(b"z", big), literal(rest)])
    directory = await read_directory(source)
    first, second = await collect(members(source, directory))
    assert (first.size, second.header_offset) == (big, big + 57)
    assert b"".join(await collect(inflate(source, directory, second))) == small
    assert source.longest < 1 << 20


@settings(max_examples=30)
@given(
    st.dictionaries(st.text("ab/é日", min_size=1, max_size=8), st.binary(max_size=300), max_size=6),
    st.binary(max_size=80),
)
async def test_whatever_the_standard_library_writes_is_read_back(files: dict[str, bytes], comment: bytes) -> None:
    files = {name.strip("/") or "x": data for name, data in files.items()}
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as target:
        for name, data in files.items():
            target.writestr(name, data)
        target.comment = comment
    assert await read_all(out.getvalue()) == files


def test_a_member_is_plain_data() -> None:
    member = Member(0, "n", 8, 1, 2, 3, 4, 5, None)
    assert Member(**json.loads(json.dumps({name: getattr(member, name) for name in Member.__slots__}))) == member
