"""The Worker's adapters as ports on this side: each call is made inside Pyodide, against the rig's stores."""

from __future__ import annotations

import asyncio
import base64
import itertools
import pickle
from collections.abc import AsyncIterable, Mapping, Sequence
from typing import Any, Literal

from mempersist.ports import (
    Body,
    EmbeddingModel,
    Mail,
    ObjectInfo,
    ObjectPage,
    QueueName,
    Row,
    SqlValue,
    Statement,
    StatementResult,
    UploadedPart,
    Vector,
    VectorFilter,
    VectorIndexInfo,
    VectorMatch,
    VectorRecord,
)
from tests.rigs.worker.process import Rig

_names = itertools.count()


def new_objects(rig: Rig) -> RigObjectStore:
    """An empty bucket."""
    rig.steer("world")
    return RigObjectStore(rig)


def new_catalog(rig: Rig) -> RigCatalog:
    """An empty database."""
    rig.steer("world")
    return RigCatalog(rig)


def new_vectors(rig: Rig, dimensions: int, indexed: Sequence[str]) -> RigVectorIndex:
    """An empty index of its own."""
    name = f"VECTORS{next(_names)}"
    rig.steer("vectorize", name=name, dimensions=dimensions, metadataIndexes=list(indexed), delay=0)
    return RigVectorIndex(rig, name, dimensions, indexed)


class _Adapter:
    """One adapter inside the rig, over the binding ``name``."""

    def __init__(self, rig: Rig, kind: str, name: str, **extra: Any) -> None:
        self._rig, self._kind, self._name, self._extra = rig, kind, name, extra

    def close(self) -> None:
        """Nothing to close; here so that tests treat every adapter alike."""

    async def _call(self, method: str, *args: Any, **kwargs: Any) -> Any:
        given = [await _portable(value) for value in args]
        message = pickle.dumps((self._kind, self._name, self._extra, method, given, kwargs))
        text = base64.b64encode(message).decode()
        answered = await asyncio.to_thread(lambda: self._rig.steer("call", call=text))
        succeeded, value = pickle.loads(base64.b64decode(answered["result"]))
        if not succeeded:
            raise value
        return value


async def _portable(value: Any) -> Any:
    """A stream as its chunks and the error that ended it."""
    if isinstance(value, bytes | str) or not isinstance(value, AsyncIterable):
        return value
    chunks: list[bytes] = []
    error = None
    try:
        async for chunk in value:
            chunks += [chunk]
    except Exception as raised:
        error = raised
    return ("$stream", chunks, error)


class RigObjectStore(_Adapter):
    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "objects", "MEMORY_BUCKET")

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        return await self._call("put", key, body, if_absent=if_absent)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        return await self._call("get", key, offset=offset, length=length)

    async def head(self, key: str) -> ObjectInfo | None:
        return await self._call("head", key)

    async def delete(self, keys: Sequence[str]) -> None:
        await self._call("delete", keys)

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        return await self._call("list", prefix, limit=limit, cursor=cursor, delimiter=delimiter)

    async def create_multipart(self, key: str) -> str:
        return await self._call("create_multipart", key)

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        return await self._call("put_part", key, upload_id, number, body)

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        return await self._call("complete_multipart", key, upload_id, parts)

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        await self._call("abort_multipart", key, upload_id)


class RigCatalog(_Adapter):
    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "catalog", "MEMORY_DB")

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        return await self._call("query", sql, params)

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        return await self._call("batch", statements)


class RigVectorIndex(_Adapter):
    def __init__(self, rig: Rig, name: str, dimensions: int, indexed: Sequence[str]) -> None:
        super().__init__(rig, "vectors", name, dimensions=dimensions, indexed=tuple(indexed))

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        await self._call("upsert", records)

    async def delete(self, ids: Sequence[str]) -> None:
        await self._call("delete", ids)

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        return await self._call("query", vector, top_k=top_k, where=where, return_metadata=return_metadata)

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        return await self._call("get", ids)

    async def describe(self) -> VectorIndexInfo:
        return await self._call("describe")


class RigEmbedder(_Adapter):
    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "embedder", "AI")

    @property
    def model(self) -> EmbeddingModel:
        return EmbeddingModel("bge-m3", 1024)

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        return await self._call("embed", list(texts), kind=kind)


class RigQueue(_Adapter):
    def __init__(self, rig: Rig) -> None:
        super().__init__(rig, "queue", "INDEX_QUEUE")

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        await self._call("send", queue, list(bodies), delay_seconds=delay_seconds)


class RigMailer(_Adapter):
    def __init__(self, rig: Rig, sender: str) -> None:
        super().__init__(rig, "mailer", "EMAIL", sender=sender)

    async def send(self, mail: Mail) -> None:
        await self._call("send", mail)
