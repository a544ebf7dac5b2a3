"""Whatever a person pastes is a query: never a syntax error, never an exception."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.archive.model import OWNER
from mempersist.index.terms import terms
from mempersist.limits import MAX_SEARCH_QUERY_CHARS
from mempersist.search.query import search
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import store

syntax = st.lists(
    st.sampled_from(
        ['"', "'", "(", ")", "*", "^", "-", ":", "AND", "OR", "NOT", "NEAR(", "title:", "x", "x y", "{", "\0"]
    ),
    max_size=12,
).map(" ".join)


async def world() -> World:
    made = await memory_world()
    await store(made.ports, "The quick brown fox, v2.10.1, calls os.path.join('a', 'b') AND goes home", title="Fox")
    await drain(made)
    return made


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), min_size=1, max_size=200) | syntax, max_size=5))
def test_any_text_is_answered(queries: list[str]) -> None:
    async def ask() -> None:
        made = await world()
        for query in queries:
            result = await search(made.ports, OWNER, query=query, limit=5)
            assert not result.degraded

    asyncio.run(ask())


@pytest.mark.parametrize(
    "query",
    [
        "fox",
        '"quick brown"',
        "quick AND",
        "os.path.join('a', 'b')",
        "v2.10.1",
        "what about the fox?!",
        "🦊 fox 🦊",
        "fox" + " and more words that are not there" * 55,
        "2026-01-01 12:00:00 ERROR at os.path.join(/usr/lib) <fox> {x: 1}",
    ],
)
async def test_what_it_holds_is_found(query: str) -> None:
    result = await search((await world()).ports, OWNER, query=query[:MAX_SEARCH_QUERY_CHARS], limit=5)
    assert [hit.title for hit in result.results] == ["Fox"]


async def test_a_query_of_stop_words_only_is_still_asked() -> None:
    result = await search((await world()).ports, OWNER, query="and the", limit=5)
    assert [hit.title for hit in result.results] == ["Fox"]


@pytest.mark.parametrize("query", ["", "   ", "...", "🦊", '"()*'])
async def test_a_query_without_a_letter_or_digit_is_a_healthy_empty_answer(query: str) -> None:
    result = await search((await world()).ports, OWNER, query=query, limit=5)
    assert (result.results, result.degraded, result.unavailable) == ((), False, ())


def test_the_number_of_terms_is_bounded() -> None:
    assert len(terms(" ".join(f"word{index}" for index in range(400)))) <= 40
    assert len(terms("漢字仮名交文" * 300)) <= 40
