"""The MCP endpoint's HTTP side: reads the body under a cap and hands everything to the protocol."""

from __future__ import annotations

from typing import Final

from mempersist.limits import MAX_INLINE_JSON_WRITE_BYTES
from mempersist.mcp import endpoint
from mempersist.web.http import Response, read_body
from mempersist.web.router import Context, Route

MAX_BODY_BYTES: Final = 4 * MAX_INLINE_JSON_WRITE_BYTES
"""More than a tool call may have, so that one which is too large is refused in the protocol's own words."""


async def mcp(context: Context) -> Response:
    """Every method: the protocol says which it takes. An unauthenticated caller's body is not read."""
    request = context.request
    wanted = request.method == "POST" and context.principal is not None
    body = await read_body(request, MAX_BODY_BYTES) if wanted else b""
    answer = await endpoint.handle(request.method, request.headers, body, context.principal, context.service)
    return Response(answer.status, answer.headers, answer.body)


ROUTES: Final = (Route("*", "/mcp", mcp),)
