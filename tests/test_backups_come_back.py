"""A backup comes back as it was, whole or in part; what is wrong with one is named, and the rest comes back."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from mempersist import timestamps
from mempersist.archive import keys
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.errors import MempersistError
from mempersist.ports import ObjectStore, StorageError
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist_ops.archive_file import scratch
from mempersist_ops.backup import check, create, layout, repository
from mempersist_ops.backup.layout import Snapshot
from mempersist_ops.backup.restore import Restored, Wanted, restore
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from tests.rigs import exports
from tests.rigs.archives import populated
from tests.rigs.command import answer, mempersist
from tests.rigs.faults import FaultPlan, wrap
from tests.rigs.worlds import World, memory_world, with_empty_catalog
from tests.rigs.writes import append, store

KEY = b"k" * 32


async def backed_up(world: World, into: ObjectStore, archive: ObjectStore | None = None) -> Snapshot:
    return await create.create(archive or world.ports.objects, OWNER, into, KEY, world.ports.clock, world.ports.ids)


async def came_back(
    into: ObjectStore, of: Snapshot, wanted: Wanted | None = None
) -> tuple[MemoryObjectStore, Restored]:
    archive = MemoryObjectStore()
    return archive, await restore(into, of, archive, wanted or Wanted())


async def every(objects: ObjectStore, prefix: str = "") -> list[str]:
    return [info.key for info in (await objects.list(prefix)).objects]


async def test_the_same_archive_comes_back() -> None:
    world, into = await populated(), MemoryObjectStore()
    of = await backed_up(world, into)
    archive, report = await came_back(into, of)
    assert report.left_out == []
    expected = (await scratch.digest_of(world.ports.objects)).total
    assert of.catalog_digest == (await scratch.digest_of(archive)).total == expected
    for key in await every(archive):
        assert await archive.get(key) == await world.ports.objects.get(key)


async def test_a_second_snapshot_copies_only_what_is_new() -> None:
    world, into = await populated(), MemoryObjectStore()
    await backed_up(world, into)
    reads: list[str] = []
    unchanged = await backed_up(world, into, Counting(world.ports.objects, reads))
    assert (unchanged.new_objects, unchanged.new_bytes) == (0, 0)
    assert not [key for key in reads if "/segments/" in key or key.endswith(".bin") or "/source/" in key]
    base = await store(world.ports, "later words")
    before = set(await every(into, layout.BLOBS))
    grown = await backed_up(world, into)
    assert grown.new_objects == 3
    assert len(set(await every(into, layout.BLOBS)) - before) == 3
    assert base.conversation_id


class Counting:
    """Notes what is read."""

    def __init__(self, inner: ObjectStore, reads: list[str]) -> None:
        self._inner, self._reads = inner, reads

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        self._reads.append(key)
        return await self._inner.get(key, offset=offset, length=length)


async def test_one_conversation_can_come_back_alone() -> None:
    world, into = await populated(), MemoryObjectStore()
    wanted = await store(world.ports, "just this one", title="Wanted")
    of = await backed_up(world, into)
    archive, _ = await came_back(into, of, Wanted(conversation=wanted.conversation_id))
    found = await world_over(archive)
    rows = await found.ports.catalog.query("SELECT title FROM conversations")
    assert [row["title"] for row in rows] == ["Wanted"]
    with pytest.raises(MempersistError, match="has no conversation"):
        await came_back(into, of, Wanted(conversation="0" * 64))


async def world_over(archive: ObjectStore) -> World:
    """A system over these objects with its catalog rebuilt."""
    world = await with_empty_catalog(await populated_over(archive))
    report = await rebuild_catalog(world.ports)
    assert report.damaged == []
    return world


async def populated_over(archive: ObjectStore) -> World:
    world = await memory_world()
    return replace(world, ports=replace(world.ports, objects=archive))


async def test_the_archive_comes_back_as_it_was_at_a_time() -> None:
    world, into = await populated(), MemoryObjectStore()
    base = await store(world.ports, "early words", title="Kept")
    then = world.ports.clock.now_ms()
    early = (await digest(world.ports.catalog)).total
    world.clock.advance(60_000)
    await append(world.ports, base, "late words")
    await store(world.ports, "a late conversation")
    of = await backed_up(world, into)
    archive, report = await came_back(into, of, Wanted(until=timestamps.from_ms(then)))
    assert report.later == 2
    assert (await digest((await world_over(archive)).ports.catalog)).total == early


Damage = Callable[[MemoryObjectStore], Awaitable[str]]


async def a_segment_blob(into: MemoryObjectStore) -> str:
    of = await repository.snapshot(into, (await repository.snapshot_ids(into))[-1])
    found = [layout.blob(line.sha256) async for line in repository.lines(into, of) if "/segments/" in line.key]
    return found.pop()


async def a_flipped_bit(into: MemoryObjectStore) -> str:
    key = await a_segment_blob(into)
    data = bytearray(await into.get(key))
    data[3] ^= 4
    await into.put(key, bytes(data))
    return key


async def a_missing_object(into: MemoryObjectStore) -> str:
    key = await a_segment_blob(into)
    await into.delete([key])
    return key


async def an_extra_object(into: MemoryObjectStore) -> str:
    await into.put("blobs/zz/extra", b"?")
    return "blobs/zz/extra"


async def a_cut_snapshot(into: MemoryObjectStore) -> str:
    newest = (await repository.snapshot_ids(into))[-1]
    await into.put(layout.snapshot_key(newest), (await into.get(layout.snapshot_key(newest)))[:-30])
    return newest


async def a_forged_snapshot(into: MemoryObjectStore) -> str:
    newest = (await repository.snapshot_ids(into))[-1]
    value = json.loads(await into.get(layout.snapshot_key(newest)))
    await into.put(layout.snapshot_key(newest), json.dumps({**value, "objects": 1}).encode())
    return newest


async def a_cut_list(into: MemoryObjectStore) -> str:
    newest = (await repository.snapshot_ids(into))[-1]
    of = await repository.snapshot(into, newest)
    await into.put(layout.list_part(of.parts[0]), b"")
    return newest


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (a_flipped_bit, "BLOB_DAMAGED"),
        (a_missing_object, "BLOB_MISSING"),
        (an_extra_object, "EXTRA"),
        (a_cut_snapshot, "SNAPSHOT_DAMAGED"),
        (a_forged_snapshot, "SIGNATURE_WRONG"),
        (a_cut_list, "LIST_DAMAGED"),
    ],
)
async def test_what_is_wrong_with_a_backup_is_found_and_named(damage: Damage, code: str) -> None:
    world, into = await populated(), MemoryObjectStore()
    await backed_up(world, into)
    world.clock.advance(1000)
    await backed_up(world, into)
    good = await check.check(into, KEY)
    assert (good.problems, good.good, good.snapshots) == ([], True, 2)
    what = await damage(into)
    found = await check.check(into, KEY)
    assert (code, what) in found.problems
    assert found.good == (code in check.HARMLESS)


@pytest.mark.parametrize("damage", [a_flipped_bit, a_missing_object])
async def test_the_rest_of_a_damaged_backup_comes_back(damage: Damage) -> None:
    world, into = await populated(), MemoryObjectStore()
    of = await backed_up(world, into)
    await damage(into)
    archive, report = await came_back(into, of)
    lost = {key.split("/")[2] for key in report.left_out}
    assert len(lost) == 1
    found = await world_over(archive)
    (row,) = await found.ports.catalog.query("SELECT count(*) AS n FROM conversations")
    (whole,) = await world.ports.catalog.query("SELECT count(*) AS n FROM conversations")
    assert row["n"] == whole["n"] - 1


async def test_a_key_that_is_not_at_hand_is_said_and_another_is_noticed() -> None:
    world, into = await populated(), MemoryObjectStore()
    of = await backed_up(world, into)
    for key in (None, b"x" * 32):
        report = await check.check(into, key)
        assert (report.problems, report.good) == ([("SIGNATURE_UNKNOWN", of.id)], True)


async def test_a_backup_stopped_at_any_call_is_taken_up_by_the_next() -> None:
    world = await populated()
    plan = FaultPlan()
    await backed_up(world, MemoryObjectStore(), wrap(world.ports, plan).objects)
    for at in range(0, len(plan.calls), 7):
        into = MemoryObjectStore()
        with pytest.raises((StorageError, MempersistError)):
            await backed_up(world, into, wrap(world.ports, FaultPlan(at=at, kind="trouble")).objects)
        assert await repository.snapshot_ids(into) == []
        of = await backed_up(world, into)
        assert (await check.check(into, KEY)).problems == []
        assert of.catalog_digest == (await scratch.digest_of(world.ports.objects)).total


async def test_a_restore_goes_only_into_an_archive_that_is_empty_and_can_be_repeated() -> None:
    world, into = await populated(), MemoryObjectStore()
    of = await backed_up(world, into)
    archive, first = await came_back(into, of)
    again = await restore(into, of, archive, Wanted())
    assert (again.written, again.unchanged) == (0, first.written)
    other = await populated()
    await store(other.ports, "other memories")
    with pytest.raises(MempersistError, match="restore into an empty directory"):
        await restore(into, of, other.ports.objects, Wanted())
    assert keys.FORMAT_KEY in await every(archive)


async def test_a_directory_of_something_else_is_not_taken_for_a_backup() -> None:
    world, into = await populated(), MemoryObjectStore()
    await into.put("holiday.jpg", b"...")
    with pytest.raises(MempersistError, match="there is no mempersist backup"):
        await backed_up(world, into)
    with pytest.raises(MempersistError, match="there is no mempersist backup"):
        await check.check(into, KEY)
    assert await every(into) == ["holiday.jpg"]


def test_the_commands_back_up_check_drill_and_restore(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_bytes(exports.as_json([exports.conversation("a", "hello walrus")]))
    here, there, backup = tmp_path / "here", tmp_path / "there", tmp_path / "backup"
    answer("import", tmp_path / "c.json", "--data-dir", here)
    made = answer("backup", backup, "--data-dir", here)
    assert answer("backup", backup, "--list")["snapshots"] == [made]
    checked = answer("backup", backup, "--check", "--data-dir", here)
    assert (checked["good"], checked["problems"], checked["snapshots"]) == (True, [], 1)
    drilled = answer("drill", backup, "--report", tmp_path / "report.json")
    assert (drilled["good"], drilled["catalogDigest"]) == (True, made["catalogDigest"])
    assert json.loads((tmp_path / "report.json").read_text()) == drilled
    restored = answer("restore", backup, "--data-dir", there)
    assert (restored["catalogDigest"], restored["leftOut"]) == (made["catalogDigest"], [])
    found = answer("search", "walrus", "--data-dir", there)
    assert len(found["results"]) == 1
    refused = mempersist("restore", backup, "--until", "yesterday", "--data-dir", tmp_path / "new")
    assert (refused.returncode, "ISO 8601" in refused.stderr) == (1, True)
    blobs = [path for path in (backup / "objects" / "blobs").rglob("*") if path.is_file()]
    blob = next(path for path in blobs if b"walrus" in path.read_bytes())
    blob.write_bytes(blob.read_bytes().replace(b"walrus", b"otters"))
    assert answer("backup", backup, "--check", "--data-dir", here, code=1)["good"] is False
    assert answer("drill", backup, code=1)["good"] is False
