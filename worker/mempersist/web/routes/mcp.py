"""The MCP endpoint's HTTP side: reads the body under a cap and hands everything to the protocol."""

from __future__ import annotations

from typing import Final

from mempersist.mcp import endpoint
from mempersist.web.http import Response, read_body
from mempersist.web.router import Context, Route


async def mcp(context: Context) -> Response:
    """Every method: the protocol says which it takes. An unauthenticated caller's body is not read."""
    request = context.request
    wanted = request.method == "POST" and context.principal is not None
    body = await read_body(request, endpoint.MAX_BODY_BYTES) if wanted else b""
    answer = await endpoint.handle(request.method, request.headers, body, context.principal, context.service)
    return Response(answer.status, answer.headers, answer.body, answer.code, answer.defect)


# Clients send either form, and a redirect from one to the other would lose their Authorization header.
ROUTES: Final = (Route("*", "/mcp", mcp), Route("*", "/mcp/", mcp))
