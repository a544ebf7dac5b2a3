"""HTTP as the service sees it: a request and a response as values, whatever server or runtime carries them."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import parse_qsl, unquote

from mempersist import nesting
from mempersist.errors import Code, MempersistError, validation
from mempersist.mcp.budget import encode

JSON_TYPE: Final = "application/json; charset=utf-8"
_MAX_QUERY_FIELDS: Final = 64


class ClientDisconnected(Exception):
    """The client went away before its request was read or its answer was sent. Nobody is left to answer."""


async def _no_body() -> AsyncIterator[bytes]:
    nothing: tuple[bytes, ...] = ()
    for chunk in nothing:
        yield chunk


@dataclass(frozen=True, slots=True)
class Request:
    """A request whose body has not been read yet.

    :param method: upper case.
    :param path: as sent, percent-encoded, without the query.
    :param query: as sent, without the question mark.
    :param headers: names in lower case; a repeated header is joined by a comma.
    :param body: the body's chunks, to be read once. Raises :class:`ClientDisconnected` where it breaks off.
    :param client: address of the peer, where the host knows it.
    """

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: AsyncIterable[bytes] = field(default_factory=_no_body)
    client: str | None = None

    @property
    def content_length(self) -> int | None:
        """Bytes of the body as declared; None where they are not."""
        declared = self.headers.get("content-length", "")
        return int(declared) if declared.isascii() and declared.isdigit() else None


@dataclass(frozen=True, slots=True)
class Response:
    """An answer; ``body`` is either whole or a stream of chunks.

    ``later`` is run by the host once the answer is out; it does not raise for what a port could not do.
    For the log only: ``code``, the error code; ``defect``, what a store or the service itself did wrong.
    """

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    code: str | None = None
    defect: str | None = None
    later: Callable[[], Awaitable[None]] | None = None


def segments_of(path: str) -> tuple[str, ...]:
    """The decoded segments of a path: a slash inside a segment (``%2F``) does not split it."""
    return tuple(unquote(segment) for segment in path.split("/")[1:])


def json_response(status: int, value: Any, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, {"Content-Type": JSON_TYPE, **(headers or {})}, encode(value))


def error_response(error: MempersistError, headers: Mapping[str, str] | None = None) -> Response:
    """``{"error": {"code", "message", …}}`` with the error's own status."""
    answer = json_response(error.status, {"error": error.as_json()}, headers)
    return Response(answer.status, answer.headers, answer.body, error.code.value)


def query_values(query: str, *, single: Mapping[str, str], repeated: Mapping[str, str]) -> dict[str, Any]:
    """Arguments out of a query string. Both maps go from a parameter's name to the argument's.

    :raises MempersistError: VALIDATION for a parameter that is unknown, or given twice though it is single.
    """
    values: dict[str, Any] = {}
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_QUERY_FIELDS, errors="strict")
    except ValueError:
        raise validation("query", f"must be UTF-8 and hold at most {_MAX_QUERY_FIELDS} parameters") from None
    for name, value in pairs:
        if name in repeated:
            values.setdefault(repeated[name], []).append(value)
        elif name not in single:
            known = ", ".join((*single, *repeated)) or "none"
            raise validation("query", f"unknown parameter {name[:40]!r}; this route takes: {known}")
        elif single[name] in values:
            raise validation(name, "is given more than once; give it once")
        else:
            values[single[name]] = value
    return values


async def read_body(request: Request, limit: int) -> bytes:
    """The whole body, if it has at most ``limit`` bytes; a larger one is refused without being read on.

    :raises MempersistError: REQUEST_TOO_LARGE.
    """
    declared = request.content_length
    if declared is not None and declared > limit:
        raise too_large(declared, limit)
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.body:
        size += len(chunk)
        if size > limit:
            raise too_large(max(size, declared or 0), limit)
        chunks.append(chunk)
    return b"".join(chunks)


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in a body. :raises MempersistError: VALIDATION for anything else, NaN and bad UTF-8 included."""
    try:
        value: Any = nesting.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except ValueError:
        raise validation("body", "is not JSON in UTF-8, or nested too deep") from None
    if not isinstance(value, dict):
        raise validation("body", "must be a JSON object")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(name)


def too_large(size: int, limit: int) -> MempersistError:
    """``size`` is what is known of the request's bytes: the declared length, or what had come when it was refused."""
    return MempersistError(
        Code.REQUEST_TOO_LARGE,
        f"request has {size} bytes or more; at most {limit} are accepted. Send less at a time.",
        details={"request_bytes": size, "max_request_bytes": limit},
    )
