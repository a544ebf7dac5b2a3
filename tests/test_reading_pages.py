"""Reading a conversation page by page costs the page, whatever the length, and never mixes revisions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.archive import read
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from tests.rigs import conversations as make
from tests.rigs.worlds import memory_world
from tests.rigs.writes import append, bring, store


class CountingObjects:
    """An object store that remembers how many bytes were read."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.bytes_read, self.reads = inner, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        data: bytes = await self.inner.get(key, offset=offset, length=length)
        self.bytes_read += len(data)
        self.reads += 1
        return data


async def walk(ports: Any, conversation_id: str, **query: Any) -> list[str]:
    """Every text of a branch, page by page."""
    texts: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await read.read_page(ports, OWNER, conversation_id, offset=offset, **query)
        assert [message.offset for message in page.messages] == list(range(offset, offset + len(page.messages)))
        texts += [message.node.text for message in page.messages]
        offset = page.next_offset
    return texts


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 30), st.integers(1, 7))
async def test_pages_join_to_the_whole_without_gap_or_repeat(count: int, limit: int) -> None:
    world = await memory_world()
    written = [f"message {index}" for index in range(count)]
    stored = await store(world.ports, *written)
    assert await walk(world.ports, stored.conversation_id, limit=limit) == written


async def test_a_page_of_a_long_conversation_reads_little_more_than_the_page() -> None:
    world = await memory_world()
    stored = await store(world.ports, *["x" * 5000] * 900)
    counting = CountingObjects(world.ports.objects)
    ports = world.ports.__class__(
        **{**{name: getattr(world.ports, name) for name in world.ports.__slots__}, "objects": counting}
    )
    await read.read_page(ports, OWNER, stored.conversation_id, offset=700, limit=10)
    assert counting.bytes_read < 70_000
    assert counting.reads == 2


async def test_empty_roots_and_hidden_nodes_are_not_shown_but_listed() -> None:
    world = await memory_world()
    nodes = [
        make.node("a", None),
        make.node("b", "a", "system words", role="system", hidden=True),
        make.node("c", "b", "hello"),
        make.node("d", "c", "other answer", role="assistant"),
        make.node("e", "c", "answer", role="assistant"),
    ]
    (item,) = await bring(world.ports, make.conversation("x", nodes))
    assert await walk(world.ports, item.conversation_id, limit=2) == ["hello", "answer"]
    everything = await walk(world.ports, item.conversation_id, limit=2, branch="all")
    assert everything == ["", "system words", "hello", "other answer", "answer"]


async def test_a_pinned_revision_is_read_as_it_was_while_others_write() -> None:
    world = await memory_world()
    first = await store(world.ports, "one", "two", "three")
    page = await read.read_page(world.ports, OWNER, first.conversation_id, limit=2, revision_id=first.revision_id)
    await append(world.ports, first, "four")
    rest = await read.read_page(
        world.ports, OWNER, first.conversation_id, offset=2, limit=2, revision_id=first.revision_id
    )
    assert [message.node.text for message in (*page.messages, *rest.messages)] == ["one", "two", "three"]
    assert rest.next_offset is None
    assert rest.total == 3


async def test_past_the_end_is_an_empty_page() -> None:
    world = await memory_world()
    stored = await store(world.ports, "one")
    page = await read.read_page(world.ports, OWNER, stored.conversation_id, offset=5)
    assert (page.messages, page.next_offset, page.total) == ((), None, 1)


async def test_a_revision_of_another_conversation_is_not_found() -> None:
    world = await memory_world()
    one, two = await store(world.ports, "one"), await store(world.ports, "two")
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.NOT_FOUND):
        await read.read_page(world.ports, OWNER, one.conversation_id, revision_id=two.revision_id)


@pytest.mark.parametrize("part", ["segments", "revisions"])
async def test_a_lost_object_is_said_and_never_an_empty_page(part: str) -> None:
    world = await memory_world()
    stored = await store(world.ports, "one")
    page = await world.ports.objects.list(f"canonical/conversations/{stored.conversation_id}/{part}/")
    await world.ports.objects.delete([info.key for info in page.objects])
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.CANONICAL_STORAGE):
        await read.read_page(world.ports, OWNER, stored.conversation_id)


async def test_named_nodes_come_in_the_order_asked_for() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two", "three"))
    nodes = await read.read_nodes(world.ports, OWNER, item.conversation_id, ["n003", "missing", "n001"])
    assert [node.text for node in nodes] == ["three", "one"]
