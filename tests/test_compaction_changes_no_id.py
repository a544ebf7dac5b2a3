"""A conversation of very many small segments is rewritten in few; readers and ids do not notice."""

from __future__ import annotations

from dataclasses import asdict

from mempersist import limits
from mempersist.archive import compaction, read
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, store


async def grown(world: World, segments: int) -> Written:
    written = await store(world.ports, "message 0")
    for index in range(1, segments):
        written = await append(world.ports, written, f"message {index}")
    return written


async def segment_count(world: World) -> int:
    rows = await world.ports.catalog.query(
        "SELECT segment_count FROM revisions AS r JOIN conversations AS c ON c.revision_id = r.revision_id"
    )
    return int(rows[0]["segment_count"])


async def test_compaction_keeps_every_id_and_every_message() -> None:
    world = await memory_world()
    written = await grown(world, 5)
    before = await read.read_page(world.ports, OWNER, written.conversation_id, limit=100)
    assert await compaction.compact(world.ports, OWNER, written.conversation_id, above=3)
    after = await read.read_page(world.ports, OWNER, written.conversation_id, limit=100)
    assert asdict(after) == asdict(before)
    assert await segment_count(world) == 1


async def test_a_conversation_of_few_segments_is_left_alone() -> None:
    world = await memory_world()
    written = await grown(world, 3)
    objects = len((await world.ports.objects.list("")).objects)
    assert not await compaction.compact(world.ports, OWNER, written.conversation_id, above=3)
    assert len((await world.ports.objects.list("")).objects) == objects


async def test_appends_go_on_behind_a_compaction() -> None:
    world = await memory_world()
    written = await grown(world, 4)
    await compaction.compact(world.ports, OWNER, written.conversation_id, above=1)
    written = await append(world.ports, written, "after")
    assert await segment_count(world) == 2
    page = await read.read_page(world.ports, OWNER, written.conversation_id, limit=100)
    assert [message.node.text for message in page.messages][-2:] == ["message 3", "after"]


async def test_earlier_revisions_stay_readable_behind_a_compaction() -> None:
    world = await memory_world()
    first = await grown(world, 2)
    second = await append(world.ports, first, "third")
    await compaction.compact(world.ports, OWNER, second.conversation_id, above=1)
    page = await read.read_page(world.ports, OWNER, first.conversation_id, revision_id=first.revision_id)
    assert [message.node.text for message in page.messages] == ["message 0", "message 1"]


async def test_the_index_turn_compacts_what_grew_too_long() -> None:
    world = await memory_world()
    await grown(world, limits.COMPACT_AFTER_SEGMENTS + 1)
    await drain(world)
    assert await segment_count(world) == 1


async def test_a_compaction_that_was_interrupted_is_taken_up_by_a_rebuild() -> None:
    world = await memory_world()
    written = await grown(world, 4)
    await compaction.compact(world.ports, OWNER, written.conversation_id, above=1)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await segment_count(rebuilt) == 1
