"""Hostile and broken files: a clear word for each bad item or file, the rest imported, nothing crashed."""

from __future__ import annotations

import json
import struct
import zlib
from typing import Any

import pytest

from mempersist import limits
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.imports.records import Receipt
from mempersist.imports.status import import_receipt
from tests.rigs import exports
from tests.rigs.exports import conversation
from tests.rigs.worlds import World, drain, memory_world

GOOD = conversation("good", "a fine message")


async def bring(data: bytes, filename: str = "conversations.json", world: World | None = None) -> Receipt:
    world = world or await memory_world()
    accepted = await uploads.direct(
        world.ports, OWNER, filename=filename, body=data, size=len(data), max_bytes=limits.MAX_IMPORT_BYTES
    )
    await drain(world)
    return await import_receipt(world.ports, OWNER, accepted.import_id)


def failed_codes(receipt: Receipt) -> list[tuple[str, str]]:
    return [(finding.position, finding.code) for finding in receipt.findings if finding.severity == "failed"]


def nested(depth: int) -> bytes:
    return b'{"id":"deep","mapping":' + b'{"a":' * depth + b"1" + b"}" * depth + b"}"


def beside_good(item: bytes) -> bytes:
    good = json.dumps(GOOD).encode()
    return b"[" + item + b"," + good + b"]"


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (nested(10_000), "TOO_DEEP"),
        (b'{"id": "x", "mapping": {"a": tru}}', "MALFORMED_JSON"),
        (b"12", "NOT_AN_OBJECT"),
        (b'{"id": ' + b"9" * 5000 + b"}", "NUMBER_TOO_LONG"),
    ],
    ids=["nested ten thousand deep", "not JSON", "a number", "a number of 5000 digits"],
)
async def test_one_bad_item_is_named_and_its_neighbour_is_imported(item: bytes, code: str) -> None:
    receipt = await bring(beside_good(item))
    assert receipt.status == "complete_with_errors"
    assert failed_codes(receipt) == [("conversations.json:0", code)]
    assert receipt.counts.created == 1


async def test_a_single_conversation_of_40_mb_is_refused_and_the_rest_is_imported() -> None:
    huge = json.dumps(conversation("huge", "x" * 40_000_000)).encode()
    receipt = await bring(beside_good(huge))
    assert failed_codes(receipt) == [("conversations.json:0", "TOO_LARGE")]
    assert receipt.counts.created == 1


@pytest.mark.parametrize("cut", [1, 40, 400])
async def test_a_truncated_file_loses_only_the_item_that_was_cut(cut: int) -> None:
    data = exports.as_json([GOOD, conversation("cut", "never whole")])[:-cut]
    receipt = await bring(data)
    assert receipt.status == "complete_with_errors"
    assert receipt.counts.created == (2 if cut == 1 else 1)
    assert {code for _, code in failed_codes(receipt)} == {"TRUNCATED"}


async def test_lone_surrogates_are_kept_in_the_archive_and_break_nothing() -> None:
    data = b"[%s]" % json.dumps(conversation("s", "half \ud83d emoji", title="\udc00")).encode()
    assert (await bring(data)).status == "complete"


def _cyclic() -> Any:
    raw = conversation("cycle", "one", "two")
    raw["mapping"]["root"]["parent"] = "n1"
    return raw


def _dangling() -> Any:
    raw = conversation("dangling", "one", "two")
    del raw["mapping"]["n0"]
    return raw


@pytest.mark.parametrize(
    ("raw", "note"), [(_cyclic(), "CYCLE"), (_dangling(), "DANGLING_PARENT")], ids=["cycle", "gap"]
)
async def test_broken_graphs_are_imported_with_a_note(raw: Any, note: str) -> None:
    receipt = await bring(exports.as_json([raw]))
    assert receipt.counts.created == 1
    assert ("conversations.json:0", note) in {(f.position, f.code) for f in receipt.findings}


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b" ", "EMPTY_FILE"),
        (b"\x00\x01\x02\x03", None),
        (exports.as_json([GOOD]).decode().encode("utf-16"), "UNSUPPORTED_ENCODING"),
        (b"<html></html>", None),
        (b"PK\x03\x04 and then nothing", "TRUNCATED_ARCHIVE"),
        (exports.as_zip({"notes.txt": b"hello"}), None),
        (exports.as_json([{"uuid": "u", "name": "n", "chat_messages": []}]), "CLAUDE_EXPORT"),
    ],
    ids=["blank", "binary", "UTF-16", "web page", "cut ZIP", "other ZIP", "another vendor's"],
)
async def test_a_file_that_is_no_export_fails_as_a_whole_with_the_reason(data: bytes, code: str | None) -> None:
    receipt = await bring(data, "upload.bin")
    assert receipt.status == "failed"
    assert receipt.failure is not None
    if code is not None:
        assert receipt.failure.code == code
    assert receipt.counts.conversations.found == 0


async def test_an_export_whose_messages_all_come_out_without_text_failed() -> None:
    raw = conversation("blank", " ", "\n")
    receipt = await bring(exports.as_json([raw]))
    assert (receipt.status, receipt.failure and receipt.failure.code) == ("failed", "NO_TEXT")


async def test_an_export_without_conversations_is_complete_and_says_zero() -> None:
    receipt = await bring(b"[]")
    assert (receipt.status, receipt.counts.conversations.found, receipt.counts.files.imported) == ("complete", 0, 1)


async def test_a_bomb_in_an_archive_is_named_and_the_rest_is_imported() -> None:
    files = {
        "conversations-000.json": b"[" + b" " * 30_000_000 + b"]",
        "conversations-001.json": exports.as_json([GOOD]),
    }
    receipt = await bring(exports.as_zip(files), "export.zip")
    assert ("conversations-000.json", "BOMB") in failed_codes(receipt)
    assert receipt.counts.created == 1


async def test_names_that_lead_out_of_an_archive_are_refused_and_the_rest_is_imported() -> None:
    files = {"../conversations.json": exports.as_json([GOOD]), "conversations-001.json": exports.as_json([GOOD])}
    receipt = await bring(exports.as_zip(files), "export.zip")
    assert "UNSAFE_NAME" in {code for _, code in failed_codes(receipt)}
    assert receipt.counts.conversations.imported == 1


async def test_a_shard_with_a_wrong_checksum_is_named_and_the_rest_is_imported() -> None:
    shard = exports.as_json([conversation("bad", "tampered")])
    files = {"conversations-000.json": shard, "conversations-001.json": exports.as_json([GOOD])}
    data = exports.as_zip(files)
    crc = struct.pack("<L", zlib.crc32(shard))
    receipt = await bring(data.replace(crc, b"\0\0\0\0"), "export.zip")
    assert failed_codes(receipt) == [("conversations-000.json", "CRC_MISMATCH")]
    assert receipt.counts.created == 1


async def test_a_zip_of_zips_is_read_part_by_part() -> None:
    parts = {
        "part1of2.zip": exports.as_zip({"conversations-000.json": exports.as_json([GOOD])}),
        "part2of2.zip": exports.as_zip({"conversations-001.json": exports.as_json([conversation("b", "second part")])}),
    }
    for stored in (True, False):
        receipt = await bring(exports.as_zip(parts, stored=stored), "export.zip")
        assert (receipt.status, receipt.counts.created) == ("complete", 2)
        assert receipt.counts.files.imported == 2


async def test_a_damaged_part_of_a_zip_of_zips_does_not_stop_the_others() -> None:
    parts = {
        "part1of2.zip": b"PK\x03\x04 cut",
        "part2of2.zip": exports.as_zip({"conversations.json": exports.as_json([GOOD])}),
    }
    receipt = await bring(exports.as_zip(parts), "export.zip")
    assert (receipt.status, receipt.counts.created) == ("complete_with_errors", 1)
    assert failed_codes(receipt) == [("1/archive", "TRUNCATED_ARCHIVE")]


async def test_messages_in_findings_never_hold_stored_text() -> None:
    secret = "my secret words"
    items: list[Any] = [
        secret,
        {"id": "x", "mapping": {secret: secret}},
        {"id": "y", "title": secret, "mapping": {"a": {"message": {"content": {"content_type": secret}}}}},
        GOOD,
    ]
    receipt = await bring(exports.as_json(items))
    assert receipt.findings
    assert all(secret not in finding.message + finding.code for finding in receipt.findings)
