"""One node of a conversation's mapping."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from mempersist import limits
from mempersist.archive.model import Node
from mempersist.imports.chatgpt import assets, citations, content, toolcalls
from mempersist.imports.chatgpt.times import AbsurdTime, time_of
from mempersist.imports.chatgpt.values import NOTHING, Object, lines, object_of, text_of

_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MAX_SLUG_CHARS = 100
_INSTRUCTIONS = ("user_editable_context", "model_editable_context")
_SILENT_ROLES = ("system", "tool")


def node_of(node_id: str, parent: str | None, raw: Any, anomalies: set[str]) -> Node:
    """The node as the archive keeps it; what was odd about it is added to ``anomalies``."""
    if not isinstance(raw, dict):
        if raw is not None:
            anomalies.add("node_not_object")
        return Node(node_id, parent, "none", "", "none", raw=None if raw is None else {"value": raw})
    message = raw.get("message")
    if not isinstance(message, dict):
        if message is not None:
            anomalies.add("message_not_object")
        return Node(node_id, parent, "none", "", "none", raw=raw)
    metadata = object_of(message, "metadata")
    role = _role(message, anomalies)
    read = content.read(message.get("content")) if message.get("content") is not None else content.read(message)
    kind = _kind(message)
    anomalies.update(f"unknown_content_type:{_plain(name)}" for name in read.unknown)
    own = _text(read.text, message, metadata, role)
    slug = text_of(metadata, "model_slug")
    found = assets.merged(read.assets, assets.attachments(metadata), assets.outputs(metadata), assets.links(own))
    return Node(
        source_node_id=node_id,
        parent_source_node_id=parent,
        role=role,
        text=lines(own, *_attachment_lines(metadata)) if metadata.get("attachments") else own,
        kind=kind,
        created_at=_time(message, "create_time", anomalies),
        updated_at=_time(message, "update_time", anomalies),
        model_slug=slug if 0 < len(slug) <= _MAX_SLUG_CHARS else None,
        hidden=_is_scaffolding(message, metadata, role, kind, own) and not found,
        assets=found,
        raw=raw,
    )


def _text(text: str, message: Object, metadata: Object, role: str) -> str:
    context = object_of(metadata, "user_context_message_data")
    if context:
        # The content wraps the same in an instruction to the model.
        text = lines(text_of(context, "about_user_message"), text_of(context, "about_model_message")) or text
    recipient = text_of(message, "recipient")
    if recipient not in ("", "all"):
        text = toolcalls.unwrapped(recipient, text)
    text = citations.clean(text, metadata, written_by_model=role != "user")
    if role == "tool" or "chatgpt_sdk" in metadata or "venus_widget_state" in metadata:
        text = toolcalls.with_report(text, metadata)
    return "" if text.isspace() else text


def _attachment_lines(metadata: Object) -> Iterator[str]:
    for attachment in assets.attachments(metadata):
        if attachment.name:
            yield f"[attachment: {attachment.name}]"


def _is_scaffolding(message: Object, metadata: Object, role: str, kind: str, text: str) -> bool:
    """Whether the source showed nothing of the message, and nobody would look for what is in it."""
    if kind in _INSTRUCTIONS or metadata.get("user_context_message_data"):
        return not text
    flagged = metadata.get("is_visually_hidden_from_conversation") is True or message.get("weight") == 0
    if text:
        return flagged and role == "system"
    return flagged or role in _SILENT_ROLES or text_of(message, "recipient") not in ("", "all") or role == "assistant"


def _role(message: Object, anomalies: set[str]) -> str:
    role = text_of(object_of(message, "author"), "role")
    if _PLAIN_NAME.fullmatch(role) and len(role) <= limits.MAX_ROLE_CHARS:
        return role
    anomalies.add("role_missing")
    return "unknown"


def _kind(message: Object) -> str:
    found = message.get("content")
    kind = text_of(found if isinstance(found, dict) else NOTHING, "content_type")
    return _plain(kind) if kind else "text"


def _plain(name: str) -> str:
    return name if _PLAIN_NAME.fullmatch(name) and name != "none" else "other"


def _time(message: Object, key: str, anomalies: set[str]) -> str | None:
    try:
        return time_of(message.get(key))
    except AbsurdTime:
        anomalies.add("absurd_time")
        return None
