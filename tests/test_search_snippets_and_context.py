"""A snippet shows the match; the context shows the messages around it, of the same branch only."""

from __future__ import annotations

import pytest

from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.index.terms import terms
from mempersist.limits import MAX_SNIPPET_CHARS
from mempersist.ports import AccountId
from mempersist.search.context import Context, get_context
from mempersist.search.matching import Matcher
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import bring, store

FILLER = "many other words stand here. "


def snippet(query: str, text: str) -> str:
    return Matcher.of(terms(query)).snippet(text)


@pytest.mark.parametrize(
    ("query", "match"),
    [
        ("walrus", "the walrus sat"),
        ("WALRUS", "the walrus sat"),
        ("grösse", "die Größe zählt"),
        ("紅葉", "京都で紅葉を見る"),
        ("किताब", "हिन्दी में किताब है"),
        ("foo_bar.baz", "call foo_bar.baz now"),
    ],
)
def test_a_snippet_is_around_the_match_and_not_the_head(query: str, match: str) -> None:
    text = FILLER * 60 + match + ". " + FILLER * 60
    found = snippet(query.replace("grösse", "Größe"), text)
    assert match in found
    assert len(found) <= MAX_SNIPPET_CHARS
    assert found.startswith("…")
    assert found.endswith("…")


def test_the_place_with_most_of_the_words_is_shown() -> None:
    text = "walrus. " + FILLER * 40 + "a walrus met an otter by the sea" + FILLER * 40
    assert "walrus met an otter" in snippet("walrus otter sea", text)


def test_words_are_not_cut() -> None:
    text = FILLER * 100
    inside = snippet("nowhere", text).strip("…").split()
    assert set(inside) <= set(FILLER.split())


def test_a_short_text_is_shown_whole() -> None:
    assert snippet("x", "a short text") == "a short text"


async def chunk_of(world: World, query: str) -> str:
    return (await search(world.ports, OWNER, query=query, limit=1)).results[0].chunk_id


async def context(world: World, query: str, before: int = 1, after: int = 1) -> Context:
    return await get_context(world.ports, OWNER, chunk_id=await chunk_of(world, query), before=before, after=after)


def long(word: str) -> str:
    return f"{word} " + "and many more words " * 20


async def test_the_context_is_the_messages_around_on_the_active_branch() -> None:
    world = await memory_world()
    await store(world.ports, *[long(word) for word in ("zero", "one", "two", "three", "four")])
    await drain(world)
    found = await context(world, "two")
    assert [message.node.text.split()[0] for message in found.messages] == ["one", "two", "three"]
    (matched,) = found.matched_ranges
    assert (matched.char_start, matched.char_end) == (0, len(long("two")))
    assert [message.offset for message in found.messages] == [1, 2, 3]


async def test_at_the_ends_there_is_less() -> None:
    world = await memory_world()
    await store(world.ports, long("first"), long("second"))
    await drain(world)
    assert len((await context(world, "first", before=10, after=0)).messages) == 1
    assert len((await context(world, "second", before=10, after=10)).messages) == 2


async def test_the_context_of_another_branch_never_mixes_in_its_siblings() -> None:
    world = await memory_world()
    nodes = [
        make.node("a", None, long("question")),
        make.node("b1", "a", long("walrus"), role="assistant"),
        make.node("c1", "b1", long("thanks")),
        make.node("b2", "a", long("otter"), role="assistant"),
        make.node("c2", "b2", long("more")),
    ]
    await bring(world.ports, make.conversation("x", nodes, current_source_node_id="c2"))
    await drain(world)
    found = await context(world, "walrus", before=5, after=5)
    assert [message.node.text.split()[0] for message in found.messages] == ["question", "walrus", "thanks"]


async def test_a_memory_has_its_context_before_it_is_indexed() -> None:
    world = await memory_world()
    await store(world.ports, long("walrus"), long("otter"))
    assert len((await context(world, "walrus")).messages) == 2


async def test_missing_foreign_superseded_and_deleted_chunks_are_one_answer() -> None:
    world = await memory_world()
    await bring(world.ports, make.chain("a", "the aardvark sleeps"), import_id="i1")
    await drain(world)
    old = await chunk_of(world, "aardvark")
    newer = make.chain("a", "the badger sleeps", updated_at="2026-03-01T00:00:00.000Z")
    await bring(world.ports, newer, import_id="i2")
    answers = set()
    for account, chunk_id in ((OWNER, "0" * 64), (AccountId("stranger"), old), (OWNER, old)):
        with pytest.raises(MempersistError, check=lambda error: error.code is Code.NOT_FOUND) as caught:
            await get_context(world.ports, account, chunk_id=chunk_id, before=1, after=1)
        answers.add((caught.value.message, caught.value.status))
    assert answers == {("chunk not found", 404)}
