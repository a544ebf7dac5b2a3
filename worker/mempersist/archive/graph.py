"""The shape of a conversation: its active branch, its other branches, and what is odd about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mempersist.archive.model import Node


@dataclass(frozen=True, slots=True)
class ActivePath:
    """Root to current node. ``anomalies`` are ``current_node_missing:x``, ``cycle:x`` or ``dangling_parent:x``."""

    node_ids: tuple[str, ...]
    anomalies: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AlternateBranch:
    """A leaf off the active branch. ``node_ids`` starts one ancestor before the branch leaves the active path."""

    leaf: str
    node_ids: tuple[str, ...]


def parents_of(nodes: Iterable[Node]) -> dict[str, str | None]:
    return {node.source_node_id: node.parent_source_node_id for node in nodes}


def walk_up(parents: Mapping[str, str | None], start: str) -> tuple[list[str], str | None]:
    """From ``start`` to its root, root first, and an anomaly if the walk ended in a cycle or at a missing parent."""
    path: list[str] = []
    seen: set[str] = set()
    at: str | None = start
    anomaly: str | None = None
    while at is not None:
        if at in seen:
            anomaly = f"cycle:{at}"
            break
        if at not in parents:
            anomaly = f"dangling_parent:{at}"
            break
        seen.add(at)
        path.append(at)
        at = parents[at]
    path.reverse()
    return path, anomaly


def leaves_of(parents: Mapping[str, str | None]) -> list[str]:
    """Nodes that are nobody's parent, sorted."""
    inner = set(parents.values())
    return sorted(node for node in parents if node not in inner)


def active_path(parents: Mapping[str, str | None], current: str | None) -> ActivePath:
    """The branch a reader sees. Without a usable ``current`` it ends at the last leaf by id, else the last node."""
    anomalies: list[str] = []
    if current is None or current not in parents:
        if parents:
            anomalies.append(f"current_node_missing:{current or ''}")
        leaves = leaves_of(parents)
        current = leaves[-1] if leaves else max(parents, default=None)
    if current is None:
        return ActivePath((), tuple(anomalies))
    path, anomaly = walk_up(parents, current)
    if anomaly:
        anomalies.append(anomaly)
    return ActivePath(tuple(path), tuple(anomalies))


def alternate_branches(parents: Mapping[str, str | None], active: Sequence[str]) -> list[AlternateBranch]:
    """Every leaf off the active path, by leaf id, with its nodes from one ancestor before it diverges."""
    on_active = set(active)
    branches = []
    for leaf in leaves_of(parents):
        if leaf in on_active:
            continue
        path, _ = walk_up(parents, leaf)
        diverges = next((index for index, node in enumerate(path) if node not in on_active), len(path))
        branches.append(AlternateBranch(leaf, tuple(path[max(0, diverges - 1) :])))
    return branches
