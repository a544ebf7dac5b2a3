"""The index holds what the newest head says, and costs what is new."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mempersist import background
from mempersist.archive.model import OWNER
from mempersist.jobs import Delivery
from mempersist.ports import Ports
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, bring, store


class CountingEmbedder:
    """Remembers the texts that were embedded."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.model, self.texts = inner, inner.model, list[str]()

    async def embed(self, texts: Sequence[str], *, kind: Any) -> Any:
        self.texts += texts
        return await self.inner.embed(texts, kind=kind)


def counted(world: World) -> tuple[Ports, CountingEmbedder]:
    embedder = CountingEmbedder(world.ports.embedder)
    values = {name: getattr(world.ports, name) for name in world.ports.__slots__}
    return Ports(**{**values, "embedder": embedder}), embedder


async def found(world: World, query: str) -> list[str]:
    return [hit.snippet for hit in (await search(world.ports, OWNER, query=query, limit=5)).results]


async def test_after_an_append_only_what_is_new_is_embedded() -> None:
    world = await memory_world()
    written = await store(world.ports, *[f"part {index} " + "long words " * 40 for index in range(8)])
    await drain(world)
    await append(world.ports, written, "newest " + "long words " * 40)
    ports, embedder = counted(world)
    await drain(world, ports=ports)
    assert [text.split()[1] for text in embedder.texts] == ["newest"]


async def test_an_edited_message_is_not_found_by_its_old_words_at_any_time() -> None:
    world = await memory_world()
    await bring(world.ports, make.chain("a", "the aardvark sleeps"), import_id="i1")
    await drain(world)
    assert await found(world, "aardvark")
    newer = make.chain("a", "the badger sleeps", updated_at="2026-03-01T00:00:00.000Z")
    await bring(world.ports, newer, import_id="i2")
    assert all("aardvark" not in text for text in await found(world, "aardvark"))
    assert any("badger" in text for text in await found(world, "badger"))
    await drain(world)
    assert all("aardvark" not in text for text in await found(world, "aardvark"))
    assert any("badger" in text for text in await found(world, "badger"))
    rows = await world.ports.catalog.query("SELECT 1 FROM chunks")
    assert (await world.ports.vectors.describe()).count == len(rows)


async def test_a_new_title_can_be_searched_for_without_embedding_again() -> None:
    world = await memory_world()
    await bring(world.ports, make.chain("a", "words"), import_id="i1")
    await drain(world)
    renamed = make.chain("a", "words", title="Zebra", updated_at="2026-03-01T00:00:00.000Z")
    await bring(world.ports, renamed, import_id="i2")
    ports, embedder = counted(world)
    await drain(world, ports=ports)
    assert embedder.texts == []
    result = await search(world.ports, OWNER, query="zebra", limit=5)
    assert [(hit.title, hit.sources[0]) for hit in result.results] == [("Zebra", "lexical")]


async def test_a_late_or_repeated_message_changes_nothing() -> None:
    world = await memory_world()
    written = await store(world.ports, "words")
    await drain(world)
    before = await world.ports.catalog.query("SELECT * FROM chunks")
    late = Delivery("late", {"version": 1, "job_id": written.index_job_id})
    (decision,) = await background.deliver(world.ports, "index", [late])
    assert decision.action == "ack"
    assert await world.ports.catalog.query("SELECT * FROM chunks") == before


async def test_many_conversations_are_indexed_in_one_delivery() -> None:
    world = await memory_world()
    for index in range(12):
        await store(world.ports, f"words of number{index}")
    deliveries = await world.queue.receive("index", limit=25)
    await world.queue.settle(await background.deliver(world.ports, "index", deliveries))
    assert await world.ports.catalog.query("SELECT 1 FROM index_state WHERE status <> 'indexed'") == ()
    assert (await world.ports.vectors.describe()).count == 12
