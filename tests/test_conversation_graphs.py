"""The active branch, the other branches, and graphs that are broken."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from mempersist.archive import graph

ids = [f"n{index}" for index in range(6)]
parents_maps = st.dictionaries(st.sampled_from(ids), st.none() | st.sampled_from([*ids, "missing"]), max_size=6)


def test_the_active_branch_runs_from_the_root_to_the_current_node() -> None:
    parents = {"root": None, "ask": "root", "first": "ask", "second": "ask"}
    path = graph.active_path(parents, "second")
    assert path.node_ids == ("root", "ask", "second")
    assert path.anomalies == ()


def test_an_alternate_branch_starts_one_ancestor_before_it_leaves() -> None:
    parents = {"root": None, "ask": "root", "first": "ask", "second": "ask", "orphan": None}
    branches = graph.alternate_branches(parents, ("root", "ask", "second"))
    assert [(branch.leaf, branch.node_ids) for branch in branches] == [
        ("first", ("ask", "first")),
        ("orphan", ("orphan",)),
    ]


def test_a_missing_current_node_falls_back_to_the_last_leaf_and_says_so() -> None:
    path = graph.active_path({"a": None, "b": "a", "c": "a"}, "gone")
    assert path.node_ids == ("a", "c")
    assert path.anomalies == ("current_node_missing:gone",)


def test_two_nodes_that_are_each_others_parent_are_one_cycle() -> None:
    path = graph.active_path({"a": "b", "b": "a"}, "a")
    assert path.anomalies == ("cycle:a",)
    assert set(path.node_ids) == {"a", "b"}


def test_a_dangling_parent_ends_the_branch_there() -> None:
    path = graph.active_path({"a": "nowhere", "b": "a"}, "b")
    assert path.node_ids == ("a", "b")
    assert path.anomalies == ("dangling_parent:nowhere",)


def test_no_nodes_are_no_anomaly() -> None:
    assert graph.active_path({}, None) == graph.ActivePath((), ())


@given(parents_maps, st.none() | st.sampled_from([*ids, "gone"]))
def test_any_graph_has_an_active_branch_without_repeats(parents: dict[str, str | None], current: str | None) -> None:
    path = graph.active_path(parents, current).node_ids
    assert len(set(path)) == len(path)
    assert bool(path) == bool(parents)
    assert all(parents[child] == parent for parent, child in itertools.pairwise(path))


@given(parents_maps)
def test_every_leaf_is_on_the_active_branch_or_on_an_alternate(parents: dict[str, str | None]) -> None:
    active = graph.active_path(parents, None).node_ids
    leaves = {branch.leaf for branch in graph.alternate_branches(parents, active)}
    assert leaves == set(graph.leaves_of(parents)) - set(active)
