"""Requests and answers of the emulator, and Cloudflare's envelope around them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]


class ApiError(Exception):
    """A refusal: the HTTP status, Cloudflare's code and its words."""

    def __init__(self, status: int, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.headers = status, code, message, headers or {}


@dataclass(frozen=True, slots=True)
class Request:
    """``path`` and ``query`` are percent-encoded as they were sent; header names are in lower case."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def arguments(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def json(self, code: int = 7400) -> Any:
        """The body. :raises ApiError: with ``code`` for one that is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            raise ApiError(400, code, "The request body is not valid JSON") from None

    def json_object(self, code: int = 7400) -> dict[str, Any]:
        value = self.json(code)
        if not isinstance(value, dict):
            raise ApiError(400, code, "The request body must be an object")
        return value


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Result:
    """What stands under ``result`` and ``result_info``."""

    value: Any
    info: Mapping[str, Any] | None = None


def succeeded(result: Result) -> Response:
    content = {"success": True, "errors": [], "messages": [], "result": result.value}
    if result.info is not None:
        content["result_info"] = dict(result.info)
    return _json(200, content, {})


def failed(error: ApiError) -> Response:
    errors = [{"code": error.code, "message": error.message}]
    content = {"success": False, "errors": errors, "messages": [], "result": None}
    return _json(error.status, content, error.headers)


def _json(status: int, content: Any, headers: Mapping[str, str]) -> Response:
    return Response(status, json.dumps(content).encode(), {"content-type": "application/json", **headers})


def page_of(items: Sequence[Any], request: Request, *, per_page: int, most: int) -> Result:
    """The page that ``page`` and ``per_page`` ask for."""
    number, size = (_positive(request, name, default) for name, default in (("page", 1), ("per_page", per_page)))
    size = min(size, most)
    shown = list(items[(number - 1) * size : number * size])
    return Result(shown, {"page": number, "per_page": size, "count": len(shown), "total_count": len(items)})


def _positive(request: Request, name: str, default: int) -> int:
    text = request.arguments.get(name, str(default))
    if not text.isdecimal() or not int(text):
        raise ApiError(400, 7400, f"{name} must be a positive integer")
    return int(text)


async def read(scope: Mapping[str, Any], receive: Receive) -> Request:
    """The whole request."""
    chunks = []
    while True:
        message = await receive()
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            break
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]},{value}" if name in headers else value
    raw_path = scope["raw_path"].partition(b"?")[0].decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    return Request(scope["method"], raw_path, query, headers, b"".join(chunks))


async def write(response: Response, send: Send) -> None:
    headers = {"content-length": str(len(response.body)), **response.headers}
    raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": raw})
    await send({"type": "http.response.body", "body": response.body})
