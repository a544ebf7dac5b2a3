"""Search answers with short references; the context of one of them is whole messages around what matched."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.mcp import budget
from mempersist.ports import IndexUnavailable
from mempersist.text import printable
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client
from tests.rigs.worlds import drain

EVERY_HOST = True

CEILING = limits.RECOMMENDED_TOOL_OUTPUT_BYTES


async def indexed(*texts: str, **changes: Any) -> Client:
    world = await new_world()
    await writes.store(world.ports, *texts, **changes)
    await drain(world)
    return await client(world.ports)


async def best_hit(at: Client, query: str) -> Any:
    return (await at.answer("memory_search", query=query))["results"][0]


def filler(words: int, seed: str) -> str:
    return " ".join(f"{seed}{index}" for index in range(words))


# ------------------------------------------------------------------ search


async def test_a_result_is_a_reference_and_a_snippet() -> None:
    at = await indexed("The spare key hangs behind the barometer.", title="House", tags=["Home"])
    found = await at.answer("memory_search", query="barometer")
    assert set(found) == {"results", "degraded", "unavailable"}
    (hit,) = found["results"]
    assert set(hit) == {
        "conversationId",
        "revisionId",
        "chunkId",
        "title",
        "snippet",
        "timestamp",
        "namespace",
        "tags",
        "score",
        "sources",
    }
    assert (hit["title"], hit["namespace"], hit["tags"]) == ("House", "personal", ["home"])
    assert "behind the barometer" in hit["snippet"]
    assert hit["score"] == round(hit["score"], 6)
    assert set(hit["sources"]) <= {"lexical", "semantic", "recent_canonical"}


async def test_what_was_just_stored_is_found_before_it_is_indexed() -> None:
    world = await new_world()
    await writes.store(world.ports, "Nobody expects the barometer.")
    hit = await best_hit(await client(world.ports), "barometer")
    assert hit["sources"] == ["recent_canonical"]


@pytest.mark.parametrize("query", ["AND OR NOT (", '"', "*", "foo-bar:baz^2", "\x00\x07", "\ud800 lone", "😀", "  "])
async def test_any_text_is_a_query(query: str) -> None:
    at = await indexed("Some text.")
    assert (await at.answer("memory_search", query=query))["degraded"] is False


async def test_namespace_and_tags_are_compared_as_they_are_kept() -> None:
    at = await indexed("A barometer.", namespace="project/x", tags=["Work"])
    found = await at.answer("memory_search", query="barometer", namespace=" project/x ", tags=["  WORK "])
    assert len(found["results"]) == 1


@pytest.mark.in_process
async def test_a_channel_that_cannot_answer_is_named() -> None:
    world = await new_world()
    await writes.store(world.ports, "A barometer.")
    await drain(world)

    async def embed(*_: object, **__: object) -> Any:
        raise IndexUnavailable("no model")

    world.ports.embedder.embed = embed  # type: ignore[method-assign]
    found = await (await client(world.ports)).answer("memory_search", query="barometer")
    assert (found["degraded"], found["unavailable"]) == (True, ["semantic"])
    assert len(found["results"]) == 1


async def test_results_that_do_not_fit_are_counted() -> None:
    world = await new_world()
    tags = [f"{index:02d}" + "😀" * 62 for index in range(20)]
    for index in range(20):
        await writes.store(world.ports, f"A barometer, number {index}.", title="\U0001f600" * 500, tags=tags)
        await drain(world)
    found = await (await client(world.ports)).answer("memory_search", query="barometer", limit=20)
    assert budget.size(found) <= CEILING
    assert 0 < len(found["results"]) < 20
    assert len(found["results"]) + found["resultsNotListed"] == 20


async def test_a_namespace_the_account_does_not_own_is_refused() -> None:
    error = await (await indexed("A barometer.")).refused("memory_search", query="barometer", namespace="other")
    assert error["code"] == "AUTHENTICATION"


# ------------------------------------------------------------------ context

BEFORE, MATCH, AFTER = filler(90, "before"), filler(90, "middle"), filler(90, "after")


async def test_context_is_the_match_with_its_neighbours_and_which_characters_matched() -> None:
    at = await indexed("far away", BEFORE, MATCH, AFTER, filler(90, "end"))
    hit = await best_hit(at, "middle45")
    context = await at.answer("memory_get_context", chunk_id=hit["chunkId"], before=1, after="1", format="compact")
    assert set(context) == {"chunkId", "conversationId", "revisionId", "messages", "matchedRanges"}
    assert [message["text"] for message in context["messages"]] == [BEFORE, MATCH, AFTER]
    (matched,) = context["matchedRanges"]
    assert matched["sourceNodeId"] == context["messages"][1]["sourceNodeId"]
    assert MATCH[matched["charStart"] : matched["charEnd"]] == MATCH
    assert context["conversationId"] == hit["conversationId"]
    assert context["revisionId"] == hit["revisionId"]


async def test_ranges_count_the_characters_of_the_text_as_it_is_answered() -> None:
    dirty = "\x00\x01\x02" + filler(90, "middle") + "\x1b"
    at = await indexed(BEFORE, dirty, AFTER)
    hit = await best_hit(at, "middle45")
    context = await at.answer("memory_get_context", chunk_id=hit["chunkId"], before=0, after=0)
    (message,) = context["messages"]
    (matched,) = context["matchedRanges"]
    assert message["text"] == printable(dirty)
    assert 0 <= matched["charStart"] < matched["charEnd"] <= len(message["text"])
    assert "middle45" in message["text"][matched["charStart"] : matched["charEnd"]]


async def test_the_nearest_messages_stay_where_not_all_fit() -> None:
    texts = [filler(90, f"{letter}{letter}") + " " + "y" * 9_000 for letter in "abcdefghi"]
    at = await indexed(*texts)
    hit = await best_hit(at, "ee45")
    context = await at.answer("memory_get_context", chunk_id=hit["chunkId"], before=10, after=10, format="compact")
    assert budget.size(context) <= CEILING
    shown = [message["text"][0] for message in context["messages"]]
    assert "e" in shown
    assert shown == sorted(shown)
    assert "".join(shown) in "abcdefghi"
    assert 0 < len(shown) < 9
    assert len(shown) + context["messagesNotListed"] == 9


async def test_the_match_in_a_message_too_large_to_show_comes_as_an_excerpt() -> None:
    huge = "\n\n".join(filler(200, f"part{part}x") for part in range(60))
    at = await indexed(BEFORE, huge, AFTER)
    hit = await best_hit(at, "part30x100")
    context = await at.answer("memory_get_context", chunk_id=hit["chunkId"], before=1, after=1, format="compact")
    assert budget.size(huge) > CEILING >= budget.size(context)
    assert [message["text"] for message in context["messages"]] == [BEFORE, AFTER]
    assert context["messagesNotListed"] == 1
    (excerpt,) = context["excerpts"]
    assert "part30x100" in excerpt["text"]
    assert huge[excerpt["charStart"] : excerpt["charEnd"]] == excerpt["text"]
    (matched,) = context["matchedRanges"]
    assert {key: excerpt[key] for key in matched} == matched


async def test_an_alternate_branch_never_mixes_in_the_sibling() -> None:
    world = await new_world()
    nodes = [
        node("a", None, filler(90, "root")),
        node("b", "a", filler(90, "rejected"), role="assistant"),
        node("c", "a", filler(90, "chosen"), role="assistant"),
    ]
    await writes.bring(world.ports, conversation("s1", nodes))
    await drain(world)
    at = await client(world.ports)
    hit = next(
        item
        for item in (await at.answer("memory_search", query="rejected45"))["results"]
        if "rejected45" in item["snippet"]
    )
    context = await at.answer("memory_get_context", chunk_id=hit["chunkId"])
    assert [message["sourceNodeId"] for message in context["messages"]] == ["a", "b"]


async def test_a_chunk_that_is_not_there_is_not_found() -> None:
    at = await indexed("A barometer.")
    assert await at.refused("memory_get_context", chunk_id="0" * 64) == {
        "code": "NOT_FOUND",
        "message": "chunk not found",
    }
