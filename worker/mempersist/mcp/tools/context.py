"""The messages around a passage that a search found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.mcp import budget, fields, messages
from mempersist.mcp.fields import COUNT, TEXT, result, results
from mempersist.mcp.tool import Call, Tool
from mempersist.search.context import Context, get_context
from mempersist.text import printable

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES


async def _get_context(call: Call) -> JsonObject:
    context = await get_context(
        call.ports,
        call.account,
        chunk_id=call.arguments["chunk_id"],
        before=call.arguments["before"],
        after=call.arguments["after"],
    )
    render = messages.renderer(call.arguments["format"], context.conversation_id)
    rendered = [render(view.node) for view in context.messages]
    sizes = [budget.size(message) + 1 for message in rendered]
    matches = _matches(context)
    matched_ids = {match["sourceNodeId"] for match in matches}
    matched = [index for index, message in enumerate(rendered) if message["sourceNodeId"] in matched_ids]

    room = _BUDGET - budget.size(_answer(context, matches, [], [], len(rendered)))
    if sum(sizes[index] for index in matched) > room:
        room -= budget.size(matches)
    chosen = _nearest(sizes, matched, room)
    shown = [rendered[index] for index in chosen]
    shown_ids = {message["sourceNodeId"] for message in shown}
    excerpts = [match for match in matches if match["sourceNodeId"] not in shown_ids]
    return _answer(context, matches, shown, excerpts, len(rendered) - len(chosen))


def _matches(context: Context) -> list[JsonObject]:
    """What matched: node, text, and its range in the node's text as it is answered, without control characters."""
    texts = {view.node.source_node_id: view.node.text for view in context.messages}
    found = []
    for match in context.matched_ranges:
        text = texts.get(match.source_node_id, "")
        start = len(printable(text[: match.char_start]))
        inside = printable(text[match.char_start : match.char_end])
        found.append(
            {
                "sourceNodeId": printable(match.source_node_id),
                "charStart": start,
                "charEnd": start + len(inside),
                "text": inside,
            }
        )
    return found


def _answer(
    context: Context, matches: Sequence[JsonObject], shown: list[JsonObject], excerpts: list[JsonObject], left_out: int
) -> JsonObject:
    answer: JsonObject = {
        "chunkId": context.chunk_id,
        "conversationId": context.conversation_id,
        "revisionId": context.revision_id,
        "messages": shown,
        "matchedRanges": [{key: match[key] for key in ("sourceNodeId", "charStart", "charEnd")} for match in matches],
    }
    if left_out:
        answer["messagesNotListed"] = left_out
    if excerpts:
        answer["excerpts"] = excerpts
    return answer


def _nearest(sizes: Sequence[int], matched: Sequence[int], room: int) -> list[int]:
    """Which messages are shown, in order: those that match and what is between them, then outwards on both sides as
    long as they fit without a gap."""
    first, last = (matched[0], matched[-1]) if matched else (0, -1)
    between = [index for index in range(first, last + 1) if index not in matched]
    chosen: list[int] = []
    for index in (*matched, *between):
        if sizes[index] <= room:
            chosen.append(index)
            room -= sizes[index]
    sides = [list(range(first - 1, -1, -1)), list(range(last + 1, len(sizes)))]
    while any(sides):
        for side in sides:
            if not side:
                continue
            index = side.pop(0)
            if sizes[index] <= room:
                chosen.append(index)
                room -= sizes[index]
            else:
                side.clear()
    return sorted(chosen)


_RANGE: Final = {"sourceNodeId": TEXT, "charStart": COUNT, "charEnd": COUNT}

GET_CONTEXT: Final = Tool(
    name="memory_get_context",
    title="Read around a search result",
    description=(
        "Reads the whole messages around a search result, and which characters matched. Where not all fit, the"
        " nearest are kept; excerpts has the matched text of messages too large to show."
    ),
    scope=READ,
    input_schema=fields.arguments(
        ("chunk_id",),
        chunk_id=fields.text("chunkId of a search result.", pattern=fields.HASH_PATTERN),
        before=fields.integer(
            "Messages before the match.", 0, limits.MAX_CONTEXT_MESSAGES, limits.DEFAULT_CONTEXT_MESSAGES
        ),
        after=fields.integer(
            "Messages after the match.", 0, limits.MAX_CONTEXT_MESSAGES, limits.DEFAULT_CONTEXT_MESSAGES
        ),
        format=fields.message_format(),
    ),
    output_schema=result(
        {
            "chunkId": TEXT,
            "conversationId": TEXT,
            "revisionId": TEXT,
            "messages": results(messages.MESSAGE),
            "matchedRanges": results(result(_RANGE)),
            "messagesNotListed": COUNT,
            "excerpts": results(result({**_RANGE, "text": TEXT})),
        },
        optional=("messagesNotListed", "excerpts"),
    ),
    run=_get_context,
    max_response_bytes=_BUDGET,
)
