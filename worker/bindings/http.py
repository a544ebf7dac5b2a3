"""Requests and responses of the runtime as the service has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import js
from pyodide.ffi import create_proxy, to_js

from bindings.bodies import RequestBody, chunks
from bindings.ffi import js_object
from mempersist.web.http import Request, Response


def request_of(found: Any) -> Request:
    """A JavaScript Request, its body unread."""
    url = urlsplit(found.url)
    headers = js.Object.fromEntries(found.headers).to_py()
    declared = headers.get("content-length", "")
    body = RequestBody(found.body, int(declared)) if declared.isascii() and declared.isdigit() else chunks(found.body)
    return Request(found.method, url.path, url.query, headers, body, headers.get("cf-connecting-ip"))


def response_of(response: Response) -> Any:
    """A JavaScript Response; a stream is read as fast as the client takes it."""
    options = js_object({"status": response.status, "headers": js_object(response.headers)})
    if isinstance(response.body, bytes):
        return js.Response.new(to_js(response.body) if response.body else None, options)
    return js.Response.new(_stream(response.body), options)


def _stream(body: AsyncIterator[bytes]) -> Any:
    async def pull(controller: Any) -> None:
        try:
            chunk = await anext(body)
        except StopAsyncIteration:
            controller.close()
            _destroy()
        else:
            controller.enqueue(to_js(chunk))

    async def cancel(_reason: Any = None) -> None:
        close = getattr(body, "aclose", None)
        if close is not None:
            await close()
        _destroy()

    def _destroy() -> None:
        for proxy in proxies:
            proxy.destroy()
        proxies.clear()

    proxies = [create_proxy(pull), create_proxy(cancel)]
    return js.ReadableStream.new(js_object({"pull": proxies[0], "cancel": proxies[1]}))
