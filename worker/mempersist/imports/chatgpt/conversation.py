"""One conversation object of an export as a conversation of the archive.

Each node keeps its source object unchanged. Nodes are ordered by id, so that the order of the mapping, which differs
between exports of one conversation, changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from mempersist import canonical, limits
from mempersist.archive.model import JsonObject, Node, SourceConversation
from mempersist.imports.chatgpt.nodes import node_of
from mempersist.imports.chatgpt.times import AbsurdTime, time_of
from mempersist.imports.problems import ItemError

UNTITLED = "Untitled conversation"

_MAX_ID_CHARS = 512
_SURROGATE = re.compile("[\ud800-\udfff]")
_TAKEN_APART = frozenset({"mapping", "title", "create_time", "update_time", "current_node", "id", "conversation_id"})


def normalise(raw: Any) -> SourceConversation:
    """The conversation in ``raw``, a parsed item of an export.

    ``anomalies`` of the result are the parser's own: ``absurd_time``, ``unknown_content_type:x``, ``parent_derived``,
    ``node_not_object``, ``message_not_object``, ``role_missing``, ``title_shortened``, ``id_missing`` and ``no_text``,
    the last where not one message that a reader is shown has any text.

    :raises ItemError: NOT_AN_OBJECT, FOREIGN_FORMAT, BAD_NODE_ID; and, as nothing to import, NO_MAPPING and
        EMPTY_CONVERSATION.
    """
    if not isinstance(raw, dict):
        raise ItemError("NOT_AN_OBJECT", "this item is no conversation object")
    mapping = _mapping_of(raw)
    anomalies: set[str] = set()
    parents = _parents(mapping, anomalies)
    nodes = tuple(node_of(node_id, parents[node_id], mapping[node_id], anomalies) for node_id in sorted(mapping))
    metadata = {key: value for key, value in raw.items() if key not in _TAKEN_APART}
    source_id = _source_id(raw, metadata, anomalies)
    created_at = _time(raw, "create_time", metadata, anomalies)
    updated_at = _time(raw, "update_time", metadata, anomalies)
    if not any(node.is_message and node.text for node in nodes):
        anomalies.add("no_text")
    current = raw.get("current_node")
    return SourceConversation(
        source_type="chatgpt",
        source_id=source_id,
        source_key=source_id or canonical.sha256_hex(canonical.dumps(raw)),
        title=_title(raw, metadata, anomalies),
        created_at=created_at or _first_time(nodes),
        updated_at=updated_at or _last_time(nodes) or created_at,
        current_source_node_id=current if isinstance(current, str) else None,
        nodes=nodes,
        metadata=metadata,
        anomalies=tuple(sorted(anomalies)),
    )


def _mapping_of(raw: JsonObject) -> Mapping[str, Any]:
    mapping = raw.get("mapping")
    if not isinstance(mapping, dict):
        if "chat_messages" in raw or "responses" in raw:
            raise ItemError("FOREIGN_FORMAT", "this conversation is not ChatGPT's; other exports are not supported yet")
        raise ItemError("NO_MAPPING", "this conversation is an empty shell: it has no messages", skipped=True)
    if not mapping:
        raise ItemError("EMPTY_CONVERSATION", "this conversation has no messages", skipped=True)
    for node_id in mapping:
        if not _is_usable(node_id):
            message = f"a message has an id that is empty, longer than {_MAX_ID_CHARS} characters or not valid Unicode"
            raise ItemError("BAD_NODE_ID", message)
    return mapping


def _is_usable(identifier: str) -> bool:
    return 0 < len(identifier) <= _MAX_ID_CHARS and not _SURROGATE.search(identifier)


def _parents(mapping: Mapping[str, Any], anomalies: set[str]) -> dict[str, str | None]:
    """The parent of each node; where a node does not name it, the first by id that names the node as its child."""
    parents: dict[str, str | None] = {}
    orphans = False
    for node_id, node in mapping.items():
        parent = node.get("parent") if isinstance(node, dict) else None
        parents[node_id] = parent if isinstance(parent, str) and parent else None
        orphans = orphans or (isinstance(node, dict) and "parent" not in node)
    if orphans:
        for node_id in sorted(mapping):
            for child in _children(mapping[node_id]):
                if isinstance(mapping.get(child), dict) and "parent" not in mapping[child] and parents[child] is None:
                    parents[child] = node_id
                    anomalies.add("parent_derived")
    return parents


def _children(node: Any) -> Sequence[str]:
    children = node.get("children") if isinstance(node, dict) else None
    return [child for child in children if isinstance(child, str)] if isinstance(children, list) else ()


def _source_id(raw: JsonObject, metadata: JsonObject, anomalies: set[str]) -> str | None:
    """The conversation's id. What the object has of another id stays in ``metadata``."""
    found: str | None = None
    for key in ("id", "conversation_id"):
        value = raw.get(key)
        if found is None and isinstance(value, str) and _is_usable(value):
            found = value
        elif value is not None and value != found:
            metadata[key] = value
    if found is None:
        anomalies.add("id_missing")
    return found


def _title(raw: JsonObject, metadata: JsonObject, anomalies: set[str]) -> str:
    """A title that can be shown; a title that had to be changed stays in ``metadata``."""
    title = raw.get("title")
    if isinstance(title, str) and title.strip():
        if len(title) <= limits.MAX_TITLE_CHARS:
            return title
        metadata["title"] = title
        anomalies.add("title_shortened")
        return title[: limits.MAX_TITLE_CHARS]
    if title:
        metadata["title"] = title
    return UNTITLED


def _time(raw: JsonObject, key: str, metadata: JsonObject, anomalies: set[str]) -> str | None:
    try:
        return time_of(raw.get(key))
    except AbsurdTime:
        metadata[key] = raw[key]
        anomalies.add("absurd_time")
        return None


def _first_time(nodes: Sequence[Node]) -> str | None:
    return min((node.created_at for node in nodes if node.created_at), default=None)


def _last_time(nodes: Sequence[Node]) -> str | None:
    return max((node.created_at for node in nodes if node.created_at), default=None)
