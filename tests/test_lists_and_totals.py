"""Listings and counts: newest first, page by page, one account at a time."""

from __future__ import annotations

import pytest

from mempersist import cursors
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.catalog import conversations
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, store


async def titles(world: World, **query: object) -> list[str]:
    found: list[str] = []
    cursor: str | None = None
    while True:
        values: dict[str, object] = {"limit": 2, "cursor": cursor, **query}
        page, cursor = await conversations.list_conversations(world.ports, OWNER, **values)  # type: ignore[arg-type]
        found += [row.title for row in page]
        if cursor is None:
            return found


async def test_the_last_changed_come_first_and_pages_join_without_gap_or_repeat() -> None:
    world = await memory_world()
    stored = []
    for index in range(5):
        stored.append(await store(world.ports, "x", title=f"t{index}"))
        world.clock.advance(1000)
    await append(world.ports, stored[1], "newer")
    assert await titles(world) == ["t1", "t4", "t3", "t2", "t0"]


async def test_conversations_of_one_moment_are_all_listed() -> None:
    world = await memory_world()
    for index in range(7):
        await store(world.ports, "x", title=f"t{index}")
    assert sorted(await titles(world)) == [f"t{index}" for index in range(7)]


async def test_tags_narrow_by_all_or_any() -> None:
    world = await memory_world()
    await store(world.ports, "x", title="both", tags=["a", "b"])
    await store(world.ports, "x", title="one", tags=["a"])
    await store(world.ports, "x", title="none")
    assert sorted(await titles(world, tags=["a", "b"])) == ["both"]
    assert sorted(await titles(world, tags=["a", "b"], tag_mode="any")) == ["both", "one"]


async def test_a_namespace_narrows_and_one_that_is_not_owned_is_refused() -> None:
    world = await memory_world()
    await store(world.ports, "x", title="here", namespace="work")
    await store(world.ports, "x", title="there")
    assert await titles(world, namespace="work") == ["here"]
    with pytest.raises(MempersistError, check=lambda error: (error.code, error.status) == (Code.AUTHENTICATION, 403)):
        await titles(world, namespace="nobody's")


async def test_deleted_conversations_are_neither_listed_nor_counted() -> None:
    world = await memory_world()
    stored = await store(world.ports, "x", "y")
    await delete_conversation(world.ports, OWNER, stored.conversation_id)
    assert await titles(world) == []
    stats = await conversations.stats(world.ports, OWNER)
    assert (stats.conversations, stats.messages, stats.pending) == (0, 0, 0)


async def test_an_empty_namespace_is_still_owned() -> None:
    world = await memory_world()
    rows = await conversations.list_namespaces(world.ports, OWNER)
    assert [(row.namespace, row.conversations, row.default) for row in rows] == [("personal", 0, True)]


async def test_what_waits_for_the_index_is_counted_until_it_is_indexed() -> None:
    world = await memory_world()
    await store(world.ports, "x", "y")
    before = await conversations.stats(world.ports, OWNER)
    await drain(world)
    after = await conversations.stats(world.ports, OWNER)
    assert (before.pending, before.indexed, before.messages) == (1, 0, 2)
    assert (after.pending, after.indexed) == (0, 1)


async def test_another_account_sees_nothing() -> None:
    world = await memory_world()
    await store(world.ports, "x")
    page, cursor = await conversations.list_conversations(world.ports, AccountId("stranger"), limit=10)
    assert (page, cursor) == ((), None)
    assert (await conversations.stats(world.ports, AccountId("stranger"))).conversations == 0


@pytest.mark.parametrize(
    "cursor",
    [
        "",
        "x",
        "é",
        "x" * 20_000,
        cursors.encode("revisions", ("2026", "id")),
        cursors.encode("conversations", ("2026",)),
        cursors.encode("conversations", ("2026", 7)),
        cursors.encode("conversations", ("2026", "id", "more")),
    ],
)
async def test_a_cursor_that_is_none_of_ours_is_refused_in_one_way(cursor: str) -> None:
    world = await memory_world()
    with pytest.raises(MempersistError, match="Invalid cursor"):
        await conversations.list_conversations(world.ports, OWNER, limit=2, cursor=cursor)
