"""A pack follows exact pointers: a field of a conversation that names another one, and nothing like it."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from mempersist.search.packs import pointers
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World

EVERY_HOST = True
NOBODYS = "00000000-0000-4000-8000-000000000000"
ID = "0123456789abcdef" * 4
Answer = dict[str, Any]


def pack(*required: Answer, **changes: Any) -> Answer:
    ample = {"max_estimated_tokens": 100_000, "max_serialized_bytes": 49_152}
    return {"task": "Go on with the story", "required": list(required), "budget": ample, **changes}


def by_id(written: Written | str, **changes: Any) -> Answer:
    conversation_id = written if isinstance(written, str) else written.conversation_id
    return {"selector": {"conversation_id": conversation_id}, **changes}


async def built(at: Client, *required: Answer, **changes: Any) -> Answer:
    return await at.answer("memory_build_context", **pack(*required, **changes))


def texts(answer: Answer) -> list[tuple[str, str]]:
    return [(section["kind"], message["text"]) for section in answer["sections"] for message in section["messages"]]


# ------------------------------------------------------------------ what is a mention


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("text", "value"),
    [
        (f"current_scene: {ID}", ID),
        (f"CURRENT_Scene :  {ID}  ", ID),
        (f"prose before\ncurrent_scene: {ID}\nprose behind", ID),
        (f"- **current_scene:** `{ID}`", ID),
        (f'* current_scene: "{ID}"\r\n', ID),
        (f'{{"current_scene": "{ID}"}}', ID),
        (f'State:\n```json\n{{"x": 1, "Current_Scene": "{ID.upper()}"}}\n```', ID),
        (f"current_scene: {NOBODYS}", NOBODYS),
        (f"current_scene: {NOBODYS}\ncurrent_scene: {ID}", ID),
        (f'current_scene: {NOBODYS}\n{{"current_scene": "{ID}"}}', ID),
        (f'{{"current_scene": "{ID}"}}\ncurrent_scene: none', None),
        ("current_scene: none", None),
        ("current_scene: null", None),
        ("current_scene: cleared", None),
        ("current_scene:", None),
        ('{"current_scene": null}', None),
        ('{"current_scene": 5}', None),
        (f'{{"current_scene": ["{ID}"]}}', None),
        (f"current_scene: see {ID}", None),
        (f"current_scene: {ID[:-1]}", None),
    ],
)
def test_the_last_mention_of_a_field_counts_and_only_a_whole_id_is_a_target(text: str, value: str | None) -> None:
    found = pointers.mention(text, "current_scene")
    assert found is not None
    assert pointers.target(found) == value


@pytest.mark.in_process
@pytest.mark.parametrize(
    "text", ["", ID, f"the current_scene: {ID}", f"current_scenes: {ID}", f"scene: {ID}", '{"current_scene"', "{" * 500]
)
def test_anything_else_is_no_mention(text: str) -> None:
    assert pointers.mention(text, "current_scene") is None


@pytest.mark.in_process
@pytest.mark.parametrize(
    "text",
    [
        f"active_arc.owner: {ID}",
        f'{{"active_arc": {{"name": "x", "Owner": "{ID}"}}}}',
        f'{{"active_arc.owner": "{ID}"}}',
    ],
)
def test_a_path_is_a_line_of_its_name_or_nested_properties(text: str) -> None:
    assert pointers.target(pointers.mention(text, "Active_Arc.owner") or "") == ID


# ------------------------------------------------------------------ what is followed


async def story(world: World) -> tuple[Written, Written, Written]:
    """A state that points to a scene, which points to its owner."""
    owner = await writes.store(world.ports, "She owns the arc.", title="Owner")
    scene = await writes.store(world.ports, f"A harbour.\nowner: {owner.conversation_id}", title="Scene")
    state = await writes.store(world.ports, "Begin.", f"current_scene: {scene.conversation_id}", title="State")
    return state, scene, owner


async def test_pointers_are_followed_level_by_level() -> None:
    world = await new_world()
    state, scene, owner = await story(world)
    at = await client(world.ports)
    follow = [{"field": "current_scene", "follow": [{"field": "owner"}]}]
    answer = await built(at, by_id(state, follow=follow))
    assert [section["kind"] for section in answer["sections"]] == ["required", "expanded_required", "expanded_required"]
    assert [section["title"] for section in answer["sections"]] == ["State", "Scene", "Owner"]
    assert answer["revision_pins"] == [
        {"conversation_id": item.conversation_id, "revision_id": item.revision_id} for item in (state, scene, owner)
    ]
    assert answer["warnings"] == []


async def test_the_newest_mention_wins_and_a_clear_never_falls_back() -> None:
    world = await new_world()
    state, scene, owner = await story(world)
    at = await client(world.ports)
    state = await writes.append(world.ports, state, f"current_scene: {owner.conversation_id}", "More words.")
    answer = await built(at, by_id(state, follow=[{"field": "current_scene"}]))
    assert answer["sections"][1]["conversation_id"] == owner.conversation_id
    for clear in ("current_scene: none", "current_scene: somewhere", '{"current_scene": ""}'):
        state = await writes.append(world.ports, state, clear)
        answer = await built(at, by_id(state, follow=[{"field": "current_scene", "required": False}]))
        assert [section["kind"] for section in answer["sections"]] == ["required"]
        assert answer["warnings"] == [
            {
                "code": "POINTER_MISSING",
                "conversation_id": state.conversation_id,
                "revision_id": state.revision_id,
                "field": "current_scene",
            }
        ]
    del scene


async def test_a_pointer_is_read_from_the_active_branch_even_outside_the_tail() -> None:
    world = await new_world()
    _, scene, owner = await story(world)
    nodes = [
        node("a", None),
        node("b", "a", f"current_scene: {scene.conversation_id}"),
        node("c", "b", f"current_scene: {owner.conversation_id}", role="assistant"),
        *(node(f"d{index:02d}", "b" if index == 0 else f"d{index - 1:02d}", "talk") for index in range(25)),
    ]
    (state,) = await writes.bring(world.ports, conversation("s", nodes))
    at = await client(world.ports)
    answer = await built(
        at,
        by_id(state.conversation_id, mode="tail", tail_messages=1, follow=[{"field": "current_scene"}]),
    )
    assert [section["conversation_id"] for section in answer["sections"][1:]] == [scene.conversation_id]


async def test_a_missing_required_pointer_fails_and_an_optional_one_warns() -> None:
    world = await new_world()
    state, _, _ = await story(world)
    gone = await writes.store(world.ports, "gone")
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    dead = await writes.store(world.ports, f"a: {gone.conversation_id}\nb: {NOBODYS}")
    at = await client(world.ports)
    missing = await at.refused("memory_build_context", **pack(by_id(state, follow=[{"field": "nothing"}])))
    assert (missing["code"], missing["field"]) == ("VALIDATION", "required[0].follow")
    answers = [await at.refused("memory_build_context", **pack(by_id(dead, follow=[{"field": name}]))) for name in "ab"]
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "NOT_FOUND"
    optional = [{"field": name, "required": False} for name in ("a", "b", "nothing")]
    answer = await built(at, by_id(dead, follow=optional))
    assert [item["code"] for item in answer["warnings"]] == ["POINTER_MISSING"] * 3


@pytest.mark.in_process
async def test_a_pointer_to_another_account_leads_nowhere() -> None:
    world = await new_world()
    _, scene, _ = await story(world)
    stranger = principal(account="stranger")
    await world.ports.catalog.query(
        "INSERT INTO accounts (account_id, default_namespace, created_at, log_seq, log_hash)"
        " VALUES ('stranger', 'personal', '2026-01-01T00:00:00.000Z', 0, '')"
    )
    own = await writes.store(
        world.ports, f"current_scene: {scene.conversation_id}\nnobody: {NOBODYS}", account=stranger.account
    )
    at = await client(world.ports, stranger)
    foreign, nobodys = [
        await at.refused("memory_build_context", **pack(by_id(own, follow=[{"field": name}])))
        for name in ("current_scene", "nobody")
    ]
    assert foreign == nobodys
    assert foreign["code"] == "NOT_FOUND"


async def test_a_pointer_out_of_the_packs_namespace_leads_nowhere() -> None:
    world = await new_world()
    other = await writes.store(world.ports, "other", namespace="other")
    state = await writes.store(world.ports, f"x: {other.conversation_id}", namespace="one")
    at = await client(world.ports)
    error = await at.refused("memory_build_context", **pack(by_id(state, follow=[{"field": "x"}]), namespace="one"))
    assert error["code"] == "NOT_FOUND"
    assert len((await built(at, by_id(state, follow=[{"field": "x"}])))["sections"]) == 2


async def test_a_circle_of_pointers_ends_and_each_message_comes_once() -> None:
    world = await new_world()
    first = await writes.store(world.ports, "one")
    second = await writes.store(world.ports, f"next: {first.conversation_id}")
    first = await writes.append(world.ports, first, f"next: {second.conversation_id}")
    at = await client(world.ports)
    follow = [{"field": "next", "follow": [{"field": "next", "follow": [{"field": "next"}]}]}]
    answer = await built(at, by_id(first, follow=follow))
    assert len(texts(answer)) == 3
    assert [section["conversation_id"] for section in answer["sections"]] == [
        first.conversation_id,
        second.conversation_id,
    ]


async def test_what_an_optional_pointer_leads_to_is_optional_all_the_way() -> None:
    world = await new_world()
    state, _, _ = await story(world)
    at = await client(world.ports)
    follow = [{"field": "current_scene", "required": False, "follow": [{"field": "owner"}]}]
    answer = await built(at, by_id(state, follow=follow))
    assert [section["kind"] for section in answer["sections"]] == [
        "required",
        "expanded_optional",
        "expanded_optional",
    ]


def nested(levels: int) -> Answer:
    return {"field": "x", **({"follow": [nested(levels - 1)]} if levels > 1 else {})}


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("follow", "field"),
    [
        ([{"field": "x"}] * 11, "required[0].follow"),
        ([nested(4)], "required[0].follow[0].follow[0].follow[0].follow"),
        ([{"field": ""}], "required[0].follow[0].field"),
        ([{"field": " "}], "required[0].follow[0].field"),
        ([{"field": "a: b"}], "required[0].follow[0].field"),
        ([{"field": "x" * 101}], "required[0].follow[0].field"),
        ([{"field": "x", "follow": [{"field": "y"}] * 10}, {"field": "x", "follow": [{"field": "y"}] * 9}], "required"),
        ([{}], "required[0].follow[0].field"),
        ([{"field": "x", "priority": 101}], "required[0].follow[0].priority"),
        ([{"field": "x", "tail_messages": 0}], "required[0].follow[0].tail_messages"),
    ],
)
async def test_what_is_out_of_bounds_is_refused(follow: Any, field: str) -> None:
    error = await (await client()).refused("memory_build_context", **pack(by_id(NOBODYS, follow=follow)))
    assert (error["code"], error["field"]) == ("VALIDATION", field)


async def test_twenty_pointers_on_three_levels_are_taken() -> None:
    world = await new_world()
    leaf = await writes.store(world.ports, "leaf")
    middle = await writes.store(world.ports, *(f"p{index}: {leaf.conversation_id}" for index in range(10)))
    top = await writes.store(world.ports, *(f"p{index}: {middle.conversation_id}" for index in range(10)))
    inner = [{"field": f"p{index}"} for index in range(10)]
    outer = [{"field": f"p{index}", **({"follow": inner} if index == 0 else {})} for index in range(10)]
    answer = await built(await client(world.ports), by_id(top, follow=outer))
    assert [section["conversation_id"] for section in answer["sections"]] == [
        item.conversation_id for item in (top, middle, leaf)
    ]
