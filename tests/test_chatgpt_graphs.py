"""The graph of a conversation is taken over as it is, whatever order, holes and loops the export has."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import canonical
from mempersist.archive import codec, graph
from mempersist.archive.model import SourceConversation
from mempersist.imports.chatgpt.conversation import UNTITLED, normalise
from mempersist.imports.problems import ItemError
from tests.rigs.chatgpt import conversation, message


def node(parent: str | None, text: str | None = None, role: str = "user", **fields: Any) -> dict[str, Any]:
    return {"message": None if text is None else message(text, role), "parent": parent, **fields}


def shaped(nodes: dict[str, Any], current: Any = None, **fields: Any) -> SourceConversation:
    return normalise({"id": "c", "title": "T", "mapping": nodes, "current_node": current, **fields})


def parents(source: SourceConversation) -> dict[str, str | None]:
    return graph.parents_of(source.nodes)


def active(source: SourceConversation) -> graph.ActivePath:
    return graph.active_path(parents(source), source.current_source_node_id)


def test_slim_nodes_without_children_have_their_whole_graph() -> None:
    source = normalise(conversation(None, message("hi", "user"), message("hello")))
    assert parents(source) == {"n0": None, "n1": "n0", "n2": "n1"}
    assert active(source) == graph.ActivePath(("n0", "n1", "n2"), ())
    assert source.anomalies == ()


def test_slim_and_classic_nodes_give_the_same_graph_and_texts() -> None:
    slim = conversation(None, message("hi", "user"), message("hello"))
    classic = json.loads(json.dumps(slim))
    for index in range(3):
        classic["mapping"][f"n{index}"]["children"] = [f"n{index + 1}"] if index < 2 else []
    one, other = normalise(slim), normalise(classic)
    assert parents(one) == parents(other)
    assert [each.text for each in one.nodes] == [each.text for each in other.nodes]


def test_nodes_that_name_only_their_children_get_their_parents() -> None:
    source = shaped(
        {"a": {"message": None, "children": ["b", "c", 5]}, "b": {"children": ["d"]}, "c": {}, "d": {}}, "d"
    )
    assert parents(source) == {"a": None, "b": "a", "c": "a", "d": "b"}
    assert "parent_derived" in source.anomalies


def test_a_named_parent_counts_more_than_somebody_elses_children() -> None:
    source = shaped({"a": node(None, children=["c"]), "b": node(None), "c": node("b", "x")}, "c")
    assert parents(source)["c"] == "b"


def test_an_empty_root_is_a_node_without_a_message() -> None:
    (root, _) = normalise(conversation(None, message("hi", "user"))).nodes
    assert (root.kind, root.role, root.text, root.is_message, root.hidden) == ("none", "none", "", False, False)


def test_a_hidden_system_message_in_the_middle_keeps_the_thread_together() -> None:
    source = normalise(conversation(None, message("hi", "user"), message("", "system"), message("hello")))
    assert active(source).node_ids == ("n0", "n1", "n2", "n3")
    assert [each.source_node_id for each in source.nodes if each.is_message] == ["n1", "n3"]


def test_several_first_messages_are_several_branches() -> None:
    source = shaped(
        {"r": node(None), "a": node("r", "first try"), "b": node("r", "second try"), "c": node("b", "answer")}, "c"
    )
    assert active(source).node_ids == ("r", "b", "c")
    assert graph.alternate_branches(parents(source), active(source).node_ids) == [
        graph.AlternateBranch("a", ("r", "a"))
    ]


def test_several_roots_are_all_kept() -> None:
    source = shaped({"a": node(None, "one"), "b": node(None, "two")}, "b")
    assert active(source).node_ids == ("b",)
    assert len(source.nodes) == 2


@pytest.mark.parametrize("current", [None, "nowhere", 7])
def test_without_a_current_node_the_last_leaf_is_taken(current: Any) -> None:
    source = shaped({"a": node(None, "one"), "b": node("a", "two"), "c": node("a", "three")}, current)
    path = active(source)
    assert path.node_ids == ("a", "c")
    assert [text.partition(":")[0] for text in path.anomalies] == ["current_node_missing"]


def test_a_cycle_of_two_parents_is_kept_and_reported_once() -> None:
    source = shaped({"a": node("b", "one"), "b": node("a", "two")}, "b")
    path = active(source)
    assert set(path.node_ids) == {"a", "b"}
    assert [text.partition(":")[0] for text in path.anomalies] == ["cycle"]


def test_a_node_that_is_its_own_parent_is_a_cycle() -> None:
    assert [text.partition(":")[0] for text in active(shaped({"a": node("a", "one")}, "a")).anomalies] == ["cycle"]


def test_a_parent_that_is_not_there_is_reported_and_the_rest_is_read() -> None:
    source = shaped({"a": node("gone", "one"), "b": node("a", "two")}, "b")
    assert active(source) == graph.ActivePath(("a", "b"), ("dangling_parent:gone",))


def test_nodes_that_are_no_objects_are_kept_and_reported() -> None:
    source = shaped({"a": None, "b": "text", "c": {"message": "text", "parent": 5}, "d": node("c", "fine")}, "d")
    assert [(each.source_node_id, each.kind, each.raw) for each in source.nodes[:3]] == [
        ("a", "none", None),
        ("b", "none", {"value": "text"}),
        ("c", "none", {"message": "text", "parent": 5}),
    ]
    assert source.anomalies == ("message_not_object", "node_not_object")
    assert parents(source)["c"] is None


@pytest.mark.parametrize(
    ("raw", "code", "skipped"),
    [
        (None, "NOT_AN_OBJECT", False),
        (["a"], "NOT_AN_OBJECT", False),
        ({"title": "shell", "id": "c"}, "NO_MAPPING", True),
        ({"mapping": None}, "NO_MAPPING", True),
        ({"mapping": []}, "NO_MAPPING", True),
        ({"mapping": {}}, "EMPTY_CONVERSATION", True),
        ({"chat_messages": []}, "FOREIGN_FORMAT", False),
        ({"mapping": {"": node(None, "x")}}, "BAD_NODE_ID", False),
        ({"mapping": {"x" * 513: node(None, "x")}}, "BAD_NODE_ID", False),
        ({"mapping": {"\ud83d": node(None, "x")}}, "BAD_NODE_ID", False),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_reason(raw: Any, code: str, skipped: bool) -> None:
    with pytest.raises(ItemError) as caught:
        normalise(raw)
    assert (caught.value.code, caught.value.skipped) == (code, skipped)


@pytest.mark.parametrize("title", [None, "", "  \n", 5, ["x"]])
def test_a_conversation_without_a_title_gets_one(title: Any) -> None:
    assert normalise(conversation(message("x"), title=title)).title == UNTITLED


def test_an_endless_title_is_shortened_and_kept_in_full_beside() -> None:
    source = normalise(conversation(message("x"), title="t" * 501))
    assert (source.title, source.metadata["title"]) == ("t" * 500, "t" * 501)
    assert source.anomalies == ("title_shortened",)
    assert normalise(conversation(message("x"), title="t" * 500)).anomalies == ()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1_700_000_000, "2023-11-14T22:13:20.000Z"),
        (1_700_000_000.123456, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456, "2023-11-14T22:13:20.123Z"),
        (1_700_000_000_123_456_789, "2023-11-14T22:13:20.123Z"),
        ("1700000000.5", "2023-11-14T22:13:20.500Z"),
        ("2023-11-14T23:13:20+01:00", "2023-11-14T22:13:20.000Z"),
        (None, None),
        ("", None),
    ],
)
def test_times_in_any_unit(value: Any, expected: str | None) -> None:
    source = normalise(conversation(message("x", create_time=value, update_time=value)))
    assert (source.nodes[0].created_at, source.nodes[0].updated_at) == (expected, expected)
    assert source.anomalies == ()


@pytest.mark.parametrize("value", [0, -1, 12345, 1e30, 10**400, True, "yesterday", "NaN", "1e400", {"$date": 1}, [1]])
def test_an_absurd_time_is_no_time_and_stays_in_the_raw_object(value: Any) -> None:
    raw = conversation(message("x", create_time=value), create_time=value, update_time=value)
    source = normalise(raw)
    assert (source.nodes[0].created_at, source.created_at, source.updated_at) == (None, None, None)
    assert source.anomalies == ("absurd_time",)
    assert source.metadata["create_time"] == value
    assert source.nodes[0].raw == raw["mapping"]["n0"]


def test_message_times_are_never_invented() -> None:
    source = normalise(conversation(message("a", create_time=1_700_000_000), message("b"), create_time=1_600_000_000))
    assert source.nodes[1].created_at is None


def test_missing_times_of_a_conversation_come_from_its_messages() -> None:
    source = normalise(conversation(message("a", create_time=1_700_000_100), message("b", create_time=1_700_000_000)))
    assert (source.created_at, source.updated_at) == ("2023-11-14T22:13:20.000Z", "2023-11-14T22:15:00.000Z")
    bare = normalise(conversation(message("a")))
    assert (bare.created_at, bare.updated_at) == (None, None)


def test_everything_not_taken_apart_stays_in_the_metadata() -> None:
    raw = conversation(
        message("x", metadata={"model_slug": "gpt-5"}),
        conversation_id="c",
        gizmo_id="g-p-123",
        default_model_slug="auto",
        safe_urls=["https://a"],
    )
    source = normalise(raw)
    assert source.metadata == {"gizmo_id": "g-p-123", "default_model_slug": "auto", "safe_urls": ["https://a"]}
    assert source.nodes[0].model_slug == "gpt-5"


def test_the_model_of_the_conversation_is_not_taken_for_that_of_a_message() -> None:
    assert normalise(conversation(message("x"), default_model_slug="auto")).nodes[0].model_slug is None


@pytest.mark.parametrize(
    ("ids", "source_id", "metadata"),
    [
        ({"id": "a", "conversation_id": "a"}, "a", {}),
        ({"id": "a", "conversation_id": "b"}, "a", {"conversation_id": "b"}),
        ({"id": None, "conversation_id": "b"}, "b", {}),
        ({"id": 5, "conversation_id": "b"}, "b", {"id": 5}),
        ({"id": "\ud83d"}, None, {"id": "\ud83d"}),
        ({"id": ""}, None, {"id": ""}),
        ({"id": None}, None, {}),
    ],
)
def test_the_id_of_a_conversation(ids: Any, source_id: str | None, metadata: Any) -> None:
    raw = {**conversation(message("x")), **ids}
    source = normalise(raw)
    assert (source.source_id, source.metadata) == (source_id, metadata)
    assert source.source_key == (source_id or canonical.sha256_hex(canonical.dumps(raw)))
    assert ("id_missing" in source.anomalies) == (source_id is None)


def test_a_conversation_without_any_text_is_flagged() -> None:
    image = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1"}
    silent = normalise(
        conversation(None, message({"content_type": "multimodal_text", "parts": [image]}, "user"), message(""))
    )
    assert silent.anomalies == ("no_text",)
    assert normalise(conversation(None, message("x"))).anomalies == ()


def test_raw_nodes_are_the_very_objects_of_the_source() -> None:
    raw = conversation(None, message("x"))
    before = json.dumps(raw)
    source = normalise(raw)
    assert all(each.raw is raw["mapping"][each.source_node_id] for each in source.nodes)
    assert json.dumps(raw) == before


node_ids = st.sampled_from("abcdefgh")
raw_nodes = st.fixed_dictionaries(
    {
        "message": st.none()
        | st.builds(
            message,
            st.text(max_size=8),
            st.sampled_from(["user", "assistant", "system"]),
            create_time=st.none() | st.floats(1e9, 3e9),
        ),
    },
    optional={"parent": st.none() | node_ids, "children": st.lists(node_ids, max_size=3)},
)


@given(
    st.dictionaries(node_ids, raw_nodes | st.none(), min_size=1),
    st.none() | node_ids,
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_mapping_changes_no_byte(mapping: Any, current: str | None, shuffler: random.Random) -> None:
    keys = list(mapping)
    shuffler.shuffle(keys)
    one, other = shaped(mapping, current), shaped({key: mapping[key] for key in keys}, current)
    assert asdict(one) == asdict(other)
    assert [codec.encode_node(each) for each in one.nodes] == [codec.encode_node(each) for each in other.nodes]
    assert [each.source_node_id for each in one.nodes] == sorted(mapping)


@given(st.dictionaries(node_ids, raw_nodes, min_size=1), st.none() | node_ids)
def test_every_graph_has_an_active_path(mapping: Any, current: str | None) -> None:
    source = shaped(mapping, current)
    path = active(source)
    assert path.node_ids
    assert set(path.node_ids) <= set(mapping)
