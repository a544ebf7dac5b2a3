"""Context packs: all that is required or none of it, then what there is room for, whole messages only."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist import limits
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from mempersist.index.chunking import estimate_tokens
from mempersist.mcp import budget
from mempersist.search.packs import retrieved
from mempersist.search.query import search
from mempersist.text import printable
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World, drain

EVERY_HOST = True
NOBODYS = "00000000-0000-4000-8000-000000000000"
AMPLE = {"max_estimated_tokens": 100_000, "max_serialized_bytes": 49_152}
Answer = dict[str, Any]


def pack(*required: Answer, **changes: Any) -> Answer:
    return {"task": "Go on with the story", "required": list(required), "budget": AMPLE, **changes}


def by_id(written: Written, **changes: Any) -> Answer:
    return {"selector": {"conversation_id": written.conversation_id}, **changes}


def by_title(title: str, **selector: Any) -> Answer:
    return {"selector": {"title": title, **selector}}


async def built(at: Client, *required: Answer, **changes: Any) -> Answer:
    answer = await at.answer("memory_build_context", **pack(*required, **changes))
    if answer["status"] == "complete":
        used = answer["budget"]
        assert budget.size(answer) == used["used_serialized_bytes"] <= used["max_serialized_bytes"]
        assert used["used_estimated_tokens"] <= used["max_estimated_tokens"]
        texts = [message["text"] for section in answer["sections"] for message in section["messages"]]
        assert used["used_estimated_tokens"] == sum(map(estimate_tokens, texts))
        assert len(answer["warnings"]) <= 20
    return answer


def messages(answer: Answer) -> list[Answer]:
    return [message for section in answer["sections"] for message in section["messages"]]


# ------------------------------------------------------------------ shape


async def test_a_pack_has_the_messages_their_provenance_and_the_compiled_text() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "Rule one.", title="World bible")
    answer = await built(await client(world.ports), by_title("World bible"))
    (section,) = answer["sections"]
    (message,) = section["messages"]
    source_node_id = message["source_node_id"]
    assert message == {
        "source_node_id": source_node_id,
        "role": "user",
        "created_at": None,
        "updated_at": None,
        "text": "Rule one.",
        "conversation_id": written.conversation_id,
        "revision_id": written.revision_id,
        "provenance": {"kind": "required", "request_index": 0},
    }
    assert section == {
        "kind": "required",
        "request_index": 0,
        "title": "World bible",
        "priority": 100,
        "conversation_id": written.conversation_id,
        "revision_id": written.revision_id,
        "messages": [message],
        "estimated_tokens": 3,
        "serialized_bytes": budget.size([message]),
    }
    assert answer["compiled_text"] == (
        f"# Required memory: World bible\nConversation {written.conversation_id}\n"
        f"Revision {written.revision_id}\n\nuser:\nRule one.\n\n"
    )
    assert answer["revision_pins"] == [{"conversation_id": written.conversation_id, "revision_id": written.revision_id}]
    assert (answer["status"], answer["task"], answer["namespace"]) == ("complete", "Go on with the story", None)
    assert answer["budget"]["estimator"] == "mempersist-token-estimate-v1"
    assert (answer["omitted"], answer["warnings"], answer["degraded"], answer["unavailable"]) == ([], [], False, [])


async def test_options_leave_parts_out() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "once")
    at = await client(world.ports)
    options = {"deduplicate": False, "include_provenance": False, "include_compiled_text": False}
    answer = await built(at, by_id(written), by_id(written, mode="tail"), options=options)
    assert [message["text"] for message in messages(answer)] == ["once", "once"]
    assert all("provenance" not in message for message in messages(answer))
    assert "compiled_text" not in answer
    assert len(messages(await built(at, by_id(written), by_id(written, mode="tail")))) == 1


async def test_a_tail_is_the_last_messages_and_a_branch_is_the_one_asked_for() -> None:
    world = await new_world()
    nodes = [node("a", None), node("b", "a", "question"), node("c", "b", "first"), node("d", "b", "second")]
    (imported,) = await writes.bring(world.ports, conversation("s", nodes))
    selector = {"selector": {"conversation_id": imported.conversation_id}}
    at = await client(world.ports)
    for changes, expected in (
        ({}, ["question", "second"]),
        ({"mode": "tail", "tail_messages": 1}, ["second"]),
        ({"mode": "tail", "tail_messages": 100}, ["question", "second"]),
        ({"branch": "all"}, ["", "question", "first", "second"]),
        ({"branch": "all", "mode": "tail", "tail_messages": 2}, ["first", "second"]),
    ):
        assert [message["text"] for message in messages(await built(at, {**selector, **changes}))] == expected


async def test_required_comes_by_priority_and_then_as_asked() -> None:
    world = await new_world()
    first, second, third = [await writes.store(world.ports, name) for name in ("one", "two", "three")]
    at = await client(world.ports)
    answer = await built(at, by_id(first, priority=1), by_id(second, priority=2), by_id(third, priority=2))
    assert [section["request_index"] for section in answer["sections"]] == [1, 2, 0]


async def test_equal_text_in_different_messages_is_kept() -> None:
    world = await new_world()
    written = [await writes.store(world.ports, "same", "same"), await writes.store(world.ports, "same")]
    assert len(messages(await built(await client(world.ports), *map(by_id, written)))) == 3


async def test_the_same_request_over_the_same_revisions_has_the_same_id() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "A barometer.")
    await drain(world)
    at = await client(world.ports)
    asked = {"retrieve": [{"query": "barometer"}]}
    once, again = await built(at, by_id(written), **asked), await built(at, by_id(written), **asked)
    assert once == again
    other = await built(at, by_id(written), task="Another", **asked)
    newer = await writes.append(world.ports, written, "It falls.")
    later = await built(at, by_id(newer), **asked)
    assert len({item["pack_id"] for item in (once, other, later)}) == 3


async def test_nothing_is_written() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "A barometer.")
    await drain(world)
    before = [info.key for info in (await world.ports.objects.list("")).objects]
    await built(await client(world.ports), by_id(written), retrieve=[{"query": "barometer"}])
    assert [info.key for info in (await world.ports.objects.list("")).objects] == before


# ------------------------------------------------------------------ retrieved evidence


async def test_what_a_search_finds_comes_behind_with_its_evidence() -> None:
    world = await new_world()
    bible = await writes.store(world.ports, "Rule one.", title="World bible")
    found = await writes.store(world.ports, "before", "The barometer falls.", "after", title="Weather")
    await drain(world)
    at = await client(world.ports)
    answer = await built(at, by_id(bible), retrieve=[{"query": "barometer", "priority": 3}])
    section = answer["sections"][1]
    assert (section["kind"], section["title"], section["priority"]) == ("retrieved", "Weather", 3)
    assert [message["text"] for message in section["messages"]] == ["before", "The barometer falls.", "after"]
    provenance = section["messages"][1]["provenance"]
    assert provenance["chunk_ids"] == section["matched_chunk_ids"]
    assert "lexical" in provenance["sources"]
    assert 0 < provenance["score"] <= 1
    assert {item["source_node_id"] for item in section["matched_ranges"]} <= {
        message["source_node_id"] for message in section["messages"]
    }
    assert "# Retrieved evidence: Weather" in answer["compiled_text"]
    assert section["matched_chunk_ids"][0] in answer["compiled_text"]
    assert {pin["conversation_id"] for pin in answer["revision_pins"]} == {
        bible.conversation_id,
        found.conversation_id,
    }


async def test_a_required_message_that_a_search_finds_too_carries_the_evidence() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "The barometer falls.")
    await drain(world)
    answer = await built(await client(world.ports), by_id(written), retrieve=[{"query": "barometer"}])
    (message,) = messages(answer)
    assert message["provenance"]["kind"] == "required"
    assert len(message["provenance"]["chunk_ids"]) == 1
    assert message["provenance"]["sources"]


async def test_searches_keep_to_their_namespace_and_tags() -> None:
    world = await new_world()
    base = await writes.store(world.ports, "base", namespace="one")
    await writes.store(world.ports, "barometer in one", namespace="one", tags=["sky"])
    await writes.store(world.ports, "barometer in two", namespace="two")
    await drain(world)
    at = await client(world.ports)
    whole = await built(at, by_id(base), namespace="one", retrieve=[{"query": "barometer"}])
    narrow = await built(at, by_id(base), retrieve=[{"query": "barometer", "tags": ["sky"]}])
    own = await built(at, by_id(base), retrieve=[{"query": "barometer", "namespace": "two"}])
    assert [message["text"] for message in messages(whole)] == ["base", "barometer in one"]
    assert [message["text"] for message in messages(narrow)] == ["base", "barometer in one"]
    assert [message["text"] for message in messages(own)] == ["base", "barometer in two"]


@pytest.mark.in_process
async def test_a_hit_that_was_overtaken_is_told_and_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    world = await new_world()
    base = await writes.store(world.ports, "base")
    found = await writes.store(world.ports, "The barometer falls.")
    await drain(world)

    async def search_then_append(*arguments: Any, **keywords: Any) -> Any:
        result = await search(*arguments, **keywords)
        await writes.append(world.ports, found, "newer")
        return result

    monkeypatch.setattr(retrieved, "search", search_then_append)
    answer = await built(await client(world.ports), by_id(base), retrieve=[{"query": "barometer"}])
    assert [message["text"] for message in messages(answer)] == ["base"]
    where = {"conversation_id": found.conversation_id, "revision_id": found.revision_id}
    assert answer["omitted"] == [{"kind": "retrieved", **where, "reason": "stale_revision"}]
    assert answer["warnings"] == [{"code": "STALE_REVISION", **where}]


@pytest.mark.in_process
async def test_channels_out_of_reach_are_disclosed_and_what_is_required_is_there_all_the_same() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "base")
    await drain(world)
    await world.ports.catalog.query("DROP TABLE chunks_fts")
    answer = await built(await client(world.ports), by_id(written), retrieve=[{"query": "barometer"}])
    assert answer["degraded"]
    assert answer["unavailable"] == ["fts"]
    assert [message["text"] for message in messages(answer)] == ["base"]


# ------------------------------------------------------------------ budgets


async def test_required_content_that_does_not_fit_gives_numbers_and_no_text() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "secret words " * 300, title="secret title")
    at = await client(world.ports)
    for limit in ({"max_estimated_tokens": 1299}, {"max_serialized_bytes": 6000}, {"max_serialized_bytes": 1}):
        answer = await built(at, by_id(written), budget={**AMPLE, **limit})
        assert answer["status"] == "required_budget_exceeded"
        assert "secret" not in str(answer)
        assert answer["required_estimated_tokens"] == 1300
        enough = answer["suggested_minimum"]
        assert (await built(at, by_id(written), budget=enough))["status"] == "complete"
        less = {**enough, "max_serialized_bytes": enough["max_serialized_bytes"] - 200}
        assert (await built(at, by_id(written), budget=less))["status"] == "required_budget_exceeded"


async def test_required_content_beyond_every_answer_says_so_and_which_messages_are_too_large() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "small", "x" * 60_000)
    answer = await built(await client(world.ports), by_id(written))
    assert answer["status"] == "required_budget_exceeded"
    first, second = answer["warnings"]
    assert first == {"code": "REQUIRED_CONTENT_EXCEEDS_MCP_LIMIT"}
    assert second["code"] == "OVERSIZED_MESSAGE"
    assert second["bytes"] > 60_000
    assert set(second) == {"code", "conversation_id", "revision_id", "source_node_id", "bytes"}


@pytest.mark.in_process
async def test_a_transcript_far_beyond_every_answer_is_not_read_to_its_end() -> None:
    world = await new_world()
    written = await writes.store(world.ports, *("long words " * 100 for _ in range(900)))
    answer = await built(await client(world.ports), by_id(written))
    assert answer["status"] == "required_budget_exceeded"
    assert answer["required_serialized_bytes"] > 900 * 1100
    tail = await built(await client(world.ports), by_id(written, mode="tail", tail_messages=10))
    assert len(messages(tail)) == 10


async def many_hits(world: World) -> Written:
    base = await writes.store(world.ports, "base")
    for index in range(30):
        await writes.store(world.ports, f"barometer {index} " + "weather " * 90, title=f"Hit {index}")
    await drain(world)
    return base


@pytest.mark.in_process
@pytest.mark.parametrize("max_bytes", [2000, 4096, 8192, 20_000, 49_152])
async def test_hits_fill_what_is_left_and_the_others_are_told(max_bytes: int) -> None:
    world = await new_world()
    base = await many_hits(world)
    answer = await built(
        await client(world.ports),
        by_id(base),
        retrieve=[{"query": "barometer", "limit": 20}, {"query": "weather", "limit": 20, "priority": 1}],
        budget={"max_estimated_tokens": 100_000, "max_serialized_bytes": max_bytes},
    )
    assert answer["status"] == "complete"
    assert messages(answer)[0]["text"] == "base"
    assert all(len(message["text"]) > 700 for message in messages(answer)[1:])
    if max_bytes < 49_152:
        assert any(item["reason"] == "budget" for item in answer["omitted"]) or answer["warnings"]
    assert max_bytes < 20_000 or len(answer["sections"]) > 4


@pytest.mark.in_process
async def test_tokens_bound_what_is_optional_too() -> None:
    world = await new_world()
    base = await many_hits(world)
    answer = await built(
        await client(world.ports),
        by_id(base),
        retrieve=[{"query": "barometer", "limit": 20}],
        budget={**AMPLE, "max_estimated_tokens": 600},
    )
    assert 1 < len(answer["sections"]) <= 3


contents = st.builds(
    lambda script, times: f"barometer {script * times}",
    st.sampled_from(["a ", '"', "\n", "😀", "\x00", "नम", "\u2028"]),
    st.sampled_from([0, 10, 400, 3000, 20_000]),
)


@pytest.mark.in_process
@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.lists(contents, min_size=1, max_size=4), min_size=1, max_size=4),
    st.lists(st.lists(contents, min_size=1, max_size=4), max_size=4),
    st.integers(1, limits.MAX_BATCH_BYTES),
    st.integers(1, 30_000),
    st.text("😀a", min_size=1, max_size=300),
)
def test_no_pack_is_above_its_budgets_and_no_message_is_cut(
    required: list[list[str]], others: list[list[str]], max_bytes: int, max_tokens: int, title: str
) -> None:
    async def run() -> None:
        world = await new_world()
        stored = [await writes.store(world.ports, *texts, title=title) for texts in required]
        for texts in others:
            await writes.store(world.ports, *texts, title=title)
        await drain(world)
        answer = await built(
            await client(world.ports),
            *map(by_id, stored),
            task=title,
            retrieve=[{"query": "barometer", "limit": 20, "context_before": 0, "context_after": 0}],
            budget={"max_estimated_tokens": max_tokens, "max_serialized_bytes": max_bytes},
        )
        assert budget.size(answer) <= limits.MAX_BATCH_BYTES
        if answer["status"] != "complete":
            return
        allowed = {printable(text) for texts in [*required, *others] for text in texts}
        assert {message["text"] for message in messages(answer)} <= allowed
        got = [
            message["text"]
            for section in answer["sections"]
            if section["kind"] == "required"
            for message in section["messages"]
        ]
        assert got == [printable(text) for texts in required for text in texts]

    asyncio.run(run())


# ------------------------------------------------------------------ who may name what


@pytest.mark.in_process
async def test_missing_deleted_and_foreign_are_one_answer() -> None:
    world = await new_world()
    kept, gone = await writes.store(world.ports, "x", title="kept"), await writes.store(world.ports, "y", title="gone")
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    nobody = {"selector": {"conversation_id": NOBODYS}}
    answers = [
        await at.refused("memory_build_context", **pack(selector))
        for at, selector in (
            (owner, nobody),
            (owner, by_id(gone)),
            (owner, by_title("gone")),
            (owner, by_title("never")),
            (stranger, by_id(kept)),
            (stranger, by_title("kept")),
        )
    ]
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["code"] == "NOT_FOUND"


@pytest.mark.in_process
async def test_a_strangers_searches_find_nothing_of_the_owners() -> None:
    world = await new_world()
    await writes.store(world.ports, "The barometer falls.")
    await world.ports.catalog.query(
        "INSERT INTO accounts (account_id, default_namespace, created_at, log_seq, log_hash)"
        " VALUES ('stranger', 'personal', '2026-01-01T00:00:00.000Z', 0, '')"
    )
    stranger = principal(account="stranger")
    own = await writes.store(world.ports, "base", account=stranger.account)
    await drain(world)
    answer = await built(await client(world.ports, stranger), by_id(own), retrieve=[{"query": "barometer"}])
    assert {message["conversation_id"] for message in messages(answer)} == {own.conversation_id}


async def test_an_ambiguous_title_names_the_candidates_by_id_only() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, "x", title="twice") for _ in range(2)]
    tagged = await writes.store(world.ports, "z", title="twice", tags=["third"])
    at = await client(world.ports)
    error = await at.refused("memory_build_context", **pack(by_title("twice")))
    assert error["code"] == "AMBIGUOUS_TITLE"
    assert error["field"] == "required[0].selector"
    assert error["candidates"] == sorted(item.conversation_id for item in [*stored, tagged])
    answer = await built(at, by_title("twice", tags=["Third"]))
    assert answer["sections"][0]["conversation_id"] == tagged.conversation_id


async def test_a_namespace_that_is_not_owned_is_refused_wherever_it_is_named() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "x", title="t", namespace="secret")
    at = await client(world.ports)
    for changes in (
        {"namespace": "nowhere"},
        {"retrieve": [{"query": "x", "namespace": "nowhere"}]},
        {"required": [by_title("t", namespace="nowhere")]},
    ):
        error = await at.refused("memory_build_context", **{**pack(by_id(written)), **changes})
        assert error["code"] == "AUTHENTICATION"
    other = await writes.store(world.ports, "y", namespace="other")
    error = await at.refused("memory_build_context", **pack(by_id(other), namespace="secret"))
    assert error["code"] == "NOT_FOUND"


# ------------------------------------------------------------------ bounds

GOOD: Answer = {"selector": {"conversation_id": NOBODYS}}


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"task": ""}, "task"),
        ({"task": " "}, "task"),
        ({"task": "t" * 1001}, "task"),
        ({"required": []}, "required"),
        ({"required": [GOOD] * 21}, "required"),
        ({"required": [{"selector": {}}]}, "required[0].selector"),
        ({"required": [{"selector": {"conversation_id": NOBODYS, "title": "t"}}]}, "required[0].selector"),
        ({"required": [{"selector": {"conversation_id": NOBODYS, "tags": ["t"]}}]}, "required[0].selector"),
        ({"required": [{"selector": {"title": "t" * 501}}]}, "required[0].selector.title"),
        ({"required": [{**GOOD, "mode": "head"}]}, "required[0].mode"),
        ({"required": [{**GOOD, "tail_messages": 0}]}, "required[0].tail_messages"),
        ({"required": [{**GOOD, "tail_messages": 101}]}, "required[0].tail_messages"),
        ({"required": [{**GOOD, "priority": 101}]}, "required[0].priority"),
        ({"required": [{**GOOD, "branch": "both"}]}, "required[0].branch"),
        ({"retrieve": [{"query": "q"}] * 9}, "retrieve"),
        ({"retrieve": [{"query": ""}]}, "retrieve[0].query"),
        ({"retrieve": [{"query": "q" * 2001}]}, "retrieve[0].query"),
        ({"retrieve": [{"query": "q", "limit": 0}]}, "retrieve[0].limit"),
        ({"retrieve": [{"query": "q", "limit": 21}]}, "retrieve[0].limit"),
        ({"retrieve": [{"query": "q", "context_before": 11}]}, "retrieve[0].context_before"),
        ({"retrieve": [{"query": "q", "context_after": -1}]}, "retrieve[0].context_after"),
        ({"retrieve": [{"query": "q", "priority": 101}]}, "retrieve[0].priority"),
        ({"namespace": "a", "retrieve": [{"query": "q", "namespace": "b"}]}, "retrieve[0].namespace"),
        ({"budget": {}}, "budget.max_estimated_tokens"),
        ({"budget": {**AMPLE, "max_estimated_tokens": 0}}, "budget.max_estimated_tokens"),
        ({"budget": {**AMPLE, "max_serialized_bytes": 0}}, "budget.max_serialized_bytes"),
        ({"budget": {**AMPLE, "max_serialized_bytes": 49_153}}, "budget.max_serialized_bytes"),
        ({"options": {"deduplicate": "yes"}}, "options.deduplicate"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(changes: Answer, field: str) -> None:
    error = await (await client()).refused("memory_build_context", **{**pack(GOOD), **changes})
    assert (error["code"], error["field"]) == ("VALIDATION", field)


async def test_what_is_at_a_bound_is_taken() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "x", title="t" * 500)
    at = await client(world.ports)
    answer = await built(
        at,
        *[by_title("t" * 500) | {"priority": 100, "tail_messages": 100}] * 19,
        by_id(written, priority=-100, tail_messages=1, mode="tail"),
        task="t" * 1000,
        retrieve=[{"query": "q" * 2000, "limit": 20, "context_before": 10, "context_after": 0}] * 8,
        budget={"max_estimated_tokens": 2**31 - 1, "max_serialized_bytes": 49_152},
    )
    assert len(messages(answer)) == 1


async def test_the_capabilities_name_the_bounds_of_a_pack() -> None:
    bounds = (await (await client()).answer("memory_get_capabilities"))["tools"]["memory_build_context"]
    assert (bounds["max_items"], bounds["max_tail_messages"], bounds["max_response_bytes"]) == (20, 100, 49_152)
