"""What the account holds: its namespaces and totals."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.catalog.conversations import list_namespaces, stats
from mempersist.mcp import budget, fields
from mempersist.mcp.fields import COUNT, TEXT, TRUTH, result, results
from mempersist.mcp.tool import Call, Tool

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES


async def _list_namespaces(call: Call) -> JsonObject:
    rows = await list_namespaces(call.ports, call.account)
    listed = [{"namespace": row.namespace, "conversations": row.conversations, "default": row.default} for row in rows]
    return _fitted({"namespaces": budget.clean(listed)})


async def _stats(call: Call) -> JsonObject:
    found = await stats(call.ports, call.account)
    listed = [
        {
            "namespace": row.namespace,
            "conversations": row.conversations,
            "messages": row.messages,
            "default": row.default,
        }
        for row in found.namespaces
    ]
    return _fitted(
        {
            "namespaces": budget.clean(listed),
            "totals": {"conversations": found.conversations, "messages": found.messages},
            "indexing": {"pending": found.pending, "indexed": found.indexed},
        }
    )


def _fitted(answer: JsonObject) -> JsonObject:
    """The answer with as many namespaces as fit, and a count of the others."""
    rows = answer["namespaces"]
    fits = budget.how_many_fit(
        rows, _BUDGET - budget.size({**answer, "namespaces": [], "namespacesNotListed": len(rows)})
    )
    if fits == len(rows):
        return answer
    return {**answer, "namespaces": rows[:fits], "namespacesNotListed": len(rows) - fits}


LIST_NAMESPACES: Final = Tool(
    name="memory_list_namespaces",
    title="List namespaces",
    description="Lists the namespaces. Writes without a namespace go to the default one.",
    scope=READ,
    input_schema=fields.arguments(),
    output_schema=result(
        {
            "namespaces": results(result({"namespace": TEXT, "conversations": COUNT, "default": TRUTH})),
            "namespacesNotListed": COUNT,
        },
        optional=("namespacesNotListed",),
    ),
    run=_list_namespaces,
    max_response_bytes=_BUDGET,
)

STATS: Final = Tool(
    name="memory_stats",
    title="Count memories",
    description=("Counts conversations and messages, in all and by namespace, and how many wait for the search index."),
    scope=READ,
    input_schema=fields.arguments(),
    output_schema=result(
        {
            "namespaces": results(
                result({"namespace": TEXT, "conversations": COUNT, "messages": COUNT, "default": TRUTH})
            ),
            "namespacesNotListed": COUNT,
            "totals": result({"conversations": COUNT, "messages": COUNT}),
            "indexing": result({"pending": COUNT, "indexed": COUNT}),
        },
        optional=("namespacesNotListed",),
    ),
    run=_stats,
    max_response_bytes=_BUDGET,
)
