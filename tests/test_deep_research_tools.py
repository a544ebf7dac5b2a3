"""``search`` and ``fetch`` as deep research expects them: documents with a page to cite, whole or piece by piece."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist import limits
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.mcp import budget
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import is_worker, new_world
from tests.rigs.mcp import PUBLIC_URL, Client, client, principal
from tests.rigs.worker.process import running
from tests.rigs.worlds import drain

EVERY_HOST = True
NOBODYS = "00000000-0000-4000-8000-000000000000"
CEILING = limits.RECOMMENDED_TOOL_OUTPUT_BYTES
Answer = dict[str, Any]


def page_of(at: Client, conversation_id: str) -> str:
    """The page of a conversation on the host of this test."""
    public_url = running().url if is_worker(at.service.ports) else PUBLIC_URL
    return f"{public_url}/conversations/{conversation_id}"


async def found(at: Client, query: str) -> list[Answer]:
    results: list[Answer] = (await at.answer("search", query=query))["results"]
    return results


async def read_on(at: Client, document: str) -> list[Answer]:
    """The document and all that goes on from it."""
    pieces = [await at.answer("fetch", id=document)]
    while "next_id" in pieces[-1]["metadata"]:
        assert len(pieces) < 100
        pieces.append(await at.answer("fetch", id=pieces[-1]["metadata"]["next_id"]))
    assert all(budget.size(piece) <= CEILING for piece in pieces)
    return pieces


@pytest.mark.parametrize("indexed", [True, False])
async def test_a_result_has_id_title_and_url_and_its_document_the_text(indexed: bool) -> None:
    world = await new_world()
    written = await writes.store(world.ports, "A barometer.", "It falls.", title="Weather", tags=["Sky"])
    if indexed:
        await drain(world)
    at = await client(world.ports)
    result = await at.call("search", query="barometer")
    url = page_of(at, written.conversation_id)
    assert result["structuredContent"] == {"results": [{"id": written.conversation_id, "title": "Weather", "url": url}]}
    (block,) = result["content"]
    assert json.loads(block["text"]) == result["structuredContent"]
    document = await at.answer("fetch", id=written.conversation_id)
    assert document["text"] == "user:\nA barometer.\n\nuser:\nIt falls.\n\n"
    assert (document["id"], document["title"], document["url"]) == (written.conversation_id, "Weather", url)
    assert document["metadata"]["revision_id"] == written.revision_id
    assert document["metadata"]["tags"] == "sky"
    assert document["metadata"]["messages"] == "2"
    assert all(isinstance(value, str) for value in document["metadata"].values())


async def test_a_conversation_that_matches_in_several_places_is_one_document() -> None:
    world = await new_world()
    await writes.store(world.ports, *(f"barometer number {index} " + "and weather " * 100 for index in range(4)))
    await drain(world)
    assert len(await found(await client(world.ports), "barometer")) == 1


@pytest.mark.parametrize("indexed", [True, False])
async def test_a_passage_far_into_a_conversation_is_in_the_document_that_search_names(indexed: bool) -> None:
    world = await new_world()
    texts = [f"message {index} " + "filler words of no weight " * 60 for index in range(90)]
    texts[70] = "The zymurgist keeps a hydrometer."
    written = await writes.store(world.ports, *texts)
    if indexed:
        await drain(world)
    at = await client(world.ports)
    documents = await found(at, "zymurgist hydrometer")
    assert documents[0]["id"] == f"{written.conversation_id}:68"
    assert documents[0]["url"] == page_of(at, written.conversation_id)
    text = (await at.answer("fetch", id=documents[0]["id"]))["text"]
    assert "The zymurgist keeps a hydrometer." in text
    assert text.startswith("user:\nmessage 68 ")


async def test_a_passage_on_another_branch_is_read_on_its_branch() -> None:
    world = await new_world()
    nodes = [
        node("a", None),
        node("b", "a", "Which instrument?"),
        node("c", "b", "The theodolite, surely.", role="assistant"),
        node("d", "b", "The sextant.", role="assistant"),
    ]
    (imported,) = await writes.bring(world.ports, conversation("s", nodes))
    await drain(world)
    at = await client(world.ports)
    (document,) = [item for item in await found(at, "theodolite") if item["id"] != imported.conversation_id]
    fetched = await at.answer("fetch", id=document["id"])
    assert "theodolite" in fetched["text"]
    assert "sextant" not in fetched["text"]
    assert fetched["metadata"]["branch"] == "other"


async def test_a_long_conversation_goes_on_under_the_next_id_without_gap_or_repeat() -> None:
    world = await new_world()
    written = await writes.store(world.ports, *(f"<{index}>" + "word " * 300 for index in range(120)))
    pieces = await read_on(await client(world.ports), written.conversation_id)
    assert len(pieces) > 1
    text = "".join(piece["text"] for piece in pieces)
    assert [text.count(f"<{index}>") for index in range(120)] == [1] * 120


async def test_a_message_too_large_for_an_answer_keeps_its_place_with_a_word() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "before", "x" * 60_000, "after")
    pieces = await read_on(await client(world.ports), written.conversation_id)
    text = "".join(piece["text"] for piece in pieces)
    assert text.index("before") < text.index("too large for one answer") < text.index("after")
    assert "xxx" not in text


@pytest.mark.in_process
@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", '"', "\n", "😀", "\x00"]), st.sampled_from([1, 900, 9000, 30_000])),
        min_size=1,
        max_size=8,
    ),
    st.text("😀", min_size=1, max_size=500),
)
def test_no_document_is_above_its_ceiling_and_no_message_is_cut(parts: list[tuple[str, int]], title: str) -> None:
    async def run() -> None:
        world = await new_world()
        texts = [f"<{index}>{script * times}</{index}>" for index, (script, times) in enumerate(parts)]
        written = await writes.store(world.ports, *texts, title=title)
        pieces = await read_on(await client(world.ports), written.conversation_id)
        for index in range(len(texts)):
            whole = [piece for piece in pieces if f"<{index}>" in piece["text"]]
            assert all(f"</{index}>" in piece["text"] for piece in whole)
            assert len(whole) <= 1
        told = sum(piece["text"].count("too large for one answer") for piece in pieces)
        assert told + sum(piece["text"].count("</") for piece in pieces) == len(texts)

    asyncio.run(run())


@pytest.mark.in_process
async def test_missing_deleted_and_foreign_documents_are_one_answer() -> None:
    world = await new_world()
    kept, gone = await writes.store(world.ports, "A barometer."), await writes.store(world.ports, "A thermometer.")
    await drain(world)
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    chunk = (await owner.answer("memory_search", query="barometer"))["results"][0]["chunkId"]
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    for at, identifiers in (
        (owner, [NOBODYS, gone.conversation_id, f"{gone.conversation_id}:0"]),
        (stranger, [kept.conversation_id, f"{kept.conversation_id}:1"]),
    ):
        for identifier in identifiers:
            error = await at.refused("fetch", id=identifier)
            assert (error["code"], error["message"]) == ("NOT_FOUND", "conversation not found")
    for at, identifier in (
        (owner, f"{NOBODYS}:{chunk}"),
        (owner, f"{kept.conversation_id}:{'0' * 64}"),
        (stranger, f"{kept.conversation_id}:{chunk}"),
    ):
        error = await at.refused("fetch", id=identifier)
        assert (error["code"], error["message"]) == ("NOT_FOUND", "chunk not found")
    assert await found(stranger, "barometer") == []
    assert len(await found(owner, "barometer")) == 1


@pytest.mark.in_process
async def test_a_channel_that_is_out_of_reach_is_disclosed() -> None:
    world = await new_world()
    await writes.store(world.ports, "A barometer.")
    await drain(world)
    await writes.store(world.ports, "Just written.")
    for prefix in ("canonical/conversations/",):
        page = await world.ports.objects.list(prefix)
        await world.ports.objects.delete([info.key for info in page.objects])
    answer = await (await client(world.ports)).answer("search", query="barometer")
    assert answer["unavailable"] == ["recent_canonical"]
    assert len(answer["results"]) == 1


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search", {}),
        ("search", {"query": ""}),
        ("search", {"query": "q" * 2001}),
        ("search", {"query": "q", "limit": 3}),
        ("fetch", {}),
        ("fetch", {"id": "x"}),
        ("fetch", {"id": NOBODYS + ":"}),
        ("fetch", {"id": NOBODYS + ":12345678901"}),
        ("fetch", {"id": NOBODYS + ":-1"}),
        ("fetch", {"id": NOBODYS, "format": "compact"}),
    ],
)
async def test_what_is_out_of_bounds_is_refused(name: str, arguments: Answer) -> None:
    assert (await (await client()).refused(name, **arguments))["code"] == "VALIDATION"


async def test_the_longest_query_and_the_furthest_place_are_taken() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "x")
    at = await client(world.ports)
    assert await found(at, "q" * 2000) == []
    assert (await at.answer("fetch", id=f"{written.conversation_id}:9999999999"))["text"] == ""
