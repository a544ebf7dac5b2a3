"""Finding passages: short references, best first."""

from __future__ import annotations

from typing import Final

from mempersist import limits, names
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.mcp import budget, fields
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, TEXTS, TRUTH, result, results
from mempersist.mcp.tool import Call, Tool
from mempersist.search.query import Hit, search

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES


async def _search(call: Call) -> JsonObject:
    namespace = call.get("namespace")
    found = await search(
        call.ports,
        call.account,
        query=call.arguments["query"],
        limit=call.arguments["limit"],
        namespace=None if namespace is None else names.namespace(namespace),
        tags=names.tags(call.get("tags") or ()),
        tag_mode=call.arguments["tag_mode"],
    )
    hits = [budget.clean(_hit(hit)) for hit in found.results]
    answer: JsonObject = {
        "results": [],
        "degraded": found.degraded,
        "unavailable": list(found.unavailable),
        "resultsNotListed": len(hits),
    }
    fits = budget.how_many_fit(hits, _BUDGET - budget.size(answer))
    answer["results"] = hits[:fits]
    answer["resultsNotListed"] = len(hits) - fits
    return answer if fits < len(hits) else {name: answer[name] for name in ("results", "degraded", "unavailable")}


def _hit(hit: Hit) -> JsonObject:
    return {
        "conversationId": hit.conversation_id,
        "revisionId": hit.revision_id,
        "chunkId": hit.chunk_id,
        "title": hit.title,
        "snippet": hit.snippet,
        "timestamp": hit.timestamp,
        "namespace": hit.namespace,
        "tags": list(hit.tags),
        "score": round(hit.score, 6),
        "sources": list(hit.sources),
    }


SEARCH: Final = Tool(
    name="memory_search",
    title="Search memories",
    description=(
        "Finds passages of stored conversations by words and by meaning, best first. Any text will do: a question, a"
        " name, code, a log line. memory_get_context reads around a chunkId. degraded: a channel in unavailable did"
        " not answer."
    ),
    scope=READ,
    input_schema=fields.arguments(
        ("query",),
        query=fields.text("What to look for.", minLength=1, maxLength=limits.MAX_SEARCH_QUERY_CHARS),
        limit=fields.integer("Most results.", 1, limits.MAX_SEARCH_RESULTS, limits.DEFAULT_SEARCH_RESULTS),
        namespace=fields.namespace("Only this one; all when absent."),
        tags=fields.tags("Only with these tags."),
        tag_mode=fields.tag_mode(),
    ),
    output_schema=result(
        {
            "results": results(
                result(
                    {
                        "conversationId": TEXT,
                        "revisionId": TEXT,
                        "chunkId": TEXT,
                        "title": TEXT,
                        "snippet": TEXT,
                        "timestamp": TEXT_OR_NULL,
                        "namespace": TEXT,
                        "tags": TEXTS,
                        "score": {"type": "number"},
                        "sources": TEXTS,
                    }
                )
            ),
            "degraded": TRUTH,
            "unavailable": TEXTS,
            "resultsNotListed": COUNT,
        },
        optional=("resultsNotListed",),
    ),
    run=_search,
    max_response_bytes=_BUDGET,
)
