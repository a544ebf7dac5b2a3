"""Conversations by exact title: found, not found or ambiguous, and never a guess."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.mcp import budget
from tests.rigs import writes
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client, principal

EVERY_HOST = True
WIDE_TITLE = "\U0001f600" * limits.MAX_TITLE_CHARS
WIDE_TAGS = [f"{index:02d}" + "\U0001f600" * 62 for index in range(limits.MAX_TAGS)]


async def resolved(at: Client, *requests: dict[str, Any]) -> list[dict[str, Any]]:
    answer = await at.answer("memory_resolve_conversations", requests=list(requests))
    assert [item["request_index"] for item in answer["results"]] == list(range(len(requests)))
    results: list[dict[str, Any]] = answer["results"]
    return results


async def test_one_match_is_given_with_its_live_metadata() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "x", title="World bible", namespace="project/moon", tags=["Canon"])
    newer = await writes.append(world.ports, written, "y")
    (found,) = await resolved(await client(world.ports), {"title": "World bible"})
    assert (found["status"], found["has_more"]) == ("ok", False)
    (match,) = found["matches"]
    assert match.pop("updated_at")
    assert match == {
        "conversation_id": written.conversation_id,
        "revision_id": newer.revision_id,
        "title": "World bible",
        "namespace": "project/moon",
        "tags": ["canon"],
    }


@pytest.mark.parametrize("title", ["world bible", " World bible", "World bible ", "World", "World bible!", "%", "W*"])
async def test_anything_but_the_exact_title_is_not_found(title: str) -> None:
    world = await new_world()
    await writes.store(world.ports, "World bible", title="World bible")
    (found,) = await resolved(await client(world.ports), {"title": title})
    assert (found["status"], found["matches"]) == ("not_found", [])


async def test_spaces_around_a_title_are_a_part_of_it() -> None:
    world = await new_world()
    await writes.store(world.ports, "x", title=" spaced ")
    found = await resolved(await client(world.ports), {"title": " spaced "}, {"title": "spaced"})
    assert [item["status"] for item in found] == ["ok", "not_found"]


async def test_a_title_that_two_have_is_ambiguous_however_old_one_is() -> None:
    world = await new_world()
    old = await writes.store(world.ports, "x", title="Twice", tags=["old"])
    world.clock.advance(10**10)
    new = await writes.store(world.ports, "y", title="Twice", namespace="work")
    at = await client(world.ports)
    (found,) = await resolved(at, {"title": "Twice"})
    assert found["status"] == "ambiguous"
    assert [match["conversation_id"] for match in found["matches"]] == sorted(
        [old.conversation_id, new.conversation_id]
    )
    narrowed = await resolved(
        at,
        {"title": "Twice", "namespace": "work"},
        {"title": "Twice", "tags": ["OLD"]},
        {"title": "Twice", "tags": ["old", "other"]},
        {"title": "Twice", "tags": ["old", "other"], "tag_mode": "any"},
    )
    assert [[match["conversation_id"] for match in item["matches"]] for item in narrowed] == [
        [new.conversation_id],
        [old.conversation_id],
        [],
        [old.conversation_id],
    ]


@pytest.mark.in_process
async def test_deleted_and_foreign_titles_are_not_found() -> None:
    world = await new_world()
    gone = await writes.store(world.ports, "x", title="gone")
    await writes.store(world.ports, "x", title="kept")
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    (deleted,) = await resolved(await client(world.ports), {"title": "gone"})
    stranger = await client(world.ports, principal(account="stranger"))
    foreign, missing = await resolved(stranger, {"title": "kept"}, {"title": "never"})
    assert deleted | {"request_index": 0} == foreign == missing | {"request_index": 0}
    assert foreign["status"] == "not_found"


@pytest.mark.in_process
async def test_a_namespace_that_is_not_owned_is_refused_like_one_that_is_not_there() -> None:
    world = await new_world()
    await writes.store(world.ports, "x", title="t", namespace="secret")
    at = await client(world.ports, principal(account="stranger"))
    answers = [
        await at.refused("memory_resolve_conversations", requests=[{"title": "t", "namespace": name}])
        for name in ("secret", "nowhere")
    ]
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "AUTHENTICATION"


@pytest.mark.in_process
async def test_at_most_fifty_matches_are_listed() -> None:
    world = await new_world()
    for _ in range(51):
        await writes.store(world.ports, "x", title="many")
    for _ in range(50):
        await writes.store(world.ports, "x", title="fifty")
    many, fifty = await resolved(await client(world.ports), {"title": "many"}, {"title": "fifty"})
    assert (len(many["matches"]), many["has_more"]) == (50, True)
    assert (len(fifty["matches"]), fifty["has_more"]) == (50, False)


@pytest.mark.in_process
async def test_matches_that_are_too_large_keep_their_ids_and_the_answer_its_bytes() -> None:
    world = await new_world()
    for _ in range(30):
        await writes.store(world.ports, "x", title=WIDE_TITLE, tags=WIDE_TAGS)
    at = await client(world.ports)
    answer = await at.answer("memory_resolve_conversations", requests=[{"title": WIDE_TITLE}] * 20)
    assert budget.size(answer) <= limits.RECOMMENDED_TOOL_OUTPUT_BYTES
    for item in answer["results"]:
        assert item["status"] == "ambiguous"
        assert item["has_more"]
        assert len(item["matches"]) >= 2
        assert all(match["conversation_id"] and match["revision_id"] for match in item["matches"])


@pytest.mark.parametrize(
    ("requests", "field"),
    [
        ([], "requests"),
        ([{"title": "t"}] * 21, "requests"),
        ([{}], "requests[0].title"),
        ([{"title": ""}], "requests[0].title"),
        ([{"title": "t" * 501}], "requests[0].title"),
        ([{"title": "t", "namespace": " "}], "namespace"),
        ([{"title": "t", "tags": ["x"] * 21}], "requests[0].tags"),
        ([{"title": "t", "tags": [" "]}], "tags[0]"),
        ([{"title": "t", "tag_mode": "none"}], "requests[0].tag_mode"),
        ([{"title": "t", "fuzzy": True}], "requests[0].fuzzy"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(requests: Any, field: str) -> None:
    error = await (await client()).refused("memory_resolve_conversations", requests=requests)
    assert error["code"] == "VALIDATION"
    assert error["field"] == field


async def test_the_largest_request_is_taken() -> None:
    world = await new_world()
    await writes.store(world.ports, "x", namespace="\U0001f600" * 100)
    requests = [{"title": WIDE_TITLE, "namespace": "\U0001f600" * 100, "tags": WIDE_TAGS, "tag_mode": "any"}] * 20
    found = await resolved(await client(world.ports), *requests)
    assert {item["status"] for item in found} == {"not_found"}
