"""What the catalog alone can tell of known conversations: their history, and which one has a title."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mempersist import limits, names
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.catalog.revisions import list_revisions
from mempersist.catalog.titles import TitleMatch, TitleQuery, find_by_title
from mempersist.concurrency import gather
from mempersist.mcp import budget, fields
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, TRUTH, result, results
from mempersist.mcp.tool import Call, Tool

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES
_OBJECT: Final[JsonObject] = {"type": "object"}

# ------------------------------------------------------------------ memory_list_revisions


async def _list_revisions(call: Call) -> JsonObject:
    conversation_id = call.arguments["conversation_id"]
    history = await list_revisions(
        call.ports, call.account, conversation_id, limit=call.arguments["limit"], cursor=call.get("cursor")
    )
    return {
        "conversation_id": conversation_id,
        "current_revision_id": history.current_revision_id,
        "revisions": [
            {
                "revision_id": row.id,
                "created_at": row.created_at,
                "node_count": row.node_count,
                "content_hash": row.content_hash,
                "current": row.id == history.current_revision_id,
            }
            for row in history.revisions
        ],
        "next_cursor": history.next_cursor,
    }


LIST_REVISIONS: Final = Tool(
    name="memory_list_revisions",
    title="List revisions",
    description=("Lists a conversation's revisions without messages, last committed first. next_cursor goes on."),
    scope=READ,
    input_schema=fields.arguments(
        ("conversation_id",),
        conversation_id=fields.conversation_id(),
        limit=fields.integer("Most revisions of a page.", 1, limits.MAX_LIST_ITEMS, limits.DEFAULT_LIST_ITEMS),
        cursor=fields.text("next_cursor of the page before.", minLength=1, maxLength=limits.MAX_CURSOR_BYTES),
    ),
    output_schema=result(
        {
            "conversation_id": TEXT,
            "current_revision_id": TEXT,
            "revisions": results(_OBJECT),
            "next_cursor": TEXT_OR_NULL,
        }
    ),
    run=_list_revisions,
    max_response_bytes=_BUDGET,
)

# ------------------------------------------------------------------ memory_resolve_conversations


async def _resolve(call: Call) -> JsonObject:
    queries = [title_query(request) for request in call.arguments["requests"]]
    found = await gather(find_by_title(call.ports, call.account, query) for query in queries)
    whole = _answer([[_whole(match) for match in matches] for matches, _ in found], [more for _, more in found])
    if budget.size(whole) <= _BUDGET:
        return whole
    return _short([[_ids(match) for match in matches] for matches, _ in found], [more for _, more in found])


def title_query(request: JsonObject) -> TitleQuery:
    """What a request looks for. :raises MempersistError: VALIDATION for a blank namespace or tag."""
    namespace: Any = request.get("namespace")
    return TitleQuery(
        request["title"],
        None if namespace is None else names.namespace(namespace),
        names.tags(request.get("tags") or ()),
        request["tag_mode"],
    )


def _whole(match: TitleMatch) -> JsonObject:
    value: JsonObject = budget.clean(
        {
            "conversation_id": match.conversation_id,
            "revision_id": match.revision_id,
            "title": match.title,
            "namespace": match.namespace,
            "tags": list(match.tags),
            "updated_at": match.updated_at,
        }
    )
    return value


def _ids(match: TitleMatch) -> JsonObject:
    return {"conversation_id": match.conversation_id, "revision_id": match.revision_id, "updated_at": match.updated_at}


def _answer(matches: Sequence[Sequence[JsonObject]], more: Sequence[bool]) -> JsonObject:
    return {
        "results": [
            {
                "request_index": index,
                "status": ("not_found", "ok", "ambiguous")[min(len(found), 2)],
                "matches": list(found),
                "has_more": further,
            }
            for index, (found, further) in enumerate(zip(matches, more, strict=True))
        ]
    }


def _short(matches: Sequence[Sequence[JsonObject]], more: Sequence[bool]) -> JsonObject:
    """As many matches of each request as fit if all may have the same number; two, at 20 requests, always do."""
    most = max(map(len, matches))
    while True:
        kept = [found[:most] for found in matches]
        further = [is_more or len(found) > most for found, is_more in zip(matches, more, strict=True)]
        answer = _answer(kept, further)
        if most <= 2 or budget.size(answer) <= _BUDGET:
            return answer
        most -= 1


RESOLVE_CONVERSATIONS: Final = Tool(
    name="memory_resolve_conversations",
    title="Find conversations by title",
    description=(
        "Looks up conversations by exact title, without search. A title of several is ambiguous and lists them by id."
    ),
    scope=READ,
    input_schema=fields.arguments(
        ("requests",),
        requests=fields.listing(
            "Titles to look up.",
            fields.arguments(
                ("title",),
                title=fields.text("The exact title.", minLength=1, maxLength=limits.MAX_TITLE_CHARS),
                namespace=fields.namespace("Only this namespace."),
                tags=fields.tags("Only with these tags."),
                tag_mode=fields.tag_mode(),
            ),
            minItems=1,
            maxItems=limits.MAX_BATCH_REQUESTS,
        ),
    ),
    output_schema=result(
        {
            "results": results(
                result({"request_index": COUNT, "status": TEXT, "matches": results(_OBJECT), "has_more": TRUTH})
            )
        }
    ),
    run=_resolve,
    max_request_bytes=limits.MAX_READ_BATCH_BYTES,
    max_response_bytes=_BUDGET,
    items="requests",
)
