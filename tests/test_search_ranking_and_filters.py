"""What comes first, what is left out, and what is said when a channel is down."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.catalog.conversations import TagMode
from mempersist.errors import Code, MempersistError
from mempersist.index.generation import generation_of
from mempersist.ports import AccountId, CatalogError, IndexUnavailable, Ports
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.search.query import SearchResult, search
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import bring, store


async def ask(world: World, query: str, limit: int = 10, **options: Any) -> SearchResult:
    return await search(world.ports, OWNER, query=query, limit=limit, **options)


async def titles(world: World, query: str, **options: Any) -> list[str]:
    return [hit.title for hit in (await ask(world, query, **options)).results]


async def library() -> World:
    world = await memory_world()
    for index in range(40):
        await store(world.ports, f"common words about gardens and rivers, number {index}", title=f"Common {index}")
        world.clock.advance(86_400_000)
    await store(world.ports, "common words and one xylophone", title="Rare")
    await store(world.ports, "something else altogether", title="Gardens of stone")
    await drain(world)
    return world


class Down:
    """A port of which one call is out of reach."""

    def __init__(self, inner: Any, name: str, error: Exception, only: str = "") -> None:
        self.inner, self.name, self.error, self.only = inner, name, error, only

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self.inner, name)
        if name != self.name:
            return attribute

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.only in str(args[0]):
                raise self.error
            return await attribute(*args, **kwargs)

        return call


def with_port(world: World, port: str, replacement: Any) -> Ports:
    return Ports(**{**{name: getattr(world.ports, name) for name in world.ports.__slots__}, port: replacement})


async def test_the_only_text_with_a_rare_word_comes_first() -> None:
    assert (await titles(await library(), "common words xylophone"))[0] == "Rare"


async def test_an_old_strong_match_beats_recent_weak_ones() -> None:
    world = await library()
    assert (await titles(world, "gardens rivers number 3"))[0] == "Common 3"


async def test_a_title_counts_more_than_a_mention() -> None:
    assert (await titles(await library(), "gardens stone"))[0] == "Gardens of stone"


async def test_a_conversation_has_at_most_five_places() -> None:
    world = await memory_world()
    await store(world.ports, *[f"walrus story {index} " + "long words " * 40 for index in range(9)], title="Walrus")
    await store(world.ports, "one walrus", title="Other")
    await drain(world)
    found = await titles(world, "walrus")
    assert found.count("Walrus") == 5
    assert "Other" in found


async def test_a_rebuilt_and_reindexed_archive_gives_the_very_same_answers() -> None:
    world = await library()
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    await drain(rebuilt)
    for query in ("common words", "gardens", "xylophone", "number 7", "stone rivers"):
        assert await ask(rebuilt, query) == await ask(world, query)


async def test_a_fresh_write_is_found_at_once_and_once_only_when_it_is_indexed() -> None:
    world = await library()
    await store(world.ports, "the narwhal memo", title="Fresh")
    before = await ask(world, "narwhal memo")
    await drain(world)
    after = await ask(world, "narwhal memo")
    assert before.results[0].sources == ("recent_canonical",)
    assert after.results[0].sources == ("lexical", "semantic")
    assert before.results[0].chunk_id == after.results[0].chunk_id
    assert [hit.title for hit in after.results].count("Fresh") == 1


async def test_a_bulk_import_does_not_crowd_out_a_fresh_write() -> None:
    world = await memory_world()
    await store(world.ports, "the narwhal memo", title="Fresh")
    world.clock.advance(1000)
    await bring(world.ports, *[make.chain(f"c{index}", "narwhal notes memo") for index in range(60)])
    assert "Fresh" in await titles(world, "narwhal memo")


async def test_tags_narrow_by_all_or_any() -> None:
    world = await memory_world()
    await store(world.ports, "walrus", title="both", tags=["a", "b"])
    await store(world.ports, "walrus", title="one", tags=["a"])
    await drain(world)
    modes: list[tuple[TagMode, list[str]]] = [("all", ["both"]), ("any", ["both", "one"])]
    for mode, expected in modes:
        assert sorted(await titles(world, "walrus", tags=["B ", "a"], tag_mode=mode)) == expected


@pytest.mark.parametrize("namespace", ["work", "ü" * 100])
async def test_a_namespace_narrows(namespace: str) -> None:
    world = await memory_world()
    await store(world.ports, "walrus", title="in", namespace=namespace)
    await store(world.ports, "walrus", title="out", namespace="ü" * 99)
    for _ in range(2):
        assert await titles(world, "walrus", namespace=namespace) == ["in"]
        await drain(world)


async def test_a_namespace_that_is_not_owned_is_refused() -> None:
    with pytest.raises(MempersistError, check=lambda error: (error.code, error.status) == (Code.AUTHENTICATION, 403)):
        await ask(await memory_world(), "walrus", namespace="nobody's")


async def test_another_account_finds_nothing() -> None:
    world = await library()
    result = await search(world.ports, AccountId("stranger"), query="common words", limit=5)
    assert result.results == ()


async def test_a_deleted_conversation_is_not_found_even_before_the_index_knows() -> None:
    world = await memory_world()
    written = await store(world.ports, "walrus")
    await drain(world)
    await delete_conversation(world.ports, OWNER, written.conversation_id)
    assert await titles(world, "walrus") == []


async def test_without_vectors_words_are_still_found_and_it_is_said() -> None:
    world = await library()
    ports = with_port(world, "vectors", Down(world.ports.vectors, "query", IndexUnavailable("down")))
    result = await search(ports, OWNER, query="xylophone", limit=5)
    assert (result.degraded, result.unavailable) == (True, ("semantic",))
    assert [(hit.title, hit.sources) for hit in result.results] == [("Rare", ("lexical",))]


async def test_without_full_text_meaning_is_still_asked_and_it_is_said() -> None:
    world = await library()
    ports = with_port(world, "catalog", Down(world.ports.catalog, "query", CatalogError("down"), only="chunks_fts"))
    result = await search(ports, OWNER, query="xylophone", limit=5)
    assert (result.degraded, result.unavailable) == (True, ("fts",))
    assert "Rare" in [hit.title for hit in result.results]


async def test_a_just_written_memory_that_cannot_be_read_is_said() -> None:
    world = await library()
    written = await store(world.ports, "the narwhal memo")
    prefix = f"canonical/conversations/{written.conversation_id}/segments/"
    await world.ports.objects.delete([info.key for info in (await world.ports.objects.list(prefix)).objects])
    assert (await ask(world, "narwhal")).unavailable == ("recent_canonical",)


async def test_when_nothing_can_answer_it_is_an_error_and_no_empty_answer() -> None:
    world = await library()
    down = Down(world.ports.catalog, "query", CatalogError("down"), only="conversations AS c")
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.RETRYABLE_INFRASTRUCTURE):
        await search(with_port(world, "catalog", down), OWNER, query="xylophone", limit=5)


async def test_only_the_active_generation_is_searched() -> None:
    world = await library()
    await world.ports.catalog.query(
        "UPDATE index_generations SET status = 'retired' WHERE generation = ?", (generation_of(world.ports).id,)
    )
    await world.ports.catalog.query(
        "INSERT INTO index_generations VALUES ('other', 'active', 's', 'm', 64, '2026', '2026')"
    )
    assert await titles(world, "xylophone") == []
