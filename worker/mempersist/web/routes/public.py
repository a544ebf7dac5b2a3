"""What anybody may ask: is it alive, is it ready, and where the MCP endpoint is."""

from __future__ import annotations

import html
from typing import Final

from mempersist.errors import Code, MempersistError
from mempersist.ports import CatalogError
from mempersist.web.http import Response, error_response, json_response
from mempersist.web.router import Context, Route

_PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>MemPersist</title>
<h1>MemPersist</h1>
<p>This is a memory server for AI conversations. Point an MCP client at <code>{mcp}</code> (Streamable HTTP) with the
owner's bearer token.</p>
"""
_PAGE_POLICY: Final = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"


def _mcp_url(context: Context) -> str:
    return f"{context.service.settings.public_url}/mcp"


async def front_page(context: Context) -> Response:
    """A page for a browser, JSON for everybody else."""
    if "text/html" in context.request.headers.get("accept", ""):
        page = _PAGE.format(mcp=html.escape(_mcp_url(context)))
        headers = {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": _PAGE_POLICY}
        return Response(200, headers, page.encode())
    return json_response(200, {"name": "mempersist", "mcp": _mcp_url(context), "health": "/healthz"})


async def misdirected(context: Context) -> Response:
    """Some clients post MCP messages to the root: tell them where they belong."""
    message = f"the MCP endpoint is {_mcp_url(context)}; send your messages there"
    error = MempersistError(Code.VALIDATION, message, status=405)
    return error_response(error, {"Allow": "GET, HEAD"})


async def alive(_: Context) -> Response:
    return json_response(200, {"status": "ok"})


async def ready(context: Context) -> Response:
    """200 when the service could begin and the catalog answers, else 503."""
    if context.service.trouble is not None:
        return error_response(context.service.trouble)
    try:
        await context.service.ports.catalog.query("SELECT 1 AS one")
    except CatalogError:
        return json_response(503, {"status": "unavailable", "catalog": "unavailable"})
    return json_response(200, {"status": "ok", "catalog": "ok"})


ROUTES: Final = (
    Route("GET", "/", front_page),
    Route("POST", "/", misdirected),
    Route("GET", "/healthz", alive),
    Route("GET", "/readyz", ready),
)
