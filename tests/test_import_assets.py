"""Assets of an export: bytes stored once under what they are, linked to the messages that point to them."""

from __future__ import annotations

import hashlib

import pytest

from mempersist.archive import codec, keys
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.imports.phases import assets as asset_phase
from mempersist.imports.records import Receipt
from mempersist.imports.status import import_receipt
from tests.rigs import exports
from tests.rigs.exports import EPOCH, PNG, image, threaded
from tests.rigs.worlds import World, drain, memory_world

SHARD = exports.as_json([threaded("p", [image("file-AAAA1111", EPOCH), image("file-BBBB2222", EPOCH + 1)])])


async def bring(world: World, files: dict[str, bytes]) -> Receipt:
    data = exports.as_zip(files)
    accepted = await uploads.direct(world.ports, OWNER, filename="export.zip", body=data, size=len(data))
    await drain(world)
    return await import_receipt(world.ports, OWNER, accepted.import_id)


async def rows(world: World) -> list[tuple[str, str, int, str]]:
    found = await world.ports.catalog.query("SELECT * FROM assets ORDER BY asset_id, sha256")
    return [(row["asset_id"], row["media_type"], row["size_bytes"], row["object_key"]) for row in found]


async def test_an_asset_is_stored_byte_for_byte_with_a_record_and_a_row() -> None:
    world = await memory_world()
    receipt = await bring(world, {"file-AAAA1111-garden.png": PNG, "conversations.json": SHARD})
    sha256 = hashlib.sha256(PNG).hexdigest()
    key = keys.asset(OWNER, "file-AAAA1111", sha256)
    assert await rows(world) == [("file-AAAA1111", "image/png", len(PNG), key)]
    assert await world.ports.objects.get(key) == PNG
    record = codec.decode_asset_record(await world.ports.objects.get(keys.asset_record(OWNER, "file-AAAA1111", sha256)))
    assert (record.filename, record.import_id) == ("garden.png", receipt.import_id)
    assert receipt.counts.assets.imported == 1
    assert receipt.counts.asset_bytes == len(PNG)


async def test_what_messages_point_to_is_counted_with_and_without_bytes() -> None:
    world = await memory_world()
    receipt = await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG})
    assert (receipt.counts.assets_referenced, receipt.counts.assets_missing) == (2, 1)
    assert receipt.status == "complete"


async def test_a_media_type_is_what_the_bytes_are_and_never_what_a_name_claims() -> None:
    world = await memory_world()
    await bring(world, {"conversations.json": SHARD, "file-AAAA1111-photo.png": b"<html><script>alert(1)</script>"})
    assert [media_type for _, media_type, _, _ in await rows(world)] == ["application/octet-stream"]


async def test_the_same_bytes_in_a_later_export_are_not_stored_again() -> None:
    world = await memory_world()
    first = await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG})
    again = await bring(world, {"file-AAAA1111-garden.png": PNG, "conversations.json": SHARD})
    assert (again.counts.assets.imported, again.counts.assets.unchanged) == (0, 1)
    stored = await world.ports.catalog.query("SELECT import_id FROM assets")
    assert [row["import_id"] for row in stored] == [first.import_id]


async def test_other_bytes_of_the_same_asset_are_kept_beside_the_first() -> None:
    world = await memory_world()
    await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG})
    await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG + b"more"})
    assert sorted(size for _, _, size, _ in await rows(world)) == [len(PNG), len(PNG) + 4]


async def test_an_asset_too_large_to_hold_is_streamed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asset_phase, "_WHOLE_BYTES", 16)
    world = await memory_world()
    receipt = await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG})
    ((_, _, size, key),) = await rows(world)
    assert (size, await world.ports.objects.get(key)) == (len(PNG), PNG)
    assert receipt.counts.assets.imported == 1


async def test_an_asset_over_the_bound_is_skipped_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asset_phase, "MAX_ASSET_BYTES", 16)
    world = await memory_world()
    receipt = await bring(world, {"conversations.json": SHARD, "file-AAAA1111-garden.png": PNG})
    assert receipt.counts.assets.skipped == 1
    assert [(f.position, f.code) for f in receipt.findings] == [("file-AAAA1111-garden.png", "TOO_LARGE")]
    assert receipt.counts.created == 1


async def test_a_damaged_asset_is_an_error_and_the_others_are_stored() -> None:
    world = await memory_world()
    data = exports.as_zip(
        {"file-AAAA1111-a.png": PNG, "file-BBBB2222-b.png": PNG[::-1], "conversations.json": SHARD}, stored=True
    )
    broken = data.replace(PNG, PNG[:-1] + b"\xff", 1)
    accepted = await uploads.direct(world.ports, OWNER, filename="export.zip", body=broken, size=len(broken))
    await drain(world)
    receipt = await import_receipt(world.ports, OWNER, accepted.import_id)
    assert receipt.status == "complete_with_errors"
    assert (receipt.counts.assets.imported, receipt.counts.assets.failed) == (1, 1)
    assert [asset_id for asset_id, *_ in await rows(world)] == ["file-BBBB2222"]


async def test_many_assets_take_many_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asset_phase, "MAX_TURN_ASSETS", 2)
    world = await memory_world()
    files = {f"file-AAAA111{number}-x.png": PNG + bytes([number]) for number in range(5)}
    receipt = await bring(world, {"conversations.json": SHARD, **files})
    assert receipt.counts.assets.imported == 5
    assert len(await rows(world)) == 5
