"""Every door of the service behind one function: a request goes in, a response comes out.

Order: authentication from the headers, then the route, then its handler, which alone reads the body. Every answer says
its request id; every request leaves one log line of ids, counts and codes, never of content.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from mempersist import logs
from mempersist.defects import place_of, refusal
from mempersist.errors import Code, MempersistError
from mempersist.ports import CatalogError
from mempersist.service import Service
from mempersist.web.auth import authenticate, unauthenticated
from mempersist.web.http import ClientDisconnected, Request, Response, error_response, segments_of
from mempersist.web.router import Context, Match, find
from mempersist.web.routes import ROUTES

_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_CLIENT_WENT_AWAY: Final = Response(499)


async def respond(service: Service, request: Request) -> Response:
    """Answer one request. Never raises for what a caller sent or a store could not do.

    :raises ClientDisconnected: when the client went away while its body was read.
    """
    started = service.ports.clock.now_ms()
    request_id = service.ports.ids.uuid()
    refused = None
    try:
        principal = await authenticate(service, request.headers)
    except CatalogError as error:
        principal, refused = None, _failed(error, request_id)
    if refused is not None:
        route, response = "-", refused
    elif segments_of(request.path)[:1] == ("api",) and principal is None:
        route, response = "/api/", unauthenticated(request.headers)
    else:
        match = find(ROUTES, request)
        if isinstance(match, Match):
            route = match.route.pattern
            try:
                if service.trouble is not None and principal is not None:
                    response = error_response(service.trouble)
                else:
                    response = await _handled(match, Context(service, request, principal, match.params), request_id)
            except ClientDisconnected:
                _log_line(service, request, request_id, started, route, _CLIENT_WENT_AWAY)
                raise
        else:
            route, response = "-", match
    _log_line(service, request, request_id, started, route, response)
    headers = {**_ALWAYS, **response.headers, "X-Request-Id": request_id}
    if isinstance(response.body, bytes):
        headers["Content-Length"] = str(len(response.body))
    if request.method == "HEAD":
        return Response(response.status, headers)
    return replace(response, headers=headers)


async def _handled(match: Match, context: Context, request_id: str) -> Response:
    try:
        return await match.route.handler(context)
    except ClientDisconnected:
        raise
    except MempersistError as error:
        return error_response(error)
    except Exception as error:  # the last line of defence: the caller gets an id, the log gets the place
        return _failed(error, request_id)


def _failed(error: Exception, request_id: str) -> Response:
    told = refusal(error) or MempersistError(
        Code.RETRYABLE_INFRASTRUCTURE, f"the request failed; the log has it under {request_id}", status=500
    )
    return replace(error_response(told), defect=place_of(error))


def _log_line(
    service: Service, request: Request, request_id: str, started: int, route: str, response: Response
) -> None:
    logs.info(
        "request",
        request_id=request_id,
        method=request.method[:16],
        route=route,
        status=response.status,
        duration_ms=service.ports.clock.now_ms() - started,
        request_bytes=request.content_length,
        response_bytes=len(response.body) if isinstance(response.body, bytes) else None,
        code=response.code,
        defect=response.defect,
    )
