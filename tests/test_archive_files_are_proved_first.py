"""A restore trusts nothing: the whole file is checked before the first object is written."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mempersist import canonical
from mempersist.errors import Code, MempersistError
from mempersist_ops.archive_file import layout, restore
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from tests.rigs import writes
from tests.rigs.archive_files import contents, exported, members, restored, rewritten
from tests.rigs.worlds import memory_world

Members = dict[str, bytes]


@pytest.fixture
async def archive(tmp_path: Path) -> Path:
    world = await memory_world()
    written = await writes.store(world.ports, "hello")
    await writes.append(world.ports, written, "again")
    await exported(world.ports.objects, tmp_path / "archive.zip")
    return tmp_path / "archive.zip"


def key_with(held: Members, part: str) -> str:
    return min(key for key in held if part in key)


def listed(held: Members, change: Callable[[list[dict[str, object]]], list[dict[str, object]]]) -> Members:
    """The members with a changed list, and a summary that agrees with it."""
    lines = change([json.loads(line) for line in held[layout.OBJECTS].splitlines()])
    data = b"".join(canonical.dumps(line) + b"\n" for line in lines)
    summary = json.loads(held[layout.SUMMARY])
    summary["objects"] = len(lines)
    summary["sizeBytes"] = sum(int(str(line["size"])) for line in lines)
    summary["objectsSha256"] = canonical.sha256_hex(data)
    return {**held, layout.OBJECTS: data, layout.SUMMARY: canonical.dumps(summary)}


def other_bytes(held: Members) -> Mapping[str, bytes]:
    key = key_with(held, "/segments/")
    return {**held, key: held[key].replace(b"hello", b"jello")}


def longer(held: Members) -> Mapping[str, bytes]:
    key = key_with(held, "/head/")
    return {**held, key: held[key] + b" " * 10_000_000}


def one_missing(held: Members) -> Mapping[str, bytes]:
    key = key_with(held, "/segments/")
    return {name: data for name, data in held.items() if name != key}


def one_too_many(held: Members) -> Mapping[str, bytes]:
    return {"canonical/accounts/other/log/0000000000.json": b"{}", **held}


def a_traversal(held: Members) -> Mapping[str, bytes]:
    return {"canonical/accounts/../../../../etc/cron.d/job": b"boo", **held}


def a_listed_traversal(held: Members) -> Mapping[str, bytes]:
    name = "raw/imports/../source/x"
    line: dict[str, object] = {"key": name, "sha256": canonical.sha256_hex(b"boo"), "size": 3}
    return {name: b"boo", **listed(held, lambda lines: [line, *lines])}


def a_forged_segment(held: Members) -> Mapping[str, bytes]:
    """List, summary and hashes agree with each other, but the segment is not what its key says."""
    key = key_with(held, "/segments/")
    forged = held[key].replace(b"hello", b"jello")

    def change(lines: list[dict[str, object]]) -> list[dict[str, object]]:
        return [{**line, "sha256": canonical.sha256_hex(forged)} if line["key"] == key else line for line in lines]

    return {**listed(held, change), key: forged}


def a_head_left_out_everywhere(held: Members) -> Mapping[str, bytes]:
    """Consistent in itself, but not the archive whose digest the summary names."""
    key = max(key for key in held if "/head/" in key)
    fewer = {name: data for name, data in held.items() if name != key}
    return listed(fewer, lambda lines: [line for line in lines if line["key"] != key])


def a_manifest_left_out_everywhere(held: Members) -> Mapping[str, bytes]:
    key = key_with(held, "/revisions/")
    fewer = {name: data for name, data in held.items() if name != key}
    return listed(fewer, lambda lines: [line for line in lines if line["key"] != key])


def another_format(held: Members) -> Mapping[str, bytes]:
    summary = json.loads(held[layout.SUMMARY])
    return {**held, layout.SUMMARY: canonical.dumps({**summary, "format": "mempersist.archive-file.v9"})}


def a_list_out_of_order(held: Members) -> Mapping[str, bytes]:
    return listed(held, lambda lines: lines[::-1])


def a_broken_list(held: Members) -> Mapping[str, bytes]:
    return {**held, layout.OBJECTS: b"not json\n" + held[layout.OBJECTS]}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (other_bytes, r"/segments/[0-9a-f]{64}\.jsonl does not have the size and hash"),
        (longer, r"/head/0000000000\.json does not have the size and hash"),
        (one_missing, r"/segments/[0-9a-f]{64}\.jsonl is listed but missing"),
        (one_too_many, "has 12 objects, but 11 are listed|are listed"),
        (a_traversal, r"etc/cron.d/job' is not the key of an archive's object"),
        (a_listed_traversal, r"raw/imports/\.\./source/x' is not the key of an archive's object"),
        (a_forged_segment, r"/segments/[0-9a-f]{64}\.jsonl does not match the hash in its key"),
        (a_head_left_out_everywhere, "do not fold to the catalog digest"),
        (a_manifest_left_out_everywhere, "is damaged|missing or damaged"),
        (another_format, "use the version of mempersist that wrote it"),
        (a_list_out_of_order, "stands out of order"),
        (a_broken_list, "a line that is not a valid object entry"),
    ],
)
async def test_a_file_that_is_not_right_is_refused_whole(
    archive: Path, change: Callable[[Members], Mapping[str, bytes]], problem: str
) -> None:
    store = MemoryObjectStore()
    with pytest.raises(MempersistError, match=problem) as caught:
        await restored(rewritten(archive, change), store)
    assert caught.value.code in {Code.PERMANENT_PARSER, Code.CANONICAL_STORAGE}
    assert await contents(store) == {}


async def test_two_members_of_one_name_are_refused(archive: Path) -> None:
    key = key_with(members(archive), "/head/")
    with zipfile.ZipFile(archive, "a") as file, pytest.warns(UserWarning, match="Duplicate name"):
        file.writestr(key, b"{}")
    with pytest.raises(MempersistError, match="two members of one name"):
        await restored(archive)


async def test_a_cut_off_file_is_no_archive_file(archive: Path) -> None:
    archive.write_bytes(archive.read_bytes()[:-100])
    assert not restore.is_archive_file(archive)
    with pytest.raises(MempersistError, match="cannot be opened"):
        await restored(archive)


async def test_flipping_any_byte_of_a_body_is_noticed(archive: Path) -> None:
    data = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as file:
        info = max(file.infolist(), key=lambda item: item.compress_size)
    at = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    data[at] ^= 0xFF
    archive.write_bytes(data)
    with pytest.raises(MempersistError, match="archive file"):
        await restored(archive)


def test_other_files_are_not_taken_for_archive_files(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_bytes(b"[]")
    with zipfile.ZipFile(tmp_path / "chatgpt.zip", "w") as file:
        file.writestr("conversations.json", "[]")
    assert not restore.is_archive_file(tmp_path / "conversations.json")
    assert not restore.is_archive_file(tmp_path / "chatgpt.zip")


@pytest.mark.parametrize(
    ("key", "good"),
    [
        ("canonical/format.json", True),
        ("canonical/conversations/abc/head/0000000001.json", True),
        ("canonical/conversations/abc/head/1.json", False),
        ("canonical/conversations/../head/0000000001.json", False),
        ("canonical/conversations/a/b/head/0000000001.json", False),
        ("/canonical/format.json", False),
        ("canonical/format.json/", False),
        ("canonical/format.json\n", False),
        ("raw/imports/x/source/a b.json", False),
        ("raw/imports/x/source/conversations.json", True),
        ("raw/imports/x/source/" + "a" * 1100, False),
        ("work/imports/x/0.bin", False),
    ],
)
def test_only_keys_of_an_archive_are_keys(key: str, good: bool) -> None:
    assert layout.is_key(key) is good
