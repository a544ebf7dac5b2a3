"""Promise: import(export(x)) is x, object by object and digest by digest."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mempersist.archive import accounts, codec, compaction, keys
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER, AccountEntry
from mempersist.catalog.digest import digest
from mempersist.errors import MempersistError
from mempersist.imports import uploads
from mempersist.ports import AccountId, ObjectPage, Ports
from mempersist_ops.archive_file import scratch
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from tests.rigs import conversations as make
from tests.rigs import writes
from tests.rigs.archive_files import contents, exported, members, restored
from tests.rigs.worlds import World, drain, memory_world

EXPORT = b'[{"id": "one", "title": "One", "current_node": "b", "mapping": {"a": {"id": "a", "parent": null}, "b": {"id": "b", "parent": "a", "message": {"id": "b", "author": {"role": "user"}, "content": {"content_type": "text", "parts": ["hello"]}}}}}]'  # noqa: E501


async def uploaded(world: World, *, finished: bool) -> str:
    accepted = await uploads.direct(world.ports, OWNER, filename="conversations.json", body=EXPORT, size=len(EXPORT))
    if finished:
        await drain(world)
    return accepted.import_id


async def live_rows(ports: Ports) -> list[Any]:
    return list(
        await ports.catalog.query(
            "SELECT conversation_id, revision_id FROM conversations WHERE deleted_at IS NULL ORDER BY conversation_id"
        )
    )


async def some_history(world: World, data: st.DataObject) -> None:
    """Imports of any graph, writes, appends, deletions and compactions, drawn by hypothesis."""
    for number in range(data.draw(st.integers(0, 3))):
        source = data.draw(make.conversations(data.draw(st.sampled_from(["alpha", "beta"]))))
        await writes.bring(world.ports, source, import_id=f"import-{number}")
        world.clock.advance(1000)
    for text in data.draw(st.lists(st.sampled_from(["x", "日本語", "\ud800 lone"]), max_size=2)):
        await writes.store(world.ports, text, tags=("a",), namespace="work")
    for row in await live_rows(world.ports):
        for _ in range(data.draw(st.integers(0, 3))):
            with contextlib.suppress(MempersistError):
                await writes.append(world.ports, _written(row), "more")
        await compaction.compact(world.ports, OWNER, row["conversation_id"], above=1)
        if data.draw(st.booleans()):
            await delete_conversation(world.ports, OWNER, row["conversation_id"])
    if data.draw(st.booleans()):
        await drain(world)


def _written(row: Any) -> Written:
    return Written(row["conversation_id"], row["revision_id"], None, 0, 0, None, True, None, False)


@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_archive_comes_back_as_it_was(data: st.DataObject) -> None:
    async def run(folder: Path) -> None:
        world = await memory_world()
        await some_history(world, data)
        summary = await exported(world.ports.objects, folder / "first.zip")
        store = await restored(folder / "first.zip")
        live = await digest(world.ports.catalog)
        assert summary.catalog_digest == live.total
        assert (await scratch.digest_of(store)).total == live.total
        await exported(store, folder / "second.zip")
        assert (folder / "second.zip").read_bytes() == (folder / "first.zip").read_bytes()

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def test_every_object_is_in_the_file_under_its_own_key(tmp_path: Path) -> None:
    world = await memory_world()
    await uploaded(world, finished=True)
    await writes.store(world.ports, "hello")
    await exported(world.ports.objects, tmp_path / "archive.zip")
    held = members(tmp_path / "archive.zip")
    assert {key: held[key] for key in held if "mempersist-export" not in key} == await contents(world.ports.objects)


async def test_bodies_stand_before_what_refers_to_them_and_heads_come_last(tmp_path: Path) -> None:
    world = await memory_world()
    await uploaded(world, finished=True)
    await exported(world.ports.objects, tmp_path / "archive.zip")
    kinds = [key.split("/")[-2] for key in members(tmp_path / "archive.zip") if "/" in key]
    order = {kind: kinds.index(kind) for kind in ("segments", "revisions", "head")}
    assert sorted(order, key=lambda kind: order[kind]) == ["segments", "revisions", "head"]
    assert kinds[-1] == "head"


async def test_without_sources_the_uploads_of_finished_imports_stay_behind(tmp_path: Path) -> None:
    world = await memory_world()
    finished = await uploaded(world, finished=True)
    world.clock.advance(1000)
    unfinished = await uploaded(world, finished=False)
    summary = await exported(world.ports.objects, tmp_path / "archive.zip", sources=False)
    held = members(tmp_path / "archive.zip")
    assert keys.import_source(finished, "conversations.json") not in held
    assert keys.import_receipt(finished) in held
    assert held[keys.import_source(unfinished, "conversations.json")] == EXPORT
    assert summary.catalog_digest == (await digest(world.ports.catalog)).total
    assert summary.sources is False


async def test_another_accounts_memories_are_not_in_the_file(tmp_path: Path) -> None:
    world = await memory_world()
    await writes.store(world.ports, "mine")
    mine = await contents(world.ports.objects)
    other = AccountId("other")
    entry = AccountEntry(other, 0, "create", {"defaultNamespace": "personal"}, "2026-01-01T00:00:00.000Z", None)
    await world.ports.objects.put(keys.account_log(other, 0), codec.encode_account_entry(entry))
    await accounts.catch_up(world.ports, other)
    await writes.store(world.ports, "theirs", account=other)
    assert len(await contents(world.ports.objects)) > len(mine)
    await exported(world.ports.objects, tmp_path / "archive.zip")
    assert {key for key in members(tmp_path / "archive.zip") if "mempersist-export" not in key} == set(mine)


class WritingStore(MemoryObjectStore):
    """Lets somebody write each time the export asks it for something."""

    def __init__(self) -> None:
        super().__init__()
        self.write: Any = None

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        await self._interrupt()
        return await super().list(prefix, limit=min(limit, 3), cursor=cursor, delimiter=delimiter)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        await self._interrupt()
        return await super().get(key, offset=offset, length=length)

    async def _interrupt(self) -> None:
        if self.write is not None:
            write, self.write = self.write, None
            await write()
            self.write = write


async def test_an_export_is_exact_while_writes_go_on(tmp_path: Path) -> None:
    world = await memory_world()
    store = WritingStore()
    ports = replace(world.ports, objects=store)
    for key, data in (await contents(world.ports.objects)).items():
        await store.put(key, data)
    written = [await writes.store(ports, f"first of {number}") for number in range(4)]
    turns = 0

    async def write() -> None:
        nonlocal turns
        turns += 1
        place = turns % len(written)
        written[place] = await writes.append(ports, written[place], f"message {turns}")

    store.write = write
    await exported(store, tmp_path / "archive.zip")
    store.write = None
    assert turns > 20
    other = await restored(tmp_path / "archive.zip")
    restored_keys = set(await contents(other))
    referred = {key for key in restored_keys if "/head/" in key}
    assert len(referred) >= len(written)
    manifests = {key for key in restored_keys if "/revisions/" in key}
    assert len(manifests) == len(referred)


async def test_an_object_that_is_lost_stops_the_export_and_is_named(tmp_path: Path) -> None:
    world = await memory_world()
    await writes.store(world.ports, "hello")
    (segment,) = [key for key in await contents(world.ports.objects) if "/segments/" in key]
    await world.ports.objects.delete([segment])
    with pytest.raises(MempersistError, match=segment):
        await exported(world.ports.objects, tmp_path / "archive.zip")
    assert list(tmp_path.iterdir()) == []


async def test_an_object_whose_bytes_have_changed_stops_the_export_and_is_named(tmp_path: Path) -> None:
    world = await memory_world()
    await writes.store(world.ports, "hello")
    (segment,) = [key for key in await contents(world.ports.objects) if "/segments/" in key]
    await world.ports.objects.put(segment, (await world.ports.objects.get(segment)).replace(b"hello", b"jello"))
    with pytest.raises(MempersistError, match=segment):
        await exported(world.ports.objects, tmp_path / "archive.zip")
    assert list(tmp_path.iterdir()) == []
