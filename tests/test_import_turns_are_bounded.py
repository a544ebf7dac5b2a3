"""An import is a chain of bounded turns: none reads or holds a whole export, and none begins at zero again."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from mempersist import jobs, limits
from mempersist.archive import keys
from mempersist.archive.model import OWNER
from mempersist.imports import runs, staging, uploads
from mempersist.imports.phases import reading
from mempersist.imports.problems import ItemError
from mempersist.imports.records import FindingRow
from mempersist.imports.state import State
from mempersist.imports.status import import_receipt, import_status
from mempersist.imports.turn import run_import_jobs
from mempersist.imports.zipreader import members, read_directory
from mempersist.limits import KIB, MIB
from mempersist.ports import Body, ObjectInfo, ObjectStore, Ports
from tests.rigs import exports
from tests.rigs.exports import conversation
from tests.rigs.sources import BytesSource, collect
from tests.rigs.worlds import World, drain, memory_world


@dataclass
class Turn:
    """What a turn asked of the object store. Sizes are in bytes."""

    phase: str
    read: int = 0
    longest_read: int = 0
    read_of_upload: int = 0
    written: int = 0
    calls: int = 0
    heads: int = 0


@dataclass
class MeteredObjects:
    """An object store that notes what the present turn does with it."""

    inner: ObjectStore
    turns: list[Turn] = field(default_factory=list)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        data = await self.inner.get(key, offset=offset, length=length)
        turn = self.turns[-1]
        turn.calls += 1
        turn.read += len(data)
        turn.longest_read = max(turn.longest_read, len(data))
        if "/source/" in key:
            turn.read_of_upload += len(data)
        return data

    async def put(self, key: str, body: Body, **options: Any) -> ObjectInfo:
        info = await self.inner.put(key, body, **options)
        self.turns[-1].calls += 1
        self.turns[-1].written += info.size
        self.turns[-1].heads += "/head/" in key
        return info

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def run_metered(world: World, data: bytes, filename: str) -> tuple[str, list[Turn]]:
    """Import ``data`` turn by turn; its id and what each turn did."""
    accepted = await uploads.direct(
        world.ports, OWNER, filename=filename, body=data, size=len(data), max_bytes=limits.MAX_IMPORT_BYTES
    )
    meter = MeteredObjects(world.ports.objects)
    ports = replace(world.ports, objects=meter)
    while (run := await runs.load(world.ports, OWNER, accepted.import_id)) is not None:
        meter.turns.append(Turn(run.state.phase))
        await one_turn(ports, accepted.import_id)
    return accepted.import_id, meter.turns


async def one_turn(ports: Ports, import_id: str, owner: str = "test") -> jobs.Outcome:
    job = await jobs.claim(ports, runs.job_id(import_id), owner)
    assert job is not None
    (outcome,) = await run_import_jobs(ports, [job])
    return outcome


async def test_a_turn_commits_at_most_25_conversations() -> None:
    world = await memory_world()
    data = exports.as_json([conversation(f"c{number}", "text") for number in range(120)])
    import_id, turns = await run_metered(world, data, "conversations.json")
    heads = [turn.heads for turn in turns if turn.phase == "files"]
    assert [count for count in heads if count] == [25, 25, 25, 25, 20]
    assert (await import_receipt(world.ports, OWNER, import_id)).counts.created == 120


async def test_a_turn_takes_a_bounded_number_of_bytes_and_the_file_is_read_about_once() -> None:
    world = await memory_world()
    data = exports.as_json([conversation(f"c{number}", "x" * 400_000) for number in range(60)])
    _, turns = await run_metered(world, data, "conversations.json")
    reading_turns = [turn for turn in turns if turn.phase == "files"]
    assert len(reading_turns) >= len(data) // limits.MAX_TURN_BYTES
    assert max(turn.read_of_upload for turn in reading_turns) <= 2 * limits.MAX_TURN_BYTES
    assert sum(turn.read_of_upload for turn in reading_turns) <= 2 * len(data)
    assert max(turn.longest_read for turn in turns) <= 4 * MIB


async def test_the_checkpoint_is_a_byte_offset_that_only_moves_on() -> None:
    world = await memory_world()
    data = exports.as_json([conversation(f"c{number}", "text") for number in range(80)])
    accepted = await uploads.direct(world.ports, OWNER, filename="c.json", body=data, size=len(data))
    offsets = []
    while (run := await runs.load(world.ports, OWNER, accepted.import_id)) is not None:
        if run.state.scan:
            offsets.append(run.state.scan["offset"])
        await one_turn(world.ports, accepted.import_id)
    assert offsets == sorted(set(offsets))
    assert len(offsets) == 3


async def test_many_items_that_hold_nothing_are_read_in_bounded_turns_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_TURN_ITEMS", 10)
    world = await memory_world()
    import_id, turns = await run_metered(world, exports.as_json([[]] * 95), "conversations.json")
    assert sum(turn.phase == "files" for turn in turns) >= 10
    assert (await import_receipt(world.ports, OWNER, import_id)).counts.conversations.failed == 95


async def test_a_packed_file_is_inflated_in_pieces_over_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "STAGE_PIECE_BYTES", 64 * KIB)
    monkeypatch.setattr(staging, "MAX_TURN_STAGE_BYTES", 256 * KIB)
    world = await memory_world()
    texts = [" ".join(f"{number * 7919 % 10007}" for number in range(part, part + 20_000)) for part in range(10)]
    shard = exports.as_json([conversation(f"c{number}", text) for number, text in enumerate(texts)])
    import_id, turns = await run_metered(world, exports.as_zip({"conversations.json": shard}), "export.zip")
    staged = [turn.written for turn in turns if turn.phase == "files" and not turn.heads]
    assert len(staged) >= len(shard) // (256 * KIB)
    assert max(staged) <= 256 * KIB + 64 * KIB
    assert (await import_receipt(world.ports, OWNER, import_id)).counts.created == 10
    assert (await world.ports.objects.list(keys.WORK)).objects == ()


async def test_scratch_objects_that_vanish_are_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "STAGE_PIECE_BYTES", 4 * KIB)
    world = await memory_world()
    shard = exports.as_json([conversation(f"c{number}", "text " * 50) for number in range(60)])
    data = exports.as_zip({"conversations.json": shard})
    accepted = await uploads.direct(world.ports, OWNER, filename="export.zip", body=data, size=len(data))
    turn = 0
    while await runs.load(world.ports, OWNER, accepted.import_id) is not None:
        turn += 1
        scratch = [info.key for info in (await world.ports.objects.list(keys.WORK)).objects]
        await world.ports.objects.delete(scratch[turn % 3 :: 3])
        await one_turn(world.ports, accepted.import_id)
        assert turn < 50
    receipt = await import_receipt(world.ports, OWNER, accepted.import_id)
    assert (receipt.status, receipt.counts.created, receipt.counts.files.imported) == ("complete", 60, 1)


async def test_the_checkpoint_stays_small_however_large_the_export() -> None:
    world = await memory_world()
    data = exports.as_json([["bad"], *(conversation(f"c{number}", "text") for number in range(300))])
    accepted = await uploads.direct(world.ports, OWNER, filename="c.json", body=data, size=len(data))
    sizes = []
    while (run := await runs.load(world.ports, OWNER, accepted.import_id)) is not None:
        sizes.append(len(run.state.encode()))
        await one_turn(world.ports, accepted.import_id)
    assert max(sizes) < 2 * KIB


async def test_a_turn_that_lost_its_lease_changes_nothing() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one")])
    accepted = await uploads.direct(world.ports, OWNER, filename="c.json", body=data, size=len(data))
    stale_job = await jobs.claim(world.ports, runs.job_id(accepted.import_id), "first")
    stale = await runs.load(world.ports, OWNER, accepted.import_id)
    assert stale_job is not None
    assert stale is not None
    late = runs.Step(replace(stale.state, phase="finish"), [FindingRow("c.json:0", "failed", "LATE", "late")])
    statements = runs.settle(stale, stale_job, late, runs.now_of(world.ports))

    world.clock.advance((limits.LEASE_SECONDS + 1) * 1000)
    await one_turn(world.ports, accepted.import_id, "second")
    after = await runs.load(world.ports, OWNER, accepted.import_id)
    await world.ports.catalog.batch(statements)
    assert await runs.load(world.ports, OWNER, accepted.import_id) == after

    await drain(world)
    await world.ports.catalog.batch(statements)
    receipt = await import_receipt(world.ports, OWNER, accepted.import_id)
    assert (receipt.status, receipt.findings) == ("complete", ())
    assert await world.ports.catalog.query("SELECT * FROM import_findings") == ()


async def test_a_damaged_member_never_counts_as_staged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "STAGE_PIECE_BYTES", 4 * KIB)
    world = await memory_world()
    content = b"".join(number.to_bytes(4, "big") for number in range(3 * KIB))
    archive = exports.as_zip({"conversations.json": content})
    source = BytesSource(archive.replace(zlib.crc32(content).to_bytes(4, "little"), b"\0\0\0\0"))
    directory = await read_directory(source)
    (member,) = await collect(members(source, directory))
    job = jobs.Job("job", "import", OWNER, "subject", 1, "owner")
    with pytest.raises(ItemError, match="checksum"):
        await staging.stage(world.ports, job, source, directory, member, "work/test/")
    assert len((await world.ports.objects.list("work/test/")).objects) == 2
    assert not await staging.is_staged(world.ports.objects, "work/test/", member)


async def test_status_shows_how_far_an_import_is_and_then_how_it_ended() -> None:
    world = await memory_world()
    data = exports.as_json([conversation(f"c{number}", "text") for number in range(60)])
    accepted = await uploads.direct(world.ports, OWNER, filename="c.json", body=data, size=len(data))
    seen = []
    while await runs.load(world.ports, OWNER, accepted.import_id) is not None:
        status = await import_status(world.ports, OWNER, accepted.import_id)
        seen.append((status.status, status.phase, status.processed_items, status.total_items))
        assert status.bytes_done <= max(status.bytes_total, status.bytes_done)
        await one_turn(world.ports, accepted.import_id)
    assert seen == [
        ("uploaded", "hash", 0, None),
        ("processing", "survey", 0, None),
        ("processing", "files", 0, None),
        ("processing", "files", 25, None),
        ("processing", "files", 50, None),
        ("processing", "files", 60, None),
        ("processing", "assets", 60, None),
        ("processing", "finish", 60, None),
    ]
    answer = (await import_status(world.ports, OWNER, accepted.import_id)).as_json()
    assert (answer["status"], answer["total_items"], answer["checkpoint_ordinal"]) == ("complete", 60, 59)


async def test_a_job_that_was_given_up_shows_as_failed_with_the_reason() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one")])
    accepted = await uploads.direct(world.ports, OWNER, filename="c.json", body=data, size=len(data))
    await world.ports.objects.delete([accepted.object_key])
    for _ in range(limits.MAX_DELIVERIES):
        await drain(world)
        world.clock.advance(3_600_000)
    status = await import_status(world.ports, OWNER, accepted.import_id)
    assert (status.status, status.ended, status.error_code) == ("failed", False, "RETRYABLE_INFRASTRUCTURE")


def test_a_state_survives_its_encoding() -> None:
    state = State(phase="assets", archives=3, archive=2, scan={"offset": 5}, asset_at=(7, 1), duplicate_of="x")
    assert State.decode(state.encode()) == state
    assert State.decode("{}") == State()
