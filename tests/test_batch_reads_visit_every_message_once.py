"""Reading many conversations: following nextCursor gives every message exactly once, whole, within the budget."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist import limits
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import NewMessage, Written
from mempersist.archive.model import OWNER
from mempersist.mcp import budget
from mempersist.ports import ObjectStore
from mempersist.text import printable
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World

EVERY_HOST = True
NOBODYS = "00000000-0000-4000-8000-000000000000"
SCRIPTS = ("plain ", "नमस्ते ", "日本語", '"\\\n', "\x00\x1b", "😀", "\ud800", "\u2028")
Answer = dict[str, Any]


async def follow(at: Client, requests: list[Answer], budget_bytes: int | None = None) -> list[Answer]:
    """Every answer from the first to the one without a cursor, each within its bytes."""
    answers = [await at.answer("memory_get_conversations", requests=requests, max_serialized_bytes=budget_bytes)]
    while True:
        answer = answers[-1]
        assert budget.size(answer) == answer["usedSerializedBytes"] <= answer["maxSerializedBytes"]
        assert answer["maxSerializedBytes"] == (budget_bytes or limits.DEFAULT_BATCH_BYTES)
        assert answer["completed"] + answer["remaining"] == len(requests)
        assert answer["batchId"] == answers[0]["batchId"]
        if answer["nextCursor"] is None:
            assert answer["remaining"] == 0
            return answers
        assert len(answers) < 500
        answers.append(await at.answer("memory_get_conversations", cursor=answer["nextCursor"]))


def texts_of(answers: list[Answer], index: int) -> list[str | int]:
    """What a request got, in order: texts, and the offset of each message that was passed over."""
    got: list[str | int] = []
    for answer in answers:
        for item in answer["results"]:
            if item["requestIndex"] == index and item["status"] == "ok":
                assert item["page"]["offset"] + len(item["messages"]) <= item["page"]["total"]
                got += [message["text"] for message in item["messages"]]
                mark = item["page"].get("oversizedMessage")
                got += [] if mark is None else [mark["offset"]]
    return got


def asked(written: Written, **changes: Any) -> Answer:
    return {"conversation_id": written.conversation_id, "limit": 100, **changes}


# ------------------------------------------------------------------ shape


async def test_what_fits_comes_in_one_answer() -> None:
    world = await new_world()
    first = await writes.store(world.ports, "one", "two", title="Numbers", tags=["Maths"], namespace="n")
    second = await writes.store(world.ports, "eins")
    at = await client(world.ports)
    answer = await at.answer("memory_get_conversations", requests=[asked(second), asked(first, offset=1, limit=1)])
    assert [item["requestIndex"] for item in answer["results"]] == [0, 1]
    (message,) = answer["results"][1].pop("messages")
    assert set(message) == {"sourceNodeId", "role", "createdAt", "updatedAt", "text"}
    assert message["text"] == "two"
    assert answer["results"][1] == {
        "requestIndex": 1,
        "status": "ok",
        "conversation": {
            "id": first.conversation_id,
            "revisionId": first.revision_id,
            "title": "Numbers",
            "namespace": "n",
            "tags": ["maths"],
        },
        "page": {"offset": 1, "nextOffset": None, "total": 2},
    }
    assert (answer["completed"], answer["remaining"], answer["nextCursor"]) == (2, 0, None)


async def test_a_request_ends_at_its_limit_and_says_where_the_conversation_goes_on() -> None:
    world = await new_world()
    written = await writes.store(world.ports, *"abcdef")
    (answer,) = await follow(await client(world.ports), [asked(written, offset=1, limit=3)])
    assert texts_of([answer], 0) == ["b", "c", "d"]
    assert answer["results"][0]["page"] == {"offset": 1, "nextOffset": 4, "total": 6}


@pytest.mark.in_process
@pytest.mark.parametrize("offset", [2, 3, 2**31 - 1])
async def test_an_offset_behind_the_end_is_an_empty_page(offset: int) -> None:
    world = await new_world()
    written = await writes.store(world.ports, "a", "b")
    (answer,) = await follow(await client(world.ports), [asked(written, offset=offset)])
    assert answer["results"][0]["messages"] == []
    assert answer["results"][0]["page"] == {"offset": offset, "nextOffset": None, "total": 2}


async def test_branches_and_earlier_revisions_are_read_as_asked() -> None:
    world = await new_world()
    nodes = [node("a", None), node("b", "a", "question"), node("c", "b", "first"), node("d", "b", "second")]
    (imported,) = await writes.bring(world.ports, conversation("s", nodes))
    written = await writes.store(world.ports, "old")
    await writes.append(world.ports, written, "new")
    answers = await follow(
        await client(world.ports),
        [
            {"conversation_id": imported.conversation_id},
            {"conversation_id": imported.conversation_id, "branch": "all"},
            asked(written, revision_id=written.revision_id),
            asked(written),
        ],
    )
    assert [texts_of(answers, index) for index in range(4)] == [
        ["question", "second"],
        ["", "question", "first", "second"],
        ["old"],
        ["old", "new"],
    ]


# ------------------------------------------------------------------ taking turns


async def test_conversations_take_turns_and_the_first_answer_lists_every_request() -> None:
    world = await new_world()
    stored = [
        await writes.store(world.ports, *(f"{name}{index} " + "x" * 2000 for index in range(9))) for name in "abc"
    ]
    answers = await follow(await client(world.ports), [asked(item) for item in stored], 12_288)
    first = answers[0]["results"]
    assert [item["requestIndex"] for item in first] == [0, 1, 2]
    counts = [len(item["messages"]) for item in first]
    assert max(counts) - min(counts) <= 1
    for index, name in enumerate("abc"):
        assert [str(text)[:2] for text in texts_of(answers, index)] == [f"{name}{place}" for place in range(9)]


@pytest.mark.in_process
async def test_requests_without_room_are_deferred_at_first_and_absent_later() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, f"{index:02d}" + "x" * 1500) for index in range(20)]
    answers = await follow(await client(world.ports), [asked(item) for item in stored], 4096)
    assert [item["requestIndex"] for item in answers[0]["results"]] == list(range(20))
    assert {item["status"] for item in answers[0]["results"]} <= {"ok", "deferred"}
    for answer in answers[1:]:
        assert {item["status"] for item in answer["results"]} == {"ok"}
    seen = Counter(str(text)[:2] for index in range(20) for text in texts_of(answers, index))
    assert seen == Counter(f"{index:02d}" for index in range(20))


async def test_the_same_batch_is_answered_the_same_way_and_a_cursor_can_be_used_again() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, *("y" * 900 for _ in range(8))) for _ in range(3)]
    at = await client(world.ports)
    once, again = [await follow(at, [asked(item) for item in stored], 4096) for _ in range(2)]
    assert [answer["results"] for answer in once] == [answer["results"] for answer in again]
    cursor = once[0]["nextCursor"]
    repeated = await at.answer("memory_get_conversations", cursor=cursor)
    assert (repeated["batchId"], repeated["results"]) == (once[1]["batchId"], once[1]["results"])


async def test_a_continuation_is_a_request_that_goes_on_by_itself() -> None:
    world = await new_world()
    written = await writes.store(world.ports, *(f"{index} " + "x" * 1000 for index in range(10)))
    at = await client(world.ports)
    request = asked(written, limit=9)
    got: list[str | int] = []
    while request:
        answer = await at.answer("memory_get_conversations", requests=[request], max_serialized_bytes=4096)
        got += texts_of([answer], 0)
        request = answer["results"][0].get("continuation")
    assert [str(text)[0] for text in got] == [str(index) for index in range(9)]


# ------------------------------------------------------------------ what is too large


async def test_a_message_too_large_for_the_answer_is_named_and_passed_over() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "before", "x" * 60_000, "after", "y" * 60_000)
    answers = await follow(await client(world.ports), [asked(written)])
    assert texts_of(answers, 0) == ["before", 1, "after", 3]
    marks = [
        item["page"]["oversizedMessage"]
        for answer in answers
        for item in answer["results"]
        if "oversizedMessage" in item["page"]
    ]
    assert {(mark["conversationId"], mark["revisionId"]) for mark in marks} == {
        (written.conversation_id, written.revision_id)
    }
    assert all(mark["bytes"] > 60_000 for mark in marks)


async def test_metadata_larger_than_the_answer_ends_its_request_and_no_other() -> None:
    world = await new_world()
    wide = await writes.store(
        world.ports, "x", title="😀" * 500, tags=[f"{index:02d}" + "😀" * 62 for index in range(20)]
    )
    narrow = await writes.store(world.ports, "y")
    answers = await follow(await client(world.ports), [asked(wide), asked(wide, offset=9), asked(narrow)], 4096)
    errors = [item for answer in answers for item in answer["results"] if item["status"] == "error"]
    assert {item["requestIndex"] for item in errors} == {0, 1}
    assert {item["error"]["code"] for item in errors} == {"RESPONSE_TOO_LARGE"}
    assert texts_of(answers, 2) == ["y"]


# ------------------------------------------------------------------ errors stay with their request


@pytest.mark.in_process
async def test_missing_deleted_and_foreign_are_one_error_and_the_others_are_read() -> None:
    world = await new_world()
    kept, gone = await writes.store(world.ports, "kept"), await writes.store(world.ports, "gone")
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    answer = await owner.answer(
        "memory_get_conversations",
        requests=[{"conversation_id": NOBODYS}, asked(kept), asked(gone), asked(gone, revision_id=gone.revision_id)],
    )
    foreign = await stranger.answer(
        "memory_get_conversations", requests=[asked(kept), asked(kept, revision_id=kept.revision_id)]
    )
    errors = [answer["results"][index] for index in (0, 2, 3)] + foreign["results"]
    assert {item["status"] for item in errors} == {"error"}
    assert all(item["error"] == {"code": "NOT_FOUND", "message": "conversation not found"} for item in errors)
    assert texts_of([answer], 1) == ["kept"]
    assert (answer["completed"], answer["nextCursor"]) == (4, None)


async def test_a_revision_of_another_conversation_is_not_found() -> None:
    world = await new_world()
    first, second = await writes.store(world.ports, "one"), await writes.store(world.ports, "two")
    answer = await (await client(world.ports)).answer(
        "memory_get_conversations",
        requests=[asked(first, revision_id=second.revision_id), asked(first, revision_id="0" * 64)],
    )
    assert answer["results"][0]["error"] == answer["results"][1]["error"]
    assert answer["results"][0]["error"]["code"] == "NOT_FOUND"


async def test_a_conversation_deleted_on_the_way_ends_its_request_alone() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, *("z" * 1500 for _ in range(4))) for _ in range(2)]
    at = await client(world.ports)
    answer = await at.answer(
        "memory_get_conversations", requests=[asked(item) for item in stored], max_serialized_bytes=4096
    )
    await delete_conversation(world.ports, OWNER, stored[0].conversation_id)
    later = []
    while answer["nextCursor"]:
        answer = await at.answer("memory_get_conversations", cursor=answer["nextCursor"])
        later += answer["results"]
    assert [item["error"]["code"] for item in later if item["requestIndex"] == 0] == ["NOT_FOUND"]
    assert {item["status"] for item in later if item["requestIndex"] == 1} == {"ok"}


# ------------------------------------------------------------------ the property


contents = st.builds(
    lambda script, times: f"m{script * times}",
    st.sampled_from(SCRIPTS),
    st.one_of(st.integers(0, 30), st.integers(200, 1500), st.integers(9000, 20_000)),
)
transcripts = st.lists(st.lists(contents, min_size=1, max_size=6), min_size=1, max_size=6)


@pytest.mark.in_process
@settings(max_examples=25, deadline=None)
@given(
    transcripts, st.sampled_from([4096, 6000, 32_768, 49_152]), st.booleans(), st.text("😀a", min_size=1, max_size=200)
)
def test_every_message_comes_exactly_once_also_while_others_write(
    stored: list[list[str]], budget_bytes: int, escapes: bool, title: str
) -> None:
    async def run() -> None:
        world = await new_world()
        written = [await writes.store(world.ports, *texts, title=title, tags=["t"] * escapes) for texts in stored]
        at = await client(world.ports)
        answers = [
            await at.answer(
                "memory_get_conversations",
                requests=[asked(item) for item in written],
                max_serialized_bytes=budget_bytes,
            )
        ]
        heads = list(written)
        while answers[-1]["nextCursor"] is not None:
            assert len(answers) < 200
            turn = len(answers) % len(heads)
            heads[turn] = await writes.append(world.ports, heads[turn], "written meanwhile")
            answers.append(await at.answer("memory_get_conversations", cursor=answers[-1]["nextCursor"]))
        for answer in answers:
            assert budget.size(answer) == answer["usedSerializedBytes"] <= budget_bytes
            for item in answer["results"]:
                if item["status"] == "ok":
                    assert item["conversation"]["revisionId"] == written[item["requestIndex"]].revision_id
        for index, texts in enumerate(stored):
            got = texts_of(answers, index)
            assert len(got) == len(texts)
            for place, (seen, text) in enumerate(zip(got, texts, strict=True)):
                assert seen in (printable(text), place)
                assert seen == printable(text) or budget.size(printable(text)) > 800

    asyncio.run(run())


async def many(world: World, messages: int) -> Written:
    return await writes.store(world.ports, messages=[NewMessage("user", "w " * 400) for _ in range(messages)])


@pytest.mark.in_process
async def test_twenty_requests_of_a_hundred_messages_are_read_to_their_end() -> None:
    world = await new_world()
    stored = [await many(world, 100) for _ in range(20)]
    answers = await follow(await client(world.ports), [asked(item) for item in stored], 49_152)
    for index in range(20):
        assert len(texts_of(answers, index)) == 100


class Watched:
    """An object store that does something before the first read, and counts conversations that are read at once."""

    def __init__(self, inner: ObjectStore, first: Callable[[], Awaitable[object]] | None = None) -> None:
        self._inner, self._first = inner, first
        self._reading: Counter[str] = Counter()
        self.most_at_once = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def get(self, key: str, **part: Any) -> bytes:
        first, self._first = self._first, None
        if first is not None:
            await first()
        of = key.split("/")[2]
        self._reading[of] += 1
        self.most_at_once = max(self.most_at_once, len(+self._reading))
        await asyncio.sleep(0)
        data: bytes = await self._inner.get(key, **part)
        self._reading[of] -= 1
        return data


@pytest.mark.in_process
async def test_every_revision_is_pinned_before_anything_is_read() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, f"old {index}") for index in range(6)]

    async def write_to_all() -> None:
        for item in stored:
            await writes.append(world.ports, item, "new")

    objects: Any = Watched(world.ports.objects, write_to_all)
    at = await client(replace(world.ports, objects=objects))
    answers = await follow(at, [asked(item) for item in stored])
    assert [texts_of(answers, index) for index in range(6)] == [[f"old {index}"] for index in range(6)]
    assert [item["conversation"]["revisionId"] for item in answers[0]["results"]] == [
        item.revision_id for item in stored
    ]


@pytest.mark.in_process
async def test_conversations_are_read_four_at_a_time() -> None:
    world = await new_world()
    stored = [await writes.store(world.ports, f"text {index}") for index in range(20)]
    objects: Any = Watched(world.ports.objects)
    await follow(await client(replace(world.ports, objects=objects)), [asked(item) for item in stored])
    assert objects.most_at_once == 4


# ------------------------------------------------------------------ bounds

GOOD: Answer = {"conversation_id": NOBODYS}


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({}, "requests"),
        ({"requests": [GOOD], "cursor": "x"}, "requests"),
        ({"requests": []}, "requests"),
        ({"requests": [GOOD] * 21}, "requests"),
        ({"requests": [{}]}, "requests[0].conversation_id"),
        ({"requests": [{"conversation_id": "x"}]}, "requests[0].conversation_id"),
        ({"requests": [{**GOOD, "offset": -1}]}, "requests[0].offset"),
        ({"requests": [{**GOOD, "offset": 2**31}]}, "requests[0].offset"),
        ({"requests": [{**GOOD, "limit": 0}]}, "requests[0].limit"),
        ({"requests": [{**GOOD, "limit": 101}]}, "requests[0].limit"),
        ({"requests": [{**GOOD, "branch": "both"}]}, "requests[0].branch"),
        ({"requests": [{**GOOD, "revision_id": "0" * 63}]}, "requests[0].revision_id"),
        ({"requests": [GOOD], "max_serialized_bytes": 4095}, "max_serialized_bytes"),
        ({"requests": [GOOD], "max_serialized_bytes": 49_153}, "max_serialized_bytes"),
        ({"cursor": ""}, "cursor"),
        ({"cursor": "c" * 16_385}, "cursor"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(arguments: Any, field: str) -> None:
    error = await (await client()).refused("memory_get_conversations", **arguments)
    assert error["code"] == "VALIDATION"
    assert error["field"] == field


@pytest.mark.in_process
@pytest.mark.parametrize(
    "arguments",
    [
        {"requests": [GOOD] * 20},
        {"requests": [{**GOOD, "offset": 2**31 - 1, "limit": 100, "branch": "all", "revision_id": "0" * 64}]},
        {"requests": [{**GOOD, "offset": "0", "limit": 1, "revision_id": None}], "cursor": None},
        {"requests": [GOOD] * 20, "max_serialized_bytes": 4096},
        {"requests": [GOOD], "max_serialized_bytes": 49_152},
    ],
)
async def test_what_is_at_a_bound_is_taken(arguments: Any) -> None:
    answer = await (await client()).answer("memory_get_conversations", **arguments)
    assert {item["status"] for item in answer["results"]} == {"error"}


async def test_the_capabilities_name_the_bounds_of_a_batch() -> None:
    bounds = (await (await client()).answer("memory_get_capabilities"))["tools"]["memory_get_conversations"]
    assert bounds == {
        "max_items": 20,
        "max_request_bytes": 65_536,
        "max_response_bytes": 49_152,
        "default_response_bytes": 32_768,
        "supports_cursor": True,
    }
