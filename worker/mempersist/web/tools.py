"""Tools behind HTTP routes: the same checks, the same work and the same answers as over MCP."""

from __future__ import annotations

from typing import Any

from mempersist.mcp import calls
from mempersist.mcp.endpoint import MAX_BODY_BYTES
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool
from mempersist.web.http import Response, json_object, json_response, query_values, read_body
from mempersist.web.router import Context

# Parameters that have another name in a query string than the tool's argument.
_SHORT_NAMES = {"query": "q"}


async def answer(context: Context, tool: Tool, arguments: dict[str, Any], *, status: int = 200) -> Response:
    """What the tool answers. :raises MempersistError: what it refuses."""
    return json_response(status, await calls.invoke(tool, arguments, context.caller, context.service, TOOLS))


def parameter_of(argument: str) -> str:
    """The query parameter of an argument."""
    return _SHORT_NAMES.get(argument, argument)


def query_arguments(context: Context, tool: Tool) -> dict[str, Any]:
    """Arguments of a reading tool out of the query string: those of its schema, a list by repeating the parameter.

    :raises MempersistError: VALIDATION for a parameter that the tool does not have.
    """
    single: dict[str, str] = {}
    repeated: dict[str, str] = {}
    for name, schema in tool.input_schema["properties"].items():
        parameters = repeated if schema["type"] == "array" else single
        parameters[parameter_of(name)] = name
    return query_values(context.request.query, single=single, repeated=repeated)


async def body_arguments(context: Context, tool: Tool) -> dict[str, Any]:
    """Arguments of a writing tool out of the body, within the tool's own bound.

    :raises MempersistError: VALIDATION, or REQUEST_TOO_LARGE with how many items would fit.
    """
    body = await read_body(context.request, MAX_BODY_BYTES)
    arguments = json_object(body)
    calls.within_request_budget(tool, arguments, len(body))
    return arguments
