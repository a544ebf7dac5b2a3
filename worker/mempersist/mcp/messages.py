"""Messages as tools answer with them, and pages of whole messages within a byte budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from mempersist import canonical
from mempersist.archive.model import AssetRef, JsonObject, Node
from mempersist.archive.read import ConversationView, MessageView
from mempersist.mcp import budget
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, result, results

Render = Callable[[Node], JsonObject]

_ASSET: Final = result(
    {"assetId": TEXT, "pointer": TEXT, "kind": TEXT, "name": TEXT_OR_NULL, "mediaType": TEXT_OR_NULL}
)
_COMPACT: Final = {
    "sourceNodeId": TEXT,
    "role": TEXT,
    "createdAt": TEXT_OR_NULL,
    "updatedAt": TEXT_OR_NULL,
    "text": TEXT,
}
_CANONICAL: Final = {
    "id": TEXT,
    "parentSourceNodeId": TEXT_OR_NULL,
    "content": {"type": ["object", "null"]},
    "modelSlug": TEXT_OR_NULL,
    "kind": TEXT,
    "assets": results(_ASSET),
}
COMPACT_MESSAGE: Final[JsonObject] = result(_COMPACT)
MESSAGE: Final[JsonObject] = result({**_COMPACT, **_CANONICAL}, optional=tuple(_CANONICAL))
"""Schema of a message in either format."""

OVERSIZED: Final[JsonObject] = result(
    {"conversationId": TEXT, "revisionId": TEXT, "sourceNodeId": TEXT, "offset": COUNT, "bytes": COUNT}
)
"""Schema of the mark of a message that is too large for any answer."""


def compact(node: Node) -> JsonObject:
    """Who said what and when."""
    value: JsonObject = budget.clean(
        {
            "sourceNodeId": node.source_node_id,
            "role": node.role,
            "createdAt": node.created_at,
            "updatedAt": node.updated_at,
            "text": node.text,
        }
    )
    return value


def compact_conversation(view: ConversationView) -> JsonObject:
    """Which conversation it is; its texts as they are stored."""
    return {
        "id": view.id,
        "revisionId": view.revision_id,
        "title": view.title,
        "namespace": view.namespace,
        "tags": list(view.tags),
    }


def canonical_message(conversation_id: str, node: Node) -> JsonObject:
    """Everything of a message but the source's raw node around it.

    ``content`` is the content as the source structured it; None for messages written through the service.
    """
    value: JsonObject = budget.clean(
        {
            "id": canonical.node_id(conversation_id, node.source_node_id),
            "sourceNodeId": node.source_node_id,
            "parentSourceNodeId": node.parent_source_node_id,
            "role": node.role,
            "text": node.text,
            "content": _content(node),
            "createdAt": node.created_at,
            "updatedAt": node.updated_at,
            "modelSlug": node.model_slug,
            "kind": node.kind,
            "assets": [_asset(ref) for ref in node.assets],
        }
    )
    return value


def renderer(message_format: str, conversation_id: str) -> Render:
    """How messages look in ``message_format``, ``canonical`` or ``compact``."""
    if message_format == "compact":
        return compact
    return lambda node: canonical_message(conversation_id, node)


def _content(node: Node) -> JsonObject | None:
    message = (node.raw or {}).get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, dict) else None


def _asset(ref: AssetRef) -> JsonObject:
    return {
        "assetId": ref.asset_id,
        "pointer": ref.pointer,
        "kind": ref.kind,
        "name": ref.name,
        "mediaType": ref.media_type,
    }


@dataclass(frozen=True, slots=True)
class Fitted:
    """The leading messages that fit. ``next_offset`` continues after them; None at the end of the listing.

    :param oversized: the mark of the first message, if it alone is too large; it is then passed over.
    """

    messages: tuple[JsonObject, ...]
    next_offset: int | None
    oversized: JsonObject | None = None


def fit(
    views: Sequence[MessageView],
    *,
    render: Render,
    room: int,
    conversation: ConversationView,
    next_offset: int | None,
    total: int,
) -> Fitted:
    """Whole messages into ``room`` bytes of a JSON list.

    :param next_offset: where the listing goes on after all of ``views``. :param total: length of the listing.
    """
    rendered: list[JsonObject] = []
    used = 0
    for view in views:
        message = render(view.node)
        size = budget.size(message)
        if used + size + len(rendered) > room:
            if rendered:
                return Fitted(tuple(rendered), view.offset)
            following = view.offset + 1
            mark = {
                "conversationId": conversation.id,
                "revisionId": conversation.revision_id,
                "sourceNodeId": view.node.source_node_id,
                "offset": view.offset,
                "bytes": size,
            }
            return Fitted((), following if following < total else None, mark)
        rendered.append(message)
        used += size
    return Fitted(tuple(rendered), next_offset)
