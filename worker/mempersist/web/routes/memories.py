"""Memories over HTTP: what the tools of the same kind take and answer, at addresses of their own."""

from __future__ import annotations

from typing import Any, Final

from mempersist.archive.read import read_page
from mempersist.errors import validation
from mempersist.mcp import calls, messages
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool
from mempersist.mcp.tools.account import LIST_NAMESPACES, STATS
from mempersist.mcp.tools.batch import GET_CONVERSATIONS
from mempersist.mcp.tools.capabilities import GET_CAPABILITIES
from mempersist.mcp.tools.context import GET_CONTEXT
from mempersist.mcp.tools.conversations import GET_CONVERSATION, LIST_CONVERSATIONS
from mempersist.mcp.tools.deletions import DELETE_CONVERSATIONS, EMPTY_NAMESPACE
from mempersist.mcp.tools.lookups import LIST_REVISIONS, RESOLVE_CONVERSATIONS
from mempersist.mcp.tools.packs import BUILD_CONTEXT
from mempersist.mcp.tools.revising import REPLACE, RESTORE_REVISION, UPDATE_TAGS
from mempersist.mcp.tools.search import SEARCH
from mempersist.mcp.tools.writes import APPEND, STORE
from mempersist.web.http import Response, json_response
from mempersist.web.router import Context, Route
from mempersist.web.tools import answer, body_arguments, query_arguments

CONVERSATION: Final = "/api/conversations/:id"


def tool_route(method: str, pattern: str, tool: Tool, path_argument: str | None = None, *, status: int = 200) -> Route:
    """A route that takes a tool's arguments, GET in the query and others in the body, and gives its answer."""

    async def handler(context: Context) -> Response:
        arguments = await _arguments(context, method, tool, path_argument)
        return await answer(context, tool, arguments, status=status)

    return Route(method, pattern, handler, tool, path_argument, status)


async def _arguments(context: Context, method: str, tool: Tool, path_argument: str | None) -> dict[str, Any]:
    """:raises MempersistError: VALIDATION, also for an argument that is given in the path and again."""
    arguments = query_arguments(context, tool) if method == "GET" else await body_arguments(context, tool)
    if path_argument is None:
        return arguments
    if path_argument in arguments:
        raise validation(path_argument, "is in the path already; leave it out")
    return {**arguments, path_argument: context.params["id"]}


async def read_conversation(context: Context) -> Response:
    """A page of a conversation. A message too large for any tool's answer comes whole here."""
    arguments = await _arguments(context, "GET", GET_CONVERSATION, "conversation_id")
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


ROUTES: Final = (
    tool_route("GET", "/api/search", SEARCH),
    tool_route("GET", "/api/conversations", LIST_CONVERSATIONS),
    tool_route("POST", "/api/conversations/read", GET_CONVERSATIONS),
    tool_route("POST", "/api/conversations/resolve", RESOLVE_CONVERSATIONS),
    tool_route("POST", "/api/conversations/delete", DELETE_CONVERSATIONS),
    Route("GET", CONVERSATION, read_conversation, GET_CONVERSATION, "conversation_id"),
    tool_route("GET", f"{CONVERSATION}/revisions", LIST_REVISIONS, "conversation_id"),
    tool_route("POST", f"{CONVERSATION}/append", APPEND, "conversation_id"),
    tool_route("POST", f"{CONVERSATION}/replace", REPLACE, "conversation_id"),
    tool_route("POST", f"{CONVERSATION}/restore", RESTORE_REVISION, "conversation_id"),
    tool_route("POST", f"{CONVERSATION}/tags", UPDATE_TAGS, "conversation_id"),
    tool_route("GET", "/api/chunks/:id/context", GET_CONTEXT, "chunk_id"),
    tool_route("POST", "/api/context", BUILD_CONTEXT),
    tool_route("POST", "/api/memories", STORE, status=201),
    tool_route("GET", "/api/namespaces", LIST_NAMESPACES),
    tool_route("POST", "/api/namespaces/empty", EMPTY_NAMESPACE),
    tool_route("GET", "/api/stats", STATS),
    tool_route("GET", "/api/capabilities", GET_CAPABILITIES),
)
