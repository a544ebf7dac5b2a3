"""Memories over HTTP: what the tools of the same kind take and answer, at addresses of their own."""

from __future__ import annotations

from typing import Any, Final

from mempersist.archive.read import read_page
from mempersist.errors import validation
from mempersist.mcp import calls, messages
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool
from mempersist.mcp.tools.account import LIST_NAMESPACES, STATS
from mempersist.mcp.tools.context import GET_CONTEXT
from mempersist.mcp.tools.conversations import GET_CONVERSATION, LIST_CONVERSATIONS
from mempersist.mcp.tools.search import SEARCH
from mempersist.mcp.tools.writes import APPEND, STORE
from mempersist.web.http import Response, json_response
from mempersist.web.router import Context, Handler, Route
from mempersist.web.tools import answer, body_arguments, query_arguments


def _reading(tool: Tool) -> Handler:
    """A route whose query string holds the tool's arguments."""

    async def handler(context: Context) -> Response:
        return await answer(context, tool, query_arguments(context, tool))

    return handler


async def read_conversation(context: Context) -> Response:
    """A page of a conversation. A message too large for any tool's answer comes whole here."""
    arguments = _with_path(query_arguments(context, GET_CONVERSATION), "conversation_id", context)
    page = await calls.invoke(GET_CONVERSATION, arguments, context.caller, context.service, TOOLS)
    mark = page.pop("oversizedMessage", None)
    if mark is not None:
        found = await read_page(
            context.service.ports,
            context.account,
            mark["conversationId"],
            offset=mark["offset"],
            limit=1,
            branch=arguments.get("branch") or "active",
            revision_id=mark["revisionId"],
        )
        render = messages.renderer(arguments.get("format") or "canonical", mark["conversationId"])
        page["messages"] = [render(view.node) for view in found.messages]
    return json_response(200, page)


async def read_context(context: Context) -> Response:
    arguments = _with_path(query_arguments(context, GET_CONTEXT), "chunk_id", context)
    return await answer(context, GET_CONTEXT, arguments)


async def store(context: Context) -> Response:
    return await answer(context, STORE, await body_arguments(context, STORE), status=201)


async def append(context: Context) -> Response:
    arguments = _with_path(await body_arguments(context, APPEND), "conversation_id", context)
    return await answer(context, APPEND, arguments)


def _with_path(arguments: dict[str, Any], name: str, context: Context) -> dict[str, Any]:
    """``arguments`` with the one that the path holds. :raises MempersistError: VALIDATION if it is given twice."""
    if name in arguments:
        raise validation(name, "is in the path already; leave it out")
    return {**arguments, name: context.params["id"]}


ROUTES: Final = (
    Route("GET", "/api/search", _reading(SEARCH)),
    Route("GET", "/api/conversations", _reading(LIST_CONVERSATIONS)),
    Route("GET", "/api/conversations/:id", read_conversation),
    Route("POST", "/api/conversations/:id/append", append),
    Route("GET", "/api/chunks/:id/context", read_context),
    Route("POST", "/api/memories", store),
    Route("GET", "/api/namespaces", _reading(LIST_NAMESPACES)),
    Route("GET", "/api/stats", _reading(STATS)),
)
