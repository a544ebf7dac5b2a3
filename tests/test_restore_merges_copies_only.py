"""What an archive file may be restored into: nothing, or a copy of the same archive."""

from __future__ import annotations

from pathlib import Path

import pytest

from mempersist.archive import keys
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist_ops.archive_file import restore, scratch
from tests.rigs import writes
from tests.rigs.archive_files import contents, exported, restored
from tests.rigs.worlds import drain, memory_world


async def test_an_older_copy_catches_up(tmp_path: Path) -> None:
    world = await memory_world()
    written = await writes.store(world.ports, "hello")
    await exported(world.ports.objects, tmp_path / "old.zip")
    await writes.append(world.ports, written, "again")
    await exported(world.ports.objects, tmp_path / "new.zip")
    copy = await restored(tmp_path / "old.zip")
    await restored(tmp_path / "new.zip", copy)
    assert await contents(copy) == await contents(world.ports.objects)


async def test_an_older_file_changes_nothing_in_a_newer_copy(tmp_path: Path) -> None:
    world = await memory_world()
    written = await writes.store(world.ports, "hello")
    await exported(world.ports.objects, tmp_path / "old.zip")
    await writes.append(world.ports, written, "again")
    before = await contents(world.ports.objects)
    await restored(tmp_path / "old.zip", world.ports.objects)
    assert await contents(world.ports.objects) == before


async def test_two_archives_that_began_apart_are_not_mixed(tmp_path: Path) -> None:
    world = await memory_world()
    await writes.store(world.ports, "hello")
    await exported(world.ports.objects, tmp_path / "archive.zip")
    apart = await memory_world()
    apart.clock.advance(5000)
    await writes.store(apart.ports, "something else", namespace="elsewhere")
    before = await contents(apart.ports.objects)
    with pytest.raises(MempersistError, match="restore into an empty directory instead") as caught:
        await restored(tmp_path / "archive.zip", apart.ports.objects)
    assert caught.value.code is Code.IMPORT_CONFLICT
    assert await contents(apart.ports.objects) == before


async def test_copies_that_went_different_ways_are_not_mixed(tmp_path: Path) -> None:
    world = await memory_world()
    written = await writes.store(world.ports, "hello")
    await exported(world.ports.objects, tmp_path / "fork.zip")
    await writes.append(world.ports, written, "here")
    await exported(world.ports.objects, tmp_path / "here.zip")
    fork = await memory_world()
    await writes.store(fork.ports, "hello")
    await writes.append(fork.ports, written, "there")
    before = await contents(fork.ports.objects)
    with pytest.raises(MempersistError, match=r"another canonical/conversations/.*/head/0000000001\.json"):
        await restored(tmp_path / "here.zip", fork.ports.objects)
    assert await contents(fork.ports.objects) == before


async def test_what_was_deleted_since_is_not_dug_up(tmp_path: Path) -> None:
    world = await memory_world()
    kept, deleted = await writes.store(world.ports, "hello"), await writes.store(world.ports, "a secret")
    await exported(world.ports.objects, tmp_path / "archive.zip")
    await delete_conversation(world.ports, OWNER, deleted.conversation_id)
    await drain(world)
    await world.ports.objects.delete([keys.head(kept.conversation_id, 0)])
    before = await contents(world.ports.objects)
    assert not any(b"a secret" in data for data in before.values())
    with restore.opened(tmp_path / "archive.zip") as archive:
        leave_out = await restore.buried(archive, world.ports.objects)
        summary = await restore.check(archive)
        await restore.check_fits(archive, world.ports.objects, leave_out)
        done = await restore.copy(archive, world.ports.objects, summary, leave_out=leave_out)
    after = await contents(world.ports.objects)
    assert leave_out == {deleted.conversation_id}
    assert set(after) - set(before) == {keys.head(kept.conversation_id, 0)}
    assert (done.written, done.left_out) == (1, 3)


async def test_an_interrupted_restore_is_finished_by_running_it_again(tmp_path: Path) -> None:
    world = await memory_world()
    await writes.store(world.ports, "hello")
    summary = await exported(world.ports.objects, tmp_path / "archive.zip")
    copy = await restored(tmp_path / "archive.zip")
    lost = [key for key in await contents(copy) if "/head/" in key or "/revisions/" in key]
    await copy.delete(lost)
    with restore.opened(tmp_path / "archive.zip") as archive:
        done = await restore.copy(archive, copy, await restore.check(archive))
    assert (done.written, done.unchanged) == (len(lost), summary.objects - len(lost))
    assert (await scratch.digest_of(copy)).total == summary.catalog_digest


async def test_a_first_start_alone_counts_as_empty(tmp_path: Path) -> None:
    world = await memory_world()
    assert await restore.counts_as_empty(world.ports.objects)
    await writes.store(world.ports, "hello")
    assert not await restore.counts_as_empty(world.ports.objects)
