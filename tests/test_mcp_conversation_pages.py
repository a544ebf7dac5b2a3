"""Reading a conversation: whole messages only, a page never above its bytes, nothing skipped without a word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import canonical, limits
from mempersist.archive.model import AssetRef, Node
from mempersist.archive.read import ConversationView, MessageView
from mempersist.mcp import budget, messages
from tests.rigs import writes
from tests.rigs.conversations import chain, conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client

EVERY_HOST = True

CEILING = limits.RECOMMENDED_TOOL_OUTPUT_BYTES
SCRIPTS = (
    "plain words ",
    "नमस्ते दुनिया ",
    "日本語の文章",
    'quotes " and \\ and \n',
    "\x00\x1b\x07",
    "😀👩‍👩‍👧",
    "\ud800",
)


async def stored(*texts: str, **changes: Any) -> tuple[Client, str]:
    world = await new_world()
    written = await writes.store(world.ports, *texts, **changes)
    return await client(world.ports), written.conversation_id


async def walk(at: Client, conversation_id: str, **arguments: Any) -> list[dict[str, Any]]:
    """Every page, from the first to the one without a next."""
    pages = [await at.answer("memory_get_conversation", conversation_id=conversation_id, **arguments)]
    while pages[-1]["nextOffset"] is not None:
        arguments["offset"] = pages[-1]["nextOffset"]
        pages.append(await at.answer("memory_get_conversation", conversation_id=conversation_id, **arguments))
        assert len(pages) < 1000
    return pages


# ------------------------------------------------------------------ shapes


async def test_a_canonical_page_has_everything_of_its_messages() -> None:
    world = await new_world()
    raw = {"id": "b", "message": {"content": {"content_type": "text", "parts": ["Hi"]}, "author": {"role": "user"}}}
    picture = AssetRef("file-1", "sediment://file-1", "image", "cat.png", "image/png")
    nodes = [
        node("a", None),
        Node("b", "a", "user", "Hi", created_at="2026-01-01T00:00:00.000Z", raw=raw, assets=(picture,)),
        Node("c", "b", "assistant", "Hello", model_slug="gpt-6", updated_at="2026-01-01T00:00:02.000Z"),
    ]
    (outcome,) = await writes.bring(world.ports, conversation("s1", nodes, anomalies=("odd:thing",)))
    at = await client(world.ports)
    page = await at.answer("memory_get_conversation", conversation_id=outcome.conversation_id)
    assert page == {
        "conversation": {
            "id": outcome.conversation_id,
            "title": "About s1",
            "sourceType": "chatgpt",
            "sourceId": "s1",
            "namespace": "personal",
            "tags": [],
            "revisionId": outcome.revision_id,
            "currentSourceNodeId": "c",
            "anomalies": ["odd:thing"],
        },
        "messages": [
            {
                "id": canonical.node_id(outcome.conversation_id, "b"),
                "sourceNodeId": "b",
                "parentSourceNodeId": "a",
                "role": "user",
                "text": "Hi",
                "content": {"content_type": "text", "parts": ["Hi"]},
                "createdAt": "2026-01-01T00:00:00.000Z",
                "updatedAt": None,
                "modelSlug": None,
                "kind": "text",
                "assets": [
                    {
                        "assetId": "file-1",
                        "pointer": "sediment://file-1",
                        "kind": "image",
                        "name": "cat.png",
                        "mediaType": "image/png",
                    }
                ],
            },
            {
                "id": canonical.node_id(outcome.conversation_id, "c"),
                "sourceNodeId": "c",
                "parentSourceNodeId": "b",
                "role": "assistant",
                "text": "Hello",
                "content": None,
                "createdAt": None,
                "updatedAt": "2026-01-01T00:00:02.000Z",
                "modelSlug": "gpt-6",
                "kind": "text",
                "assets": [],
            },
        ],
        "offset": 0,
        "nextOffset": None,
        "total": 2,
    }


async def test_a_compact_page_has_who_said_what_and_when() -> None:
    at, conversation_id = await stored("one", "two", title="Numbers", tags=["Maths"])
    page = await at.answer("memory_get_conversation", conversation_id=conversation_id, format="compact", offset=1)
    assert page["conversation"] == {
        "id": conversation_id,
        "revisionId": page["conversation"]["revisionId"],
        "title": "Numbers",
        "namespace": "personal",
        "tags": ["maths"],
    }
    (message,) = page["messages"]
    assert set(message) == {"sourceNodeId", "role", "createdAt", "updatedAt", "text"}
    assert message["text"] == "two"
    assert (page["offset"], page["nextOffset"], page["total"]) == (1, None, 2)


async def test_the_branch_all_lists_every_node_and_the_active_one_what_a_reader_saw() -> None:
    world = await new_world()
    nodes = [
        node("a", None),
        node("b", "a", "question"),
        node("c", "b", "first answer", role="assistant"),
        node("d", "b", "second answer", role="assistant"),
    ]
    (outcome,) = await writes.bring(world.ports, conversation("s1", nodes))
    at = await client(world.ports)
    active = await at.answer("memory_get_conversation", conversation_id=outcome.conversation_id)
    everything = await at.answer("memory_get_conversation", conversation_id=outcome.conversation_id, branch="all")
    assert [message["text"] for message in active["messages"]] == ["question", "second answer"]
    assert [message["sourceNodeId"] for message in everything["messages"]] == ["a", "b", "c", "d"]
    assert [message["kind"] for message in everything["messages"]] == ["none", "text", "text", "text"]


async def test_an_earlier_revision_is_read_as_it_was() -> None:
    world = await new_world()
    first = await writes.store(world.ports, "one")
    await writes.append(world.ports, first, "two")
    at = await client(world.ports)
    arguments = {"conversation_id": first.conversation_id, "revision_id": first.revision_id}
    page = await at.answer("memory_get_conversation", **arguments)
    assert [message["text"] for message in page["messages"]] == ["one"]
    assert page["conversation"]["revisionId"] == first.revision_id


async def test_many_anomalies_are_counted_not_listed() -> None:
    world = await new_world()
    odd = tuple(f"odd:{index}" for index in range(50))
    (outcome,) = await writes.bring(world.ports, chain("s1", "x", anomalies=odd))
    page = await (await client(world.ports)).answer("memory_get_conversation", conversation_id=outcome.conversation_id)
    listed = page["conversation"]["anomalies"]
    assert len(listed) == 20
    assert page["conversation"]["anomaliesNotListed"] == 30


# ------------------------------------------------------------------ bytes


@pytest.mark.parametrize("message_format", ["canonical", "compact"])
async def test_a_page_is_shortened_to_whole_messages_and_the_next_goes_on_from_there(message_format: str) -> None:
    texts = [f"{index}:" + SCRIPTS[index % 5] * 300 for index in range(60)]
    at, conversation_id = await stored(*texts)
    pages = await walk(at, conversation_id, format=message_format, limit=100)
    assert len(pages) > 2
    assert all(budget.size(page) <= CEILING for page in pages)
    read = [message["text"] for page in pages for message in page["messages"]]
    assert read == [budget.clean(text) for text in texts]


async def test_a_message_too_large_for_any_page_is_named_and_passed_over() -> None:
    huge = "x" * CEILING
    at, conversation_id = await stored("before", huge, "after", huge)
    first, second, third, fourth = await walk(at, conversation_id)
    assert [message["text"] for message in first["messages"]] == ["before"]
    assert first["nextOffset"] == 1
    mark = second["oversizedMessage"]
    assert second["messages"] == []
    assert second["nextOffset"] == 2
    assert mark["conversationId"] == conversation_id
    assert mark["revisionId"] == second["conversation"]["revisionId"]
    assert mark["offset"] == 1
    assert mark["bytes"] > CEILING
    assert mark["sourceNodeId"].startswith("mcp-1-")
    assert [message["text"] for message in third["messages"]] == ["after"]
    assert "oversizedMessage" not in third
    assert fourth["oversizedMessage"]["offset"] == 3
    assert fourth["nextOffset"] is None


async def test_a_message_that_only_its_structure_makes_too_large_is_there_in_the_compact_format() -> None:
    world = await new_world()
    raw = {"message": {"content": {"content_type": "code", "result": "y" * CEILING}}}
    (outcome,) = await writes.bring(world.ports, conversation("s1", [Node("a", None, "tool", "short", raw=raw)]))
    at = await client(world.ports)
    full = await at.answer("memory_get_conversation", conversation_id=outcome.conversation_id)
    compact = await at.answer("memory_get_conversation", conversation_id=outcome.conversation_id, format="compact")
    assert full["oversizedMessage"]["sourceNodeId"] == "a"
    assert [message["text"] for message in compact["messages"]] == ["short"]


async def test_large_titles_and_tags_take_room_from_the_messages_not_from_the_ceiling() -> None:
    tags = [f"{index:02d}" + "😀" * 62 for index in range(20)]
    at, conversation_id = await stored(*["z" * 15_000] * 4, title="\U0001f600" * 500, tags=tags)
    pages = await walk(at, conversation_id)
    assert all(budget.size(page) <= CEILING for page in pages)
    assert sum(len(page["messages"]) for page in pages) == 4


async def test_a_page_reads_only_so_many_bytes_from_the_store() -> None:
    texts = ["w" * 900_000] * 12
    world = await new_world()
    written = await writes.store(world.ports, *texts)
    read = 0
    get = world.ports.objects.get

    async def counting(key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        nonlocal read
        data = await get(key, offset=offset, length=length)
        read += len(data)
        return data

    world.ports.objects.get = counting  # type: ignore[method-assign]
    at = await client(world.ports)
    page = await at.answer("memory_get_conversation", conversation_id=written.conversation_id, limit=100)
    assert page["nextOffset"] == 1
    assert read < limits.MAX_PAGE_READ_BYTES + 100_000


async def test_an_offset_past_the_end_is_an_empty_page() -> None:
    at, conversation_id = await stored("one")
    page = await at.answer("memory_get_conversation", conversation_id=conversation_id, offset=99)
    assert (page["messages"], page["nextOffset"], page["total"]) == ([], None, 1)


VIEW = ConversationView("c" * 64, "T", "mcp", None, "personal", (), "r" * 64, None, None, "", (), {}, 0)
TEXTS = st.builds(lambda script, times: script * times, st.sampled_from(SCRIPTS), st.integers(0, 400))


@given(st.lists(TEXTS, max_size=12), st.integers(200, 6000), st.sampled_from(["canonical", "compact"]))
def test_whatever_the_sizes_a_walk_sees_every_message_once_within_its_room(
    texts: list[str], room: int, message_format: str
) -> None:
    views = [MessageView(index, Node(f"n{index}", None, "user", text)) for index, text in enumerate(texts)]
    render = messages.renderer(message_format, VIEW.id)
    offset: int | None = 0
    seen = []
    while offset is not None:
        fitted = messages.fit(
            views[offset:], render=render, room=room, conversation=VIEW, next_offset=None, total=len(views)
        )
        assert budget.size(list(fitted.messages)) - 2 <= room
        seen += [message["sourceNodeId"] for message in fitted.messages]
        if fitted.oversized is not None:
            assert not fitted.messages
            assert fitted.oversized["bytes"] > room
            seen.append(fitted.oversized["sourceNodeId"])
        assert fitted.next_offset is None or fitted.next_offset > offset
        offset = fitted.next_offset
    assert seen == [view.node.source_node_id for view in views]
