"""Deleting: hidden at once, gone from the store soon after, and honoured by a rebuild."""

from __future__ import annotations

import pytest

from mempersist import jobs
from mempersist.archive import codec, keys, load
from mempersist.archive.deletion import delete_conversation, purge_if_deleted
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.jobs import Job
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, store


async def objects_of(world: World, conversation_id: str) -> list[str]:
    return [info.key for info in (await world.ports.objects.list(keys.conversation(conversation_id))).objects]


async def test_a_deleted_conversation_is_hidden_before_its_bodies_are_gone() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret words")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    assert await world.ports.catalog.query("SELECT 1 FROM conversations WHERE deleted_at IS NULL") == ()
    assert len(await objects_of(world, written.conversation_id)) > 1


async def test_only_a_tombstone_without_text_stays_in_the_store() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret words", title="Secret title", tags=["secret-tag"])
    await append(world.ports, written, "secret too")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    await drain(world)
    (only,) = await objects_of(world, written.conversation_id)
    assert only == keys.head(written.conversation_id, 2)
    data = await world.ports.objects.get(only)
    assert b"secret" not in data.lower()
    assert codec.decode_head(data).deleted


async def test_nothing_of_it_stays_in_the_catalog_and_the_index() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret words", title="Secret title", tags=["t"], idempotency_key="k")
    await drain(world)
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    await drain(world)
    for table in ("messages", "revisions", "conversation_tags", "idempotency_keys", "chunks"):
        assert await world.ports.catalog.query(f"SELECT 1 FROM {table}") == (), table
    assert await world.ports.catalog.query("SELECT 1 FROM chunks_fts WHERE chunks_fts MATCH 'secret'") == ()
    assert (await world.ports.vectors.describe()).count == 0
    assert (await world.ports.catalog.query("SELECT title FROM conversations"))[0]["title"] == ""


async def test_a_rebuild_honours_the_tombstone() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret words")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    await drain(world)
    rebuilt = await with_empty_catalog(world)
    report = await rebuild_catalog(rebuilt.ports)
    assert (report.conversations, report.tombstones) == (0, 1)
    assert await rebuilt.ports.catalog.query("SELECT 1 FROM conversations WHERE deleted_at IS NULL") == ()


async def test_a_rebuild_finishes_a_deletion_that_was_interrupted() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret words")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    await drain(rebuilt)
    assert len(await objects_of(rebuilt, written.conversation_id)) == 1


async def test_beginning_anew_waits_until_the_old_bodies_are_gone() -> None:
    world = await memory_world()
    written = await store(world.ports, "one", idempotency_key="k")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.RETRYABLE_INFRASTRUCTURE):
        await store(world.ports, "one", idempotency_key="k")
    await drain(world)
    again = await store(world.ports, "one", idempotency_key="k")
    assert again.conversation_id == written.conversation_id
    log = await load.head_log(world.ports.objects, written.conversation_id)
    assert [entry.operation for entry, _ in log] == ["delete", "store"]


async def test_a_turn_that_lost_its_lease_deletes_nothing() -> None:
    world = await memory_world()
    written = await store(world.ports, "one")
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    before = await objects_of(world, written.conversation_id)
    stale = Job("nobody's", "index", OWNER, written.conversation_id, 1, "lost")
    with pytest.raises(MempersistError):
        await purge_if_deleted(world.ports, stale)
    assert await objects_of(world, written.conversation_id) == before


async def test_a_live_conversation_is_never_purged() -> None:
    world = await memory_world()
    written = await store(world.ports, "one")
    job = await jobs.claim(world.ports, written.index_job_id or "", "me")
    assert job is not None
    assert not await purge_if_deleted(world.ports, job)
