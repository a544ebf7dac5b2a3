"""The service's routes, one module per family, and the document that describes them all."""

from __future__ import annotations

from typing import Final

from mempersist.web import openapi
from mempersist.web.http import Response, json_response
from mempersist.web.router import Context, Route
from mempersist.web.routes import admin, imports, mcp, memories, public, sign_in, tokens


async def describe(context: Context) -> Response:
    """The HTTP API as an OpenAPI 3.1 document."""
    return json_response(200, openapi.document(ROUTES, context.service.settings.public_url))


ROUTES: Final[tuple[Route, ...]] = (
    *mcp.ROUTES,
    *memories.ROUTES,
    *imports.ROUTES,
    *admin.ROUTES,
    *sign_in.ROUTES,
    *tokens.ROUTES,
    *public.ROUTES,
    Route("GET", "/openapi.json", describe),
)
