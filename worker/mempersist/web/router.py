"""Routes as values, and how a request finds its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass

from mempersist.accounts.principal import Principal
from mempersist.errors import Code, MempersistError, not_found
from mempersist.mcp.tool import Tool
from mempersist.ports import AccountId
from mempersist.service import Service
from mempersist.web.http import Request, Response, error_response, segments_of


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler gets. ``params`` are the path's variables, decoded."""

    service: Service
    request: Request
    principal: Principal | None
    params: Mapping[str, str]

    @property
    def caller(self) -> Principal:
        """The authenticated caller. :raises MempersistError: AUTHENTICATION where there is none."""
        if self.principal is None:
            raise MempersistError(Code.AUTHENTICATION, "this route needs a bearer token")
        return self.principal

    @property
    def account(self) -> AccountId:
        return self.caller.account


Handler = Callable[[Context], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Route:
    """``pattern`` such as ``/api/imports/:id``: a segment with a colon takes any non-empty segment.

    :param page: a page or form for browsers, which the API's document leaves out.
    :param tool: whose arguments the route takes, GET in the query and others in the body, and whose answer it gives.
    :param path_argument: the tool's argument that is the path's ``:id``. :param status: of an answer that succeeds.
    """

    method: str
    pattern: str
    handler: Handler
    tool: Tool | None = None
    path_argument: str | None = None
    status: int = 200
    page: bool = False

    def match(self, segments: tuple[str, ...]) -> dict[str, str] | None:
        wanted = self.pattern.split("/")[1:]
        if len(wanted) != len(segments):
            return None
        params = {}
        for name, value in zip(wanted, segments, strict=True):
            if name.startswith(":"):
                if not value:
                    return None
                params[name[1:]] = value
            elif name != value:
                return None
        return params


@dataclass(frozen=True, slots=True)
class Match:
    route: Route
    params: Mapping[str, str]


def find(routes: Iterable[Route], request: Request) -> Match | Response:
    """The route of a request, or the answer where there is none: 404, or 405 with ``Allow``.

    HEAD is answered by GET's route. A route of the method ``*`` takes every method.
    """
    segments = segments_of(request.path)
    method = "GET" if request.method == "HEAD" else request.method
    allowed: list[str] = []
    for route in routes:
        params = route.match(segments)
        if params is None:
            continue
        if route.method in {method, "*"}:
            return Match(route, params)
        allowed.append(route.method)
    if not allowed:
        return error_response(not_found("route"))
    if "GET" in allowed:
        allowed.append("HEAD")
    allow = ", ".join(sorted(allowed))
    error = MempersistError(Code.VALIDATION, f"method: this route takes {allow}", status=405)
    return error_response(error, {"Allow": allow})
