"""Reading known conversations: one page by page, or the list of them."""

from __future__ import annotations

from typing import Final

from mempersist import limits, names
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.archive.read import ConversationView, read_page
from mempersist.catalog.conversations import ConversationRow, list_conversations
from mempersist.mcp import budget, fields, messages
from mempersist.mcp.fields import COUNT, COUNT_OR_NULL, TEXT, TEXT_OR_NULL, TEXTS, result, results
from mempersist.mcp.tool import Call, Tool

_MOST_ANOMALIES: Final = 20

# ------------------------------------------------------------------ memory_get_conversation


async def _get_conversation(call: Call) -> JsonObject:
    offset = call.arguments["offset"]
    page = await read_page(
        call.ports,
        call.account,
        call.arguments["conversation_id"],
        offset=offset,
        limit=call.arguments["limit"],
        branch=call.arguments["branch"],
        revision_id=call.get("revision_id"),
        max_bytes=limits.MAX_PAGE_READ_BYTES,
    )
    is_compact = call.arguments["format"] == "compact"
    answer: JsonObject = {
        "conversation": budget.clean(
            messages.compact_conversation(page.conversation) if is_compact else _canonical(page.conversation)
        ),
        "messages": [],
        "offset": offset,
        "nextOffset": page.total,
        "total": page.total,
    }
    fitted = messages.fit(
        page.messages,
        render=messages.renderer(call.arguments["format"], page.conversation.id),
        room=limits.RECOMMENDED_TOOL_OUTPUT_BYTES - budget.size(answer),
        conversation=page.conversation,
        next_offset=page.next_offset,
        total=page.total,
    )
    answer["messages"] = list(fitted.messages)
    answer["nextOffset"] = fitted.next_offset
    if fitted.oversized is not None:
        answer["oversizedMessage"] = fitted.oversized
    return answer


def _canonical(view: ConversationView) -> JsonObject:
    value: JsonObject = {
        "id": view.id,
        "title": view.title,
        "sourceType": view.source_type,
        "sourceId": view.source_id,
        "namespace": view.namespace,
        "tags": list(view.tags),
        "revisionId": view.revision_id,
        "currentSourceNodeId": view.current_source_node_id,
        "anomalies": list(view.anomalies[:_MOST_ANOMALIES]),
    }
    if len(view.anomalies) > _MOST_ANOMALIES:
        value["anomaliesNotListed"] = len(view.anomalies) - _MOST_ANOMALIES
    return value


_CONVERSATION: Final = result(
    {
        "id": TEXT,
        "title": TEXT,
        "namespace": TEXT,
        "tags": TEXTS,
        "revisionId": TEXT,
        "sourceType": TEXT,
        "sourceId": TEXT_OR_NULL,
        "currentSourceNodeId": TEXT_OR_NULL,
        "anomalies": TEXTS,
        "anomaliesNotListed": COUNT,
    },
    optional=("sourceType", "sourceId", "currentSourceNodeId", "anomalies", "anomaliesNotListed"),
)

GET_CONVERSATION: Final = Tool(
    name="memory_get_conversation",
    title="Read a conversation",
    description=(
        "Reads a conversation in pages of whole messages. nextOffset goes on, null is the end; revisionId passed"
        " back keeps all pages at one revision. A message too large for any page is named in oversizedMessage and"
        " passed over."
    ),
    scope=READ,
    input_schema=fields.arguments(
        ("conversation_id",),
        conversation_id=fields.conversation_id(),
        offset=fields.integer("Place of the first message, from 0.", 0, fields.MAX_OFFSET, 0),
        limit=fields.integer("Most messages of a page.", 1, limits.MAX_PAGE_MESSAGES, limits.DEFAULT_PAGE_MESSAGES),
        branch=fields.choice(
            "all: every stored node, other branches too.",
            ("active", "all"),
            "active",
        ),
        format=fields.message_format(),
        revision_id=fields.revision_id("The current one when absent."),
    ),
    output_schema=result(
        {
            "conversation": _CONVERSATION,
            "messages": results(messages.MESSAGE),
            "offset": COUNT,
            "nextOffset": COUNT_OR_NULL,
            "total": COUNT,
            "oversizedMessage": messages.OVERSIZED,
        },
        optional=("oversizedMessage",),
    ),
    run=_get_conversation,
    max_response_bytes=limits.RECOMMENDED_TOOL_OUTPUT_BYTES,
)

# ------------------------------------------------------------------ memory_list_conversations


async def _list_conversations(call: Call) -> JsonObject:
    limit = call.arguments["limit"]
    answer = await _listing(call, limit)
    fits = budget.how_many_fit(answer["conversations"], _room({**answer, "conversations": []}))
    if fits == len(answer["conversations"]):
        return answer
    # A page with fewer rows carries the cursor that goes on after exactly those.
    return await _listing(call, max(1, fits))


async def _listing(call: Call, limit: int) -> JsonObject:
    namespace = call.get("namespace")
    rows, cursor = await list_conversations(
        call.ports,
        call.account,
        limit=limit,
        cursor=call.get("cursor"),
        namespace=None if namespace is None else names.namespace(namespace),
        tags=names.tags(call.get("tags") or ()),
        tag_mode=call.arguments["tag_mode"],
    )
    return {"conversations": [budget.clean(_row(row)) for row in rows], "nextCursor": cursor}


def _room(envelope: JsonObject) -> int:
    # The cursor of a shorter page may be longer than this page's.
    return limits.RECOMMENDED_TOOL_OUTPUT_BYTES - budget.size(envelope) - limits.KIB


def _row(row: ConversationRow) -> JsonObject:
    return {
        "id": row.id,
        "title": row.title,
        "namespace": row.namespace,
        "tags": list(row.tags),
        "sourceType": row.source_type,
        "sourceId": row.source_id,
        "revisionId": row.revision_id,
        "messageCount": row.message_count,
        "createdAt": row.created_at,
        "updatedAt": row.updated_at,
    }


LIST_CONVERSATIONS: Final = Tool(
    name="memory_list_conversations",
    title="List conversations",
    description=(
        "Lists conversations without their messages, last changed first. nextCursor goes on; null is the end."
    ),
    scope=READ,
    input_schema=fields.arguments(
        limit=fields.integer("Most conversations of a page.", 1, limits.MAX_LIST_ITEMS, limits.DEFAULT_LIST_ITEMS),
        cursor=fields.text("nextCursor of the page before.", minLength=1, maxLength=limits.MAX_CURSOR_BYTES),
        namespace=fields.namespace("Only this one; all when absent."),
        tags=fields.tags("Only with these tags."),
        tag_mode=fields.tag_mode(),
    ),
    output_schema=result(
        {
            "conversations": results(
                result(
                    {
                        "id": TEXT,
                        "title": TEXT,
                        "namespace": TEXT,
                        "tags": TEXTS,
                        "sourceType": TEXT,
                        "sourceId": TEXT_OR_NULL,
                        "revisionId": TEXT,
                        "messageCount": COUNT,
                        "createdAt": TEXT_OR_NULL,
                        "updatedAt": TEXT,
                    }
                )
            ),
            "nextCursor": TEXT_OR_NULL,
        }
    ),
    run=_list_conversations,
    max_response_bytes=limits.RECOMMENDED_TOOL_OUTPUT_BYTES,
)
