"""`verify` finds every kind of damage, names the object, and finds nothing in an archive that is whole."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from mempersist.archive import keys
from mempersist.ports import ObjectStore
from mempersist.recovery.verify import FINDINGS, Slice, Verification, verify
from tests.rigs import exports
from tests.rigs.archives import populated
from tests.rigs.command import mempersist
from tests.rigs.worlds import World
from tests.rigs.writes import store

Break = Callable[[World], Awaitable[None]]


async def every(objects: ObjectStore, prefix: str, suffix: str = "") -> list[str]:
    page = await objects.list(prefix)
    return [info.key for info in page.objects if info.key.endswith(suffix)]


async def pick(world: World, prefix: str, middle: str = "", suffix: str = "") -> str:
    return next(key for key in await every(world.ports.objects, prefix, suffix) if middle in key)


async def flip(world: World, key: str) -> None:
    data = bytearray(await world.ports.objects.get(key))
    data[len(data) // 2] ^= 1
    await world.ports.objects.put(key, bytes(data))


async def longest_log(world: World) -> list[str]:
    heads = [key for key in await every(world.ports.objects, keys.CONVERSATIONS) if "/head/" in key]
    by_conversation = [[one for one in heads if one.startswith(key.rsplit("/", 1)[0])] for key in heads]
    return max(by_conversation, key=len)


async def rewritten(world: World, key: str, **changes: object) -> None:
    value = json.loads(await world.ports.objects.get(key))
    value.update(changes)
    await world.ports.objects.put(key, json.dumps(value, sort_keys=True, separators=(",", ":")).encode())


async def delete(world: World, *names: str) -> None:
    await world.ports.objects.delete(names)


async def the_format(world: World) -> None:
    await world.ports.objects.put(keys.FORMAT_KEY, b'{"format":"other"}')


async def a_gap_in_a_log(world: World) -> None:
    await delete(world, (await longest_log(world))[0])


async def a_log_entry_of_another(world: World) -> None:
    await rewritten(world, (await longest_log(world))[-1], conversationId="0" * 64)


async def a_changed_log_entry(world: World) -> None:
    await rewritten(world, (await longest_log(world))[0], title="Forged")


async def a_missing_manifest(world: World) -> None:
    await delete(world, await pick(world, keys.CONVERSATIONS, "/revisions/"))


async def a_manifest_in_pieces(world: World) -> None:
    await world.ports.objects.put(await pick(world, keys.CONVERSATIONS, "/revisions/"), b'{"format"')


async def a_missing_segment(world: World) -> None:
    await delete(world, await pick(world, keys.CONVERSATIONS, "/segments/"))


async def a_flipped_bit_in_a_segment(world: World) -> None:
    await flip(world, await pick(world, keys.CONVERSATIONS, "/segments/"))


async def a_cut_segment(world: World) -> None:
    key = await pick(world, keys.CONVERSATIONS, "/segments/")
    await world.ports.objects.put(key, (await world.ports.objects.get(key))[:-1])


async def a_missing_asset(world: World) -> None:
    await delete(world, await pick(world, keys.ASSETS, suffix=".bin"))


async def a_flipped_bit_in_an_asset(world: World) -> None:
    await flip(world, await pick(world, keys.ASSETS, suffix=".bin"))


async def an_asset_record_in_pieces(world: World) -> None:
    await world.ports.objects.put(await pick(world, keys.ASSETS, suffix=".json"), b"[]")


async def a_missing_upload(world: World) -> None:
    await delete(world, await pick(world, keys.IMPORTS, "/source/"))


async def a_flipped_bit_in_an_upload(world: World) -> None:
    await flip(world, await pick(world, keys.IMPORTS, "/source/"))


async def a_receipt_that_is_gone(world: World) -> None:
    await delete(world, await pick(world, keys.IMPORTS, suffix="receipt.json"))


async def a_row_that_is_gone(world: World) -> None:
    await world.ports.catalog.query("DELETE FROM conversations WHERE title = 'Kept'")


async def a_row_at_an_older_entry(world: World) -> None:
    await world.ports.catalog.query("UPDATE conversations SET head_seq = 0 WHERE title = 'Kept'")


async def a_message_row_that_is_gone(world: World) -> None:
    await world.ports.catalog.query(
        "DELETE FROM messages WHERE ordinal = 0 AND conversation_id = ?", (await kept(world),)
    )


async def a_row_without_objects(world: World) -> None:
    names = await every(world.ports.objects, keys.conversation(await kept(world)))
    await delete(world, *names)


async def kept(world: World) -> str:
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE title = 'Kept'")
    return str(rows[0]["conversation_id"])


async def an_index_that_waits(world: World) -> None:
    await store(world.ports, "not indexed yet")


async def an_index_that_failed(world: World) -> None:
    await world.ports.catalog.query("UPDATE index_state SET status = 'failed' WHERE chunk_count > 0")


async def vectors_that_are_gone(world: World) -> None:
    rows = await world.ports.catalog.query("SELECT vector_id FROM chunks LIMIT 50")
    await world.ports.vectors.delete([row["vector_id"] for row in rows])


async def a_body_that_nothing_refers_to(world: World) -> None:
    await world.ports.objects.put(keys.segment(await kept(world), "0" * 64), b"left over")


async def a_key_of_nobody(world: World) -> None:
    await world.ports.objects.put(f"{keys.conversation(await kept(world))}notes.txt", b"hello")


CASES: dict[Break, str] = {
    the_format: "FORMAT",
    a_gap_in_a_log: "LOG_GAP",
    a_log_entry_of_another: "LOG_UNREADABLE",
    a_changed_log_entry: "LOG_CHAIN",
    a_missing_manifest: "REVISION_MISSING",
    a_manifest_in_pieces: "REVISION_UNREADABLE",
    a_missing_segment: "SEGMENT_MISSING",
    a_flipped_bit_in_a_segment: "SEGMENT_DAMAGED",
    a_cut_segment: "SEGMENT_DAMAGED",
    a_missing_asset: "ASSET_MISSING",
    a_flipped_bit_in_an_asset: "ASSET_DAMAGED",
    an_asset_record_in_pieces: "RECORD_UNREADABLE",
    a_missing_upload: "UPLOAD_MISSING",
    a_flipped_bit_in_an_upload: "UPLOAD_DAMAGED",
    a_receipt_that_is_gone: "IMPORT_OPEN",
    a_row_that_is_gone: "CATALOG_MISSING",
    a_row_at_an_older_entry: "CATALOG_DIFFERS",
    a_message_row_that_is_gone: "CATALOG_MESSAGES",
    a_row_without_objects: "CATALOG_STRANGER",
    an_index_that_waits: "INDEX_BEHIND",
    an_index_that_failed: "INDEX_FAILED",
    vectors_that_are_gone: "VECTORS_MISSING",
    a_body_that_nothing_refers_to: "UNCOMMITTED",
    a_key_of_nobody: "STRANGER",
}


async def test_an_archive_that_is_whole_has_nothing_to_find() -> None:
    world = await populated()
    report = await verify(world.ports)
    assert report.counts == {}
    assert report.severity() is None
    assert (report.tombstones, report.conversations > 3, report.hashed > 2500) == (1, True, True)


@pytest.mark.parametrize(("breaks", "code"), CASES.items(), ids=[case.__name__ for case in CASES])
async def test_each_kind_of_trouble_is_found_and_named(breaks: Break, code: str) -> None:
    world = await populated()
    await breaks(world)
    report = await verify(world.ports)
    assert code in report.counts
    assert code in {finding.code for finding in report.findings}
    assert report.severity() is not None
    if FINDINGS[code].severity == "behind":
        assert not any(FINDINGS[found].severity == "damage" for found in report.counts)


def test_every_kind_of_finding_has_a_test() -> None:
    assert set(CASES.values()) == set(FINDINGS)


async def test_the_slices_together_hash_everything_once() -> None:
    world = await populated()
    whole = await verify(world.ports)
    parts = [await verify(world.ports, part=Slice(number, 3)) for number in range(3)]
    assert sum(part.hashed for part in parts) == whole.hashed
    key = await pick(world, keys.CONVERSATIONS, "/segments/")
    await flip(world, key)
    found = [(await verify(world.ports, part=Slice(number, 3))).counts["SEGMENT_DAMAGED"] for number in range(3)]
    assert sorted(found) == [0, 0, 1]


async def test_verifying_changes_nothing() -> None:
    world = await populated()

    async def state() -> object:
        return await every(world.ports.objects, ""), await world.ports.catalog.query("SELECT * FROM conversations")

    before = await state()
    await verify(world.ports)
    assert await state() == before


def test_more_findings_than_are_listed_are_still_counted() -> None:
    report = Verification()
    for number in range(1500):
        report.found("STRANGER", str(number))
    assert (report.counts["STRANGER"], len(report.findings)) == (1500, 1000)


def test_the_command_says_what_is_wrong_and_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_bytes(exports.as_json([exports.conversation("a", "hello")]))
    data = ("--data-dir", tmp_path / "data")
    assert mempersist("import", tmp_path / "conversations.json", *data).returncode == 0
    whole = mempersist("verify", *data)
    assert (whole.returncode, "everything is there" in whole.stdout) == (0, True)
    segment = next((tmp_path / "data" / "objects").rglob("*.jsonl"))
    segment.write_bytes(segment.read_bytes().replace(b"hello", b"hullo"))
    broken = mempersist("verify", *data)
    assert broken.returncode == 1
    assert all(words in broken.stdout for words in ("SEGMENT_DAMAGED 1 times", segment.name))
    assert "put the object back" in broken.stdout
    found = json.loads(mempersist("verify", "--json", *data).stdout)
    assert (found["worst"], found["counts"]) == ("damage", {"SEGMENT_DAMAGED": 1})
    assert mempersist("verify", "--slice", "4/3", *data).returncode == 1
