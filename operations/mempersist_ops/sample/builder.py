"""Conversation objects in the classic form of exports, from messages written one below the other."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

Raw = dict[str, Any]

_DAY = 86_400.0
_FIRST_DAY = 1_735_900_000.5
"""A morning in January 2025."""


def stable_id(*parts: str) -> str:
    """An id in the form of a UUID that is always the same for the same parts."""
    digest = hashlib.sha256("/".join(parts).encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def message(role: str, content: Any, **fields: Any) -> Raw:
    """A message; a string is the content of an ordinary text message."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    metadata = {"model_slug": "gpt-5"} if role == "assistant" else {}
    return {
        "author": {"role": role, "name": None, "metadata": {}},
        "content": content,
        "status": "finished_successfully",
        "end_turn": True,
        "weight": 1.0,
        "recipient": "all",
        **fields,
        "metadata": {**metadata, **fields.get("metadata", {})},
    }


def user(content: Any, **fields: Any) -> Raw:
    return message("user", content, **fields)


def assistant(content: Any, **fields: Any) -> Raw:
    return message("assistant", content, **fields)


def tool(name: str, content: Any, **fields: Any) -> Raw:
    made = message("tool", content, **fields)
    return {**made, "author": {"role": "tool", "name": name, "metadata": {}}}


def hidden_system() -> Raw:
    """The empty system message that stands at the top, and now and then in the middle, of real conversations."""
    return message("system", "", metadata={"is_visually_hidden_from_conversation": True})


def conversation(name: str, title: str | None, day: int, messages: Sequence[Raw], **fields: Any) -> Raw:
    """A conversation whose messages follow each other below an empty root and a hidden system message."""
    start = _FIRST_DAY + day * _DAY
    thread: list[Raw | None] = [None, hidden_system(), *messages]
    ids = [stable_id(name, str(index)) for index in range(len(thread))]
    mapping: Raw = {}
    for index, (node_id, each) in enumerate(zip(ids, thread, strict=True)):
        timed = (
            None if each is None else {"id": node_id, "create_time": start + 41.25 * index, "update_time": None, **each}
        )
        parent = ids[index - 1] if index else None
        mapping[node_id] = {"id": node_id, "message": timed, "parent": parent, "children": ids[index + 1 : index + 2]}
    identifier = stable_id(name)
    return {
        "title": title,
        "create_time": start,
        "update_time": start + 41.25 * len(thread),
        "mapping": mapping,
        "moderation_results": [],
        "current_node": ids[-1],
        "plugin_ids": None,
        "conversation_id": identifier,
        "gizmo_id": None,
        "is_archived": False,
        "safe_urls": [],
        "default_model_slug": "gpt-5",
        "id": identifier,
        **fields,
    }


def branch(made: Raw, at: int, *messages: Raw) -> Raw:
    """Let another branch begin beside message ``at``, counted from 0; the branch that was there stays the current."""
    name = made["id"]
    thread = list(made["mapping"])
    parent = thread[at + 1]
    start = made["mapping"][thread[at + 2]]["message"]["create_time"]
    for index, each in enumerate(messages):
        node_id = stable_id(name, "branch", str(at), str(index))
        timed = {"id": node_id, "create_time": start + 20.5 * (index + 1), "update_time": None, **each}
        made["mapping"][node_id] = {"id": node_id, "message": timed, "parent": parent, "children": []}
        made["mapping"][parent]["children"].append(node_id)
        parent = node_id
    return made
