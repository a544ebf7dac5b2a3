"""A request's body, read here or handed on unread."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from pyodide.ffi import JsException

from bindings.ffi import is_nothing
from mempersist.ports import DirectBody
from mempersist.web.http import ClientDisconnected


class RequestBody(DirectBody):
    """The stream of a request that announced its length.

    :param size: bytes, as announced; the runtime ends the stream with an error where fewer come.
    """

    def __init__(self, source: Any, size: int) -> None:
        self._source = source
        self.size = size

    def stream(self) -> Any:
        """The JavaScript stream, for R2. What is taken here cannot be read here."""
        return self._source

    def __aiter__(self) -> AsyncIterator[bytes]:
        return chunks(self._source)


async def chunks(source: Any) -> AsyncIterator[bytes]:
    """The bytes of a ReadableStream as they come. :raises ClientDisconnected: where it breaks off."""
    if is_nothing(source):
        return
    reader = source.getReader()
    try:
        while True:
            item = await reader.read()
            if item.done:
                return
            yield item.value.to_bytes()
    except JsException:
        raise ClientDisconnected from None
    finally:
        reader.releaseLock()
