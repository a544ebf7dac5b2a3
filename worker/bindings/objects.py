"""R2 as the object store."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from pyodide.ffi import JsException, to_js

from bindings.bodies import RequestBody
from bindings.ffi import is_nothing, js_object, message_of
from mempersist.limits import MIB
from mempersist.ports import (
    Body,
    ObjectInfo,
    ObjectNotFound,
    ObjectPage,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from mempersist.rules.objects import check_key, check_part_number, check_parts

T = TypeVar("T")

_PART_BYTES: Final = 8 * MIB
"""A stream of unknown length is held up to here, and sent in parts of this size when it is longer."""
_TRIES: Final = 3
_WAIT_SECONDS: Final = 0.2
_CODE: Final = re.compile(r"\((\d{5})\)\s*$")
_NO_UPLOAD: Final = frozenset({"10024"})
_NO_PART: Final = frozenset({"10025"})
_INTERNAL: Final = "10001"


class R2ObjectStore:
    """:class:`mempersist.ports.ObjectStore` over an R2 binding.

    What can be repeated without harm is tried three times: reads, deletes, and puts that replace. A put that must not
    replace is tried once, since a lost answer would look like another writer's object.
    """

    def __init__(self, bucket: Any) -> None:
        self._bucket = bucket

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        check_key(key)
        if isinstance(body, RequestBody):
            return await self._put_once(key, body.stream(), if_absent=if_absent)
        if isinstance(body, bytes):
            return await self._put_bytes(key, body, if_absent=if_absent)
        parts = _in_parts(aiter(body))
        first = await anext(parts, b"")
        if len(first) < _PART_BYTES:
            return await self._put_bytes(key, first, if_absent=if_absent)
        if if_absent:
            raise ValueError(f"a stream of {_PART_BYTES} bytes or more cannot be created exclusively")
        return await self._put_parts(key, first, parts)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        check_key(key)
        if length == 0:
            await self._must_exist(key)
            return b""
        wanted = {"offset": offset} if length is None else {"offset": offset, "length": length}
        options = js_object({"range": wanted} if offset or length is not None else {})

        async def read() -> bytes | None:
            found = await self._bucket.get(key, options)
            return None if is_nothing(found) else bytes((await found.arrayBuffer()).to_bytes())

        try:
            data = await (_once(read) if offset else _stored(read))
        except _Refused:
            # R2 refuses a range that begins at the end or behind it, with more than one code.
            info = await self.head(key)
            if info is None or offset >= info.size:
                data = None if info is None else b""
            else:
                data = await _stored(read)
        if data is None:
            raise ObjectNotFound
        return data

    async def head(self, key: str) -> ObjectInfo | None:
        check_key(key)
        found = await _stored(lambda: self._bucket.head(key))
        return None if is_nothing(found) else _info(found)

    async def delete(self, keys: Sequence[str]) -> None:
        if keys:
            await _stored(lambda: self._bucket.delete(to_js(list(keys))))

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        given = {"prefix": prefix, "limit": limit, "cursor": cursor, "delimiter": delimiter}
        options = js_object({name: value for name, value in given.items() if value is not None})
        page = await _stored(lambda: self._bucket.list(options))
        return ObjectPage(
            tuple(_info(found) for found in page.objects),
            tuple(page.delimitedPrefixes or ()),
            page.cursor if page.truncated else None,
        )

    async def create_multipart(self, key: str) -> str:
        check_key(key)
        upload: Any = await _stored(lambda: self._bucket.createMultipartUpload(key))
        return str(upload.uploadId)

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        check_part_number(number)
        if isinstance(body, RequestBody):
            upload, data, size = self._upload(key, upload_id), body.stream(), body.size
            send = _once(lambda: upload.uploadPart(number, data))
        else:
            whole = body if isinstance(body, bytes) else b"".join([chunk async for chunk in body])
            upload, size = self._upload(key, upload_id), len(whole)
            send = _repeated(lambda: upload.uploadPart(number, to_js(whole)))
        try:
            part = await send
        except _Refused as error:
            raise (ObjectNotFound() if error.no_upload else error.as_storage_error()) from None
        return UploadedPart(number, str(part.etag), size)

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        check_parts(parts)
        named = to_js([js_object({"partNumber": part.number, "etag": part.etag}) for part in parts])
        upload = self._upload(key, upload_id)
        try:
            return _info(await _repeated(lambda: upload.complete(named)))
        except _Refused as error:
            # R2 answers with its internal error for an upload that it does not know, or has joined already, too.
            if error.no_upload or error.code in _NO_PART:
                raise ObjectNotFound from None
            raise error.as_storage_error() from None

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        try:
            await _once(lambda: self._upload(key, upload_id).abort())
        except _Refused as error:
            # R2 answers with an internal error for an upload that it does not know. One that it knows and keeps for a
            # real internal error is dropped after seven days by R2 itself.
            if not error.no_upload and error.code != _INTERNAL:
                raise error.as_storage_error() from None
        except ObjectNotFound:
            return

    # ---------------------------------------------------------------- parts of the above

    def _upload(self, key: str, upload_id: str) -> Any:
        check_key(key)
        try:
            return self._bucket.resumeMultipartUpload(key, upload_id)
        except JsException:
            raise ObjectNotFound from None

    async def _must_exist(self, key: str) -> None:
        if await self.head(key) is None:
            raise ObjectNotFound

    async def _put_bytes(self, key: str, data: bytes, *, if_absent: bool) -> ObjectInfo:
        if if_absent:
            return await self._put_once(key, to_js(data), if_absent=True)
        return _info(await _stored(lambda: self._bucket.put(key, to_js(data))))

    async def _put_once(self, key: str, data: Any, *, if_absent: bool) -> ObjectInfo:
        options = js_object({"onlyIf": js_object({"etagDoesNotMatch": "*"})} if if_absent else {})
        try:
            stored = await _once(lambda: self._bucket.put(key, data, options))
        except _Refused as error:
            raise error.as_storage_error() from None
        if is_nothing(stored):
            raise PreconditionFailed
        return _info(stored)

    async def _put_parts(self, key: str, first: bytes, rest: AsyncIterator[bytes]) -> ObjectInfo:
        upload_id = await self.create_multipart(key)
        try:
            parts = [await self.put_part(key, upload_id, 1, first)]
            async for data in rest:
                parts.append(await self.put_part(key, upload_id, len(parts) + 1, data))
            return await self.complete_multipart(key, upload_id, parts)
        except BaseException:
            await self.abort_multipart(key, upload_id)
            raise


class _Refused(Exception):
    """R2 did not do it. ``code`` is its five-digit error code, empty where it gave none."""

    def __init__(self, error: JsException) -> None:
        message = message_of(error)
        found = _CODE.search(message)
        self.code = found.group(1) if found else ""
        self.no_upload = self.code in _NO_UPLOAD or "multipart upload does not exist" in message
        super().__init__(self.code)

    def as_storage_error(self) -> StorageError:
        return StorageError(f"R2 refused or failed ({self.code or 'no code'})")


async def _once(call: Callable[[], Awaitable[T]]) -> T:
    """:raises _Refused:"""
    try:
        return await call()
    except JsException as error:
        raise _Refused(error) from None


async def _repeated(call: Callable[[], Awaitable[T]]) -> T:
    """The same for what may be done again, with a longer wait each time. :raises _Refused:"""
    for attempt in range(1, _TRIES):
        try:
            return await _once(call)
        except _Refused as error:
            if error.no_upload:
                raise
            await asyncio.sleep(_WAIT_SECONDS * attempt)
    return await _once(call)


async def _stored(call: Callable[[], Awaitable[T]]) -> T:
    """:raises StorageError:"""
    try:
        return await _repeated(call)
    except _Refused as error:
        raise error.as_storage_error() from None


async def _in_parts(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream in pieces of the part size; the last is shorter or, where nothing is left, not there."""
    held = bytearray()
    async for chunk in body:
        held += chunk
        while len(held) >= _PART_BYTES:
            yield bytes(held[:_PART_BYTES])
            del held[:_PART_BYTES]
    if held:
        yield bytes(held)


def _info(found: Any) -> ObjectInfo:
    return ObjectInfo(str(found.key), int(found.size), str(found.etag), str(found.uploaded.toISOString()))
