"""The object store in memory: R2's semantics, gone with the object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mempersist.ports import (
    Body,
    ObjectInfo,
    ObjectNotFound,
    ObjectPage,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from mempersist.rules.objects import check_key, check_part_number, check_parts, content_etag


@dataclass
class _Upload:
    key: str
    parts: dict[int, bytes] = field(default_factory=dict)


async def read_body(body: Body) -> bytes:
    if isinstance(body, bytes):
        return body
    return b"".join([chunk async for chunk in body])


class MemoryObjectStore:
    """:class:`mempersist.ports.ObjectStore` that ends with the object."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}
        self._uploads: dict[str, _Upload] = {}

    def _info(self, key: str) -> ObjectInfo:
        data = self._objects[key]
        return ObjectInfo(key, len(data), content_etag(data), "1970-01-01T00:00:00.000Z")

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        check_key(key)
        data = await read_body(body)
        if if_absent and key in self._objects:
            raise PreconditionFailed(key)
        self._objects[key] = data
        return self._info(key)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key not in self._objects:
            raise ObjectNotFound(key)
        data = self._objects[key]
        return data[offset : None if length is None else offset + length]

    async def head(self, key: str) -> ObjectInfo | None:
        return self._info(key) if key in self._objects else None

    async def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self._objects.pop(key, None)

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        objects: list[ObjectInfo] = []
        prefixes: list[str] = []
        last = cursor
        for key in sorted(self._objects, key=lambda item: item.encode()):
            if not key.startswith(prefix):
                continue
            rest = key[len(prefix) :]
            folded = prefix + rest.split(delimiter)[0] + delimiter if delimiter and delimiter in rest else None
            name = folded or key
            if cursor is not None and name.encode() <= cursor.encode():
                continue
            if folded and prefixes[-1:] == [folded]:
                continue
            if len(objects) + len(prefixes) == limit:
                return ObjectPage(tuple(objects), tuple(prefixes), last)
            if folded:
                prefixes.append(folded)
            else:
                objects.append(self._info(key))
            last = name
        return ObjectPage(tuple(objects), tuple(prefixes), None)

    async def create_multipart(self, key: str) -> str:
        check_key(key)
        upload_id = f"upload-{len(self._uploads) + 1}"
        self._uploads[upload_id] = _Upload(key)
        return upload_id

    def _upload(self, key: str, upload_id: str) -> _Upload:
        upload = self._uploads.get(upload_id)
        if upload is None or upload.key != key:
            raise ObjectNotFound(key)
        return upload

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        upload = self._upload(key, upload_id)
        check_part_number(number)
        data = await read_body(body)
        upload.parts[number] = data
        return UploadedPart(number, content_etag(data), len(data))

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        upload = self._upload(key, upload_id)
        check_parts(parts)
        for part in parts:
            if part.number not in upload.parts:
                raise ObjectNotFound(key)
            if content_etag(upload.parts[part.number]) != part.etag:
                raise StorageError(f"part {part.number} was written again with other bytes")
        self._objects[key] = b"".join(upload.parts[part.number] for part in parts)
        del self._uploads[upload_id]
        return self._info(key)

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        if upload_id in self._uploads and self._uploads[upload_id].key == key:
            del self._uploads[upload_id]
