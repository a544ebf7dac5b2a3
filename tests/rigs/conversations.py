"""Conversations for tests: built by hand, or drawn by hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from mempersist.archive.model import Node, SourceConversation


def node(node_id: str, parent: str | None, text: str = "", *, role: str = "user", **changes: Any) -> Node:
    """A node as an export's parser makes it; without text it is an empty root."""
    kind = "text" if text else "none"
    raw = {"id": node_id, "parent": parent, "message": {"text": text} if text else None}
    return Node(node_id, parent, role if text else "none", text, **{"kind": kind, "raw": raw, **changes})


def conversation(source_id: str, nodes: Sequence[Node], **changes: Any) -> SourceConversation:
    """An imported conversation whose current node is the last of ``nodes`` unless named."""
    values: dict[str, Any] = {
        "source_type": "chatgpt",
        "source_id": source_id,
        "source_key": source_id,
        "title": f"About {source_id}",
        "created_at": "2026-01-01T00:00:00.000Z",
        "updated_at": "2026-01-02T00:00:00.000Z",
        "current_source_node_id": nodes[-1].source_node_id if nodes else None,
        "nodes": tuple(sorted(nodes, key=lambda item: item.source_node_id)),
        **changes,
    }
    return SourceConversation(**values)


def chain(source_id: str, *texts: str, **changes: Any) -> SourceConversation:
    """A conversation without branches: an empty root and one message for each of ``texts``."""
    nodes = [node("n000", None)]
    for index, text in enumerate(texts, start=1):
        role = "user" if index % 2 else "assistant"
        nodes.append(node(f"n{index:03d}", nodes[-1].source_node_id, text, role=role))
    return conversation(source_id, nodes, **changes)


texts = st.text(alphabet=st.characters(codec=None), min_size=1, max_size=40)


@st.composite
def conversations(draw: st.DrawFn, source_id: str) -> SourceConversation:
    """Any graph: branches, cycles, dangling parents, several roots, a current node that is not there."""
    count = draw(st.integers(1, 7))
    ids = [f"n{index}" for index in range(count)]
    parents = st.one_of(st.none(), st.sampled_from([*ids, "missing"]))
    nodes = [
        node(node_id, draw(parents), draw(st.one_of(st.just(""), texts)), hidden=draw(st.booleans())) for node_id in ids
    ]
    day = draw(st.integers(1, 5))
    return conversation(
        source_id,
        nodes,
        title=draw(texts),
        current_source_node_id=draw(st.one_of(st.none(), st.sampled_from([*ids, "gone"]))),
        updated_at=draw(st.one_of(st.none(), st.just(f"2026-02-0{day}T00:00:00.000Z"))),
        metadata=draw(st.dictionaries(st.sampled_from(["model", "gizmo_id"]), texts, max_size=2)),
    )
