"""The paths of the REST API: which handler answers, and which permission it asks for."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from tests.emulator.auth import Access, Token
from tests.emulator.wire import ApiError, Request, Result

Handler = Callable[..., Awaitable[Result]]


@dataclass(frozen=True, slots=True)
class Route:
    """``path`` below the account, such as ``/queues/{queue_id}``; the handler takes its names after the account."""

    method: str
    path: str
    product: str
    access: Access
    handler: Handler

    def match(self, method: str, path: str) -> dict[str, str] | None:
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path)
        found = re.fullmatch(pattern, path) if method == self.method else None
        return {name: unquote(value) for name, value in found.groupdict().items()} if found else None


@dataclass(frozen=True, slots=True)
class Call:
    """What a handler is given beside the names in its path."""

    account: str
    request: Request
    token: Token


def find(routes: Iterable[Route], method: str, path: str) -> tuple[Route, Mapping[str, str]]:
    """:raises ApiError: 7003 for a path that nothing answers."""
    for route in routes:
        names = route.match(method, path)
        if names is not None:
            return route, names
    raise ApiError(404, 7003, "Could not route to the requested path, perhaps your object identifier is invalid?")
