"""A page of a pinned revision stays what it was while others write, and costs the page, not the conversation."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.archive import compaction, memories, read, replacing
from mempersist.archive.model import OWNER, Branch
from mempersist.ports import Ports
from tests.rigs import conversations as make
from tests.rigs.worlds import World, memory_world
from tests.rigs.writes import append, bring, store, user


class CountingObjects:
    """An object store that counts the bytes that are read."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.bytes_read = inner, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    async def get(self, key: str, **part: Any) -> bytes:
        data: bytes = await self.inner.get(key, **part)
        self.bytes_read += len(data)
        return data


async def ids(ports: Ports, conversation_id: str, revision_id: str | None, branch: Branch, step: int) -> list[str]:
    """Every node of a revision, page by page."""
    found: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = await read.read_page(
            ports, OWNER, conversation_id, offset=offset, limit=step, branch=branch, revision_id=revision_id
        )
        found += [view.node.source_node_id for view in page.messages]
        offset = page.next_offset
    return found


async def current(world: World, conversation_id: str) -> str:
    page = await read.read_page(world.ports, OWNER, conversation_id, limit=1)
    return page.conversation.revision_id


async def change(world: World, conversation_id: str, how: str, turn: int) -> None:
    """One change of the conversation by somebody else."""
    base = await current(world, conversation_id)
    if how == "append":
        await memories.append(
            world.ports, OWNER, conversation_id=conversation_id, base_revision_id=base, messages=user(f"added {turn}")
        )
    elif how == "replace":
        await replacing.replace_transcript(
            world.ports, OWNER, conversation_id=conversation_id, base_revision_id=base, messages=user(f"whole {turn}")
        )
    elif how == "compact":
        await compaction.compact(world.ports, OWNER, conversation_id, above=1)
    elif how == "import":
        nodes = [make.node("a", None), make.node("b", "a", f"edited {turn}"), make.node(f"c{turn}", "b", "answer")]
        await bring(
            world.ports,
            make.conversation("s", nodes, updated_at=f"2026-03-{turn + 1:02d}T00:00:00.000Z"),
            import_id=f"import {turn}",
        )
    else:
        rows = await world.ports.catalog.query(
            "SELECT revision_id FROM revisions WHERE conversation_id = ? ORDER BY first_seq LIMIT 1 OFFSET ?",
            (conversation_id, turn % 2),
        )
        if rows and rows[0]["revision_id"] != base:
            await replacing.restore_revision(
                world.ports,
                OWNER,
                conversation_id=conversation_id,
                base_revision_id=base,
                revision_id=rows[0]["revision_id"],
            )


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(["append", "append", "replace", "restore", "compact", "import"]), max_size=8),
    st.integers(1, 4),
)
async def test_every_revision_reads_as_it_did_when_it_was_current(changes: list[str], step: int) -> None:
    world = await memory_world()
    nodes = [make.node("a", None), make.node("b", "a", "question"), make.node("x", "a", "other branch")]
    (imported,) = await bring(world.ports, make.conversation("s", nodes))
    conversation_id = imported.conversation_id
    known: dict[str, tuple[list[str], list[str]]] = {}
    for turn, how in enumerate(["append", *changes]):
        await change(world, conversation_id, how, turn)
        revision_id = await current(world, conversation_id)
        known[revision_id] = (
            await ids(world.ports, conversation_id, None, "active", 100),
            await ids(world.ports, conversation_id, None, "all", 100),
        )
    for revision_id, (active, everything) in known.items():
        assert await ids(world.ports, conversation_id, revision_id, "active", step) == active
        assert await ids(world.ports, conversation_id, revision_id, "all", step) == everything


async def test_a_page_of_a_revision_that_was_appended_to_costs_little_more_than_the_page() -> None:
    world = await memory_world()
    first = await store(world.ports, *["x" * 5000] * 900)
    await append(world.ports, await append(world.ports, first, "newer"), "newest")
    counting: Any = CountingObjects(world.ports.objects)
    ports = replace(world.ports, objects=counting)
    page = await read.read_page(
        ports, OWNER, first.conversation_id, offset=880, limit=100, revision_id=first.revision_id
    )
    assert len(page.messages) == page.total - 880 == 20
    assert page.next_offset is None
    assert counting.bytes_read < 250_000
