"""The history of a conversation: last committed first, page by page, as it was when the walk began."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import cursors
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from mempersist.mcp import budget
from mempersist.mcp.tools.lookups import LIST_REVISIONS
from tests.rigs import writes
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World

EVERY_HOST = True
NOBODYS = "00000000-0000-4000-8000-000000000000"


async def history(world: World, revisions: int) -> list[Written]:
    """A conversation with so many revisions, the newest last."""
    written = [await writes.store(world.ports, "0")]
    for index in range(1, revisions):
        written.append(await writes.append(world.ports, written[-1], str(index)))
    return written


async def walk(at: Client, **arguments: Any) -> list[dict[str, Any]]:
    pages = [await at.answer("memory_list_revisions", **arguments)]
    while pages[-1]["next_cursor"] is not None:
        pages.append(await at.answer("memory_list_revisions", **arguments, cursor=pages[-1]["next_cursor"]))
    return pages


async def test_revisions_come_last_committed_first_with_the_current_one_marked() -> None:
    world = await new_world()
    written = await history(world, 3)
    at = await client(world.ports)
    answer = await at.answer("memory_list_revisions", conversation_id=written[0].conversation_id)
    assert answer["conversation_id"] == written[0].conversation_id
    assert answer["current_revision_id"] == written[-1].revision_id
    assert [row["revision_id"] for row in answer["revisions"]] == [item.revision_id for item in reversed(written)]
    assert [row["current"] for row in answer["revisions"]] == [True, False, False]
    assert [row["node_count"] for row in answer["revisions"]] == [3, 2, 1]
    assert len({row["content_hash"] for row in answer["revisions"]}) == 3
    assert answer["next_cursor"] is None


async def test_pages_join_without_gap_or_repeat_though_all_revisions_are_of_one_moment() -> None:
    world = await new_world()
    written = await history(world, 7)
    at = await client(world.ports)
    pages = await walk(at, conversation_id=written[0].conversation_id, limit=2)
    assert [len(page["revisions"]) for page in pages] == [2, 2, 2, 1]
    listed = [row["revision_id"] for page in pages for row in page["revisions"]]
    assert listed == [item.revision_id for item in reversed(written)]


async def test_what_is_committed_during_a_walk_does_not_appear_in_it() -> None:
    world = await new_world()
    written = await history(world, 4)
    at = await client(world.ports)
    known = {"conversation_id": written[0].conversation_id, "limit": 2}
    first = await at.answer("memory_list_revisions", **known)
    newer = await writes.append(world.ports, written[-1], "newer")
    second = await at.answer("memory_list_revisions", **known, cursor=first["next_cursor"])
    assert second["current_revision_id"] == written[-1].revision_id
    assert [row["revision_id"] for row in second["revisions"]] == [written[1].revision_id, written[0].revision_id]
    assert (await at.answer("memory_list_revisions", **known))["current_revision_id"] == newer.revision_id


@pytest.mark.parametrize(
    ("limit", "problem"),
    [(0, "must be from 1 to 100"), (1, None), (100, None), (101, "must be from 1 to 100"), ("1x", "whole number")],
)
async def test_the_limit_is_held(limit: Any, problem: str | None) -> None:
    world = await new_world()
    (written,) = await history(world, 1)
    result = await (await client(world.ports)).call(
        "memory_list_revisions", conversation_id=written.conversation_id, limit=limit
    )
    assert result["isError"] is (problem is not None)
    assert problem is None or problem in result["content"][0]["text"]


async def test_a_cursor_of_something_else_is_invalid() -> None:
    world = await new_world()
    first, second = await history(world, 3), await history(world, 3)
    at = await client(world.ports)
    own = (await at.answer("memory_list_revisions", conversation_id=first[0].conversation_id, limit=1))["next_cursor"]
    revision = first[-1].revision_id
    conversation = second[0].conversation_id
    for cursor in (
        own,
        own[:-3],
        "nonsense",
        "é",
        cursors.encode("conversations", (conversation, revision, 1)),
        cursors.encode("revisions", (conversation, "not a revision", 1)),
        cursors.encode("revisions", (conversation, revision, 2**63)),
        cursors.encode("revisions", (conversation, revision, -1)),
    ):
        error = await at.refused("memory_list_revisions", conversation_id=conversation, cursor=cursor)
        assert (error["code"], error["message"]) == ("VALIDATION", "cursor: Invalid cursor; start again without one")


@pytest.mark.in_process
async def test_missing_deleted_and_foreign_are_one_answer_with_and_without_a_cursor() -> None:
    world = await new_world()
    kept, deleted = await history(world, 2), await history(world, 2)
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    cursors_of_owner = [
        (await owner.answer("memory_list_revisions", conversation_id=item[0].conversation_id, limit=1))["next_cursor"]
        for item in (kept, deleted)
    ]
    await delete_conversation(world.ports, OWNER, deleted[0].conversation_id)
    answers = [
        await owner.refused("memory_list_revisions", conversation_id=NOBODYS),
        await owner.refused("memory_list_revisions", conversation_id=deleted[0].conversation_id),
        await owner.refused(
            "memory_list_revisions", conversation_id=deleted[0].conversation_id, cursor=cursors_of_owner[1]
        ),
        await stranger.refused("memory_list_revisions", conversation_id=kept[0].conversation_id),
        await stranger.refused(
            "memory_list_revisions", conversation_id=kept[0].conversation_id, cursor=cursors_of_owner[0]
        ),
    ]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["code"] == "NOT_FOUND"


@pytest.mark.in_process
async def test_the_largest_page_is_within_its_bytes() -> None:
    world = await new_world()
    written = await history(world, 101)
    answer = await (await client(world.ports)).answer(
        "memory_list_revisions", conversation_id=written[0].conversation_id, limit=100
    )
    assert len(answer["revisions"]) == 100
    assert budget.size(answer) <= LIST_REVISIONS.max_response_bytes
