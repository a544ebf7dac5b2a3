"""The service as an ASGI 3 application: bodies stream in under back-pressure, a client that leaves is noticed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any

from mempersist.service import Service
from mempersist.web.app import respond
from mempersist.web.http import ClientDisconnected, Request, Response

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


def asgi_app(service: Service) -> AsgiApp:
    """An application that answers ``http`` scopes with the service and acknowledges ``lifespan``."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await _http(service, scope, receive, send)
        else:
            raise ValueError(f"scope type {scope['type']!r} is not served")

    return app


async def _lifespan(receive: Receive, send: Send) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return


async def _http(service: Service, scope: Scope, receive: Receive, send: Send) -> None:
    try:
        response = await respond(service, _request(scope, receive))
        await _send(response, send)
        if response.later is not None:
            await response.later()
    except (ClientDisconnected, OSError):
        return


def _request(scope: Scope, receive: Receive) -> Request:
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    client = scope.get("client")
    return Request(
        method=scope["method"].upper(),
        path=scope["raw_path"].decode("utf-8", "replace"),
        query=scope.get("query_string", b"").decode("utf-8", "replace"),
        headers=headers,
        body=_body(receive),
        client=client[0] if client else None,
    )


async def _body(receive: Receive) -> AsyncIterator[bytes]:
    """The next chunk is asked for only when the last one has been used, so that a slow store slows the sender."""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk = message.get("body", b"")
        if chunk:
            yield chunk
        if not message.get("more_body", False):
            return


async def _send(response: Response, send: Send) -> None:
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in response.headers.items()]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    if isinstance(response.body, bytes):
        await send({"type": "http.response.body", "body": response.body})
        return
    async for chunk in response.body:
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": b""})
