"""``search`` and ``fetch`` as ChatGPT's deep research and company knowledge expect them: results with a page of their
own to cite, and the document behind one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.archive.read import ConversationView, MessageView, read_page
from mempersist.errors import not_found
from mempersist.mcp import budget, fields
from mempersist.mcp.fields import TEXT, TEXTS, result, results
from mempersist.mcp.tool import Call, Tool
from mempersist.search.context import get_context
from mempersist.search.places import Place, places_of
from mempersist.search.query import Hit, search
from mempersist.transcript import labelled

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES
_RESULTS: Final = 10
_MOST_MESSAGES: Final = 500
_READ_BYTES: Final = limits.MIB
_FROM_THE_START_BYTES: Final = _BUDGET // 2
"""A passage with no more than this before it is read from the beginning of its conversation."""


def page_url(public_url: str, conversation_id: str) -> str:
    """The canonical page of a conversation."""
    return f"{public_url}/conversations/{conversation_id}"


async def _search(call: Call) -> JsonObject:
    found = await search(call.ports, call.account, query=call.arguments["query"], limit=_RESULTS)
    places = await places_of(call.ports, call.account, found.results) if found.results else {}
    documents: dict[str, JsonObject] = {}
    for hit in found.results:
        document = _document_id(hit, places.get(hit.chunk_id))
        url = page_url(call.settings.public_url, hit.conversation_id)
        documents.setdefault(document, {"id": document, "title": hit.title, "url": url})
    answer: JsonObject = {"results": list(documents.values())}
    return {**answer, "unavailable": list(found.unavailable)} if found.unavailable else answer


def _document_id(hit: Hit, place: Place | None) -> str:
    """The conversation; with a place in it where its beginning would not reach to the passage."""
    if place is None or (place.offset is not None and place.bytes_before <= _FROM_THE_START_BYTES):
        return hit.conversation_id
    if place.offset is None:
        return f"{hit.conversation_id}:{hit.chunk_id}"
    return f"{hit.conversation_id}:{max(0, place.offset - limits.DEFAULT_CONTEXT_MESSAGES)}"


async def _fetch(call: Call) -> JsonObject:
    document = call.arguments["id"]
    conversation_id, _, place = document.partition(":")
    if len(place) == len("0" * 64):
        return await _other_branch(call, document, conversation_id, place)
    page = await read_page(
        call.ports,
        call.account,
        conversation_id,
        offset=int(place or 0),
        limit=_MOST_MESSAGES,
        max_bytes=_READ_BYTES,
    )
    following = page.next_offset
    pieces, shown = _fitted(page.messages, _BUDGET - budget.size(_answer(call, document, page.conversation, "", _WIDE)))
    if shown < len(page.messages):
        following = page.messages[shown].offset
    metadata = _metadata(page.conversation) | {"messages": str(page.total)}
    if following is not None:
        metadata["next_id"] = f"{conversation_id}:{following}"
    return _answer(call, document, page.conversation, "".join(pieces), metadata)


async def _other_branch(call: Call, document: str, conversation_id: str, chunk_id: str) -> JsonObject:
    """The messages around a passage that is not on the branch shown last."""
    most = limits.MAX_CONTEXT_MESSAGES
    context = await get_context(call.ports, call.account, chunk_id=chunk_id, before=most, after=most)
    if context.conversation_id != conversation_id:
        raise not_found("chunk")
    view = (await read_page(call.ports, call.account, conversation_id, limit=1, max_bytes=1)).conversation
    matched = {item.source_node_id for item in context.matched_ranges}
    first = next((at for at, item in enumerate(context.messages) if item.node.source_node_id in matched), 0)
    messages = context.messages
    room = _BUDGET - budget.size(_answer(call, document, view, "", _WIDE))
    while first and _fitted(messages, room)[1] < len(messages):
        messages, first = messages[1:], first - 1
    return _answer(call, document, view, "".join(_fitted(messages, room)[0]), _metadata(view) | {"branch": "other"})


def _fitted(messages: Sequence[MessageView], room: int) -> tuple[list[str], int]:
    """The leading messages that fit as text, and how many they are. A place is kept for one too large by itself."""
    pieces: list[str] = []
    for view in messages:
        piece: str = budget.clean(labelled(view.node.role, view.node.created_at, view.node.text))
        size = budget.size(piece)
        if size > room and not pieces:
            told = f"[{size} bytes: too large for one answer; the conversation's page has it]"
            piece = budget.clean(labelled(view.node.role, view.node.created_at, told))
            size = budget.size(piece)
        if size > room:
            break
        pieces.append(piece)
        room -= size
    return pieces, len(pieces)


def _metadata(view: ConversationView) -> dict[str, str]:
    return {
        "conversation_id": view.id,
        "revision_id": view.revision_id,
        "namespace": view.namespace,
        "tags": ", ".join(view.tags),
        "updated_at": view.updated_at,
    }


_WIDE: Final = {"messages": "9" * 10, "next_id": "9" * 76, "branch": "other"}


def _answer(call: Call, document: str, view: ConversationView, text: str, metadata: dict[str, str]) -> JsonObject:
    value: JsonObject = budget.clean(
        {
            "id": document,
            "title": view.title,
            "text": text,
            "url": page_url(call.settings.public_url, view.id),
            "metadata": {**_metadata(view), **metadata},
        }
    )
    return value


SEARCH_DOCUMENTS: Final = Tool(
    name="search",
    title="Search (deep research)",
    description="Searches stored conversations for documents to cite; fetch reads one.",
    scope=READ,
    input_schema=fields.arguments(
        ("query",),
        query=fields.text("What to look for.", minLength=1, maxLength=limits.MAX_SEARCH_QUERY_CHARS),
    ),
    output_schema=result(
        {"results": results(result({"id": TEXT, "title": TEXT, "url": TEXT})), "unavailable": TEXTS},
        optional=("unavailable",),
    ),
    run=_search,
    max_response_bytes=_BUDGET,
)

FETCH_DOCUMENT: Final = Tool(
    name="fetch",
    title="Fetch (deep research)",
    description="Reads a document that search found. metadata.next_id, where there is one, goes on.",
    scope=READ,
    input_schema=fields.arguments(
        ("id",), id=fields.text("id of a result of search.", pattern=fields.DOCUMENT_PATTERN)
    ),
    output_schema=result(
        {
            "id": TEXT,
            "title": TEXT,
            "text": TEXT,
            "url": TEXT,
            "metadata": {"type": "object", "additionalProperties": TEXT},
        }
    ),
    run=_fetch,
    max_response_bytes=_BUDGET,
)
