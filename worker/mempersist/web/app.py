"""Every door of the service behind one function: a request goes in, a response comes out.

Order: route, then authentication from the headers, then the handler, which alone reads the body. Every answer says
its request id; every request leaves one log line of ids, counts and codes, never of content.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import Final

from mempersist.archive.codec import UnreadableObject
from mempersist.defects import place_of
from mempersist.errors import Code, MempersistError
from mempersist.ports import (
    CatalogError,
    IndexUnavailable,
    ObjectNotFound,
    PreconditionFailed,
    QueueUnavailable,
    StorageError,
)
from mempersist.service import Service
from mempersist.web.auth import authenticate, unauthenticated
from mempersist.web.http import ClientDisconnected, Request, Response, error_response, segments_of
from mempersist.web.router import Context, Match, find
from mempersist.web.routes import ROUTES

_log: Final = logging.getLogger("mempersist.request")
_ALWAYS: Final = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}
_CLIENT_WENT_AWAY: Final = 499


@dataclass(frozen=True, slots=True)
class _Answer:
    """A response with what only the log wants to know."""

    response: Response
    route: str
    defect: str | None = None


async def respond(service: Service, request: Request) -> Response:
    """Answer one request. Never raises for what a caller sent or a store could not do.

    :raises ClientDisconnected: when the client went away while its body was read.
    """
    started = service.ports.clock.now_ms()
    request_id = service.ports.ids.uuid()
    try:
        answer = await _answer(service, request, request_id)
    except ClientDisconnected:
        _log_line(service, request, request_id, started, _Answer(Response(_CLIENT_WENT_AWAY), "-"))
        raise
    _log_line(service, request, request_id, started, answer)
    response = answer.response
    headers = {**_ALWAYS, **response.headers, "X-Request-Id": request_id}
    if isinstance(response.body, bytes):
        headers["Content-Length"] = str(len(response.body))
    if request.method == "HEAD":
        return Response(response.status, headers, b"")
    return replace(response, headers=headers)


async def _answer(service: Service, request: Request, request_id: str) -> _Answer:
    principal = authenticate(service.settings, request.headers)
    if segments_of(request.path)[:1] == ("api",) and principal is None:
        return _Answer(unauthenticated(request.headers), "/api/")
    match = find(ROUTES, request)
    if not isinstance(match, Match):
        return _Answer(match, "-")
    context = Context(service, request, principal, match.params)
    try:
        return _Answer(await match.route.handler(context), match.route.pattern)
    except ClientDisconnected:
        raise
    except MempersistError as error:
        return _Answer(error_response(error), match.route.pattern)
    except (StorageError, ObjectNotFound, PreconditionFailed, UnreadableObject) as error:
        refused = MempersistError(Code.CANONICAL_STORAGE, "the object store could not answer; try again later")
        return _Answer(error_response(refused), match.route.pattern, type(error).__name__)
    except (CatalogError, QueueUnavailable, IndexUnavailable) as error:
        refused = MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the service is busy or out of order; try again later")
        return _Answer(error_response(refused), match.route.pattern, type(error).__name__)
    except Exception as error:  # the last line of defence: the caller gets an id, the log gets the place
        refused = MempersistError(
            Code.RETRYABLE_INFRASTRUCTURE, f"the request failed; the log has it under {request_id}", status=500
        )
        return _Answer(error_response(refused), match.route.pattern, place_of(error))


def _log_line(service: Service, request: Request, request_id: str, started: int, answer: _Answer) -> None:
    body = answer.response.body
    line = {
        "event": "request",
        "request_id": request_id,
        "method": request.method[:16],
        "route": answer.route,
        "status": answer.response.status,
        "duration_ms": service.ports.clock.now_ms() - started,
        "request_bytes": request.content_length,
        "response_bytes": len(body) if isinstance(body, bytes) else None,
        "code": answer.response.code,
        "defect": answer.defect,
    }
    _log.info(json.dumps({name: value for name, value in line.items() if value is not None}))
