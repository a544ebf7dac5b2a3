"""Conversation objects as ChatGPT exports them, small and written by hand."""

from __future__ import annotations

from typing import Any

from mempersist.archive.model import Node
from mempersist.imports.chatgpt.conversation import normalise

Raw = dict[str, Any]


def message(content: Any, role: str = "assistant", **fields: Any) -> Raw:
    """A message; a string is the content of an ordinary text message."""
    if isinstance(content, str):
        content = {"content_type": "text", "parts": [content]}
    return {"author": {"role": role}, "content": content, "metadata": {}, "recipient": "all", **fields}


def conversation(*messages: Raw | None, **fields: Any) -> Raw:
    """The messages one below the other as nodes n0, n1 …, the last of them current."""
    mapping: Raw = {}
    for index, each in enumerate(messages):
        parent = f"n{index - 1}" if index else None
        mapping[f"n{index}"] = {"id": f"n{index}", "message": each, "parent": parent}
    current = f"n{len(messages) - 1}" if messages else None
    return {"id": "c", "title": "T", "mapping": mapping, "current_node": current, **fields}


def node_of(content: Any, role: str = "assistant", **fields: Any) -> Node:
    """The one node of a conversation with one message."""
    (node,) = normalise(conversation(message(content, role, **fields))).nodes
    return node
