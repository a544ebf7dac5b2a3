"""Vectorize as the vector index, over the REST API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from mempersist.limits import VECTOR_METADATA_INDEXES
from mempersist.ports import IndexUnavailable, Vector, VectorFilter, VectorIndexInfo, VectorMatch, VectorRecord
from mempersist.rules.vectors import (
    SCORE_DECIMALS,
    IndexShape,
    as_floats,
    check_delete,
    check_get,
    check_query,
    check_records,
    compile_filter,
    unique,
)
from mempersist_ops.stores.remote.rest import RestClient, RestError

_NDJSON = "application/x-ndjson"
_LOOK_AGAIN_SECONDS = 1.0


class VectorizeRestIndex:
    """:class:`mempersist.ports.VectorIndex` over the REST API of one index. Mutations are seen some seconds later.

    Every call may be made twice without harm, so all are tried again.
    """

    def __init__(
        self, client: RestClient, name: str, dimensions: int, *, indexed: Sequence[str] = VECTOR_METADATA_INDEXES
    ) -> None:
        self._client = client
        self._path = f"/vectorize/v2/indexes/{name}"
        self._shape = IndexShape(dimensions, tuple(indexed))
        self._last_mutation: str | None = None

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        documents = check_records(records, self._shape)
        # Vectorize does not say which of two vectors with one id stays.
        latest = {
            record.id: _line(record.id, as_floats(record.values).tolist(), document)
            for record, document in zip(records, documents, strict=True)
        }
        if latest:
            body = "\n".join(latest.values()).encode()
            await self._mutate("upsert", content=body, content_type=_NDJSON)

    async def delete(self, ids: Sequence[str]) -> None:
        check_delete(ids)
        if ids:
            await self._mutate("delete_by_ids", body={"ids": unique(ids)})

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        check_query(vector, top_k, self._shape, return_metadata=return_metadata)
        compile_filter(where, self._shape)
        body = {
            "vector": as_floats(vector).tolist(),
            "topK": top_k,
            "filter": {key: dict(value) if isinstance(value, Mapping) else value for key, value in where.items()},
            "returnMetadata": "all" if return_metadata else "none",
        }
        answer = await self._call("POST", "query", body=body)
        try:
            matches = [
                VectorMatch(
                    str(match["id"]),
                    round(float(match["score"]), SCORE_DECIMALS) + 0.0,
                    (match.get("metadata") or {}) if return_metadata else {},
                )
                for match in answer["matches"]
            ]
        except (AttributeError, KeyError, TypeError, ValueError):
            raise _garbled("query") from None
        return tuple(sorted(matches, key=lambda match: (-match.score, match.id)))

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        check_get(ids)
        wanted = unique(ids)
        if not wanted:
            return ()
        answer = await self._call("POST", "get_by_ids", body={"ids": wanted})
        try:
            found = {
                item["id"]: VectorRecord(item["id"], item["values"], item.get("metadata") or {}) for item in answer
            }
        except (AttributeError, KeyError, TypeError):
            raise _garbled("get") from None
        return tuple(found[vector_id] for vector_id in wanted if vector_id in found)

    async def describe(self) -> VectorIndexInfo:
        answer = await self._call("GET", "info")
        try:
            return VectorIndexInfo(int(answer["dimensions"]), int(answer["vectorCount"]))
        except (KeyError, TypeError, ValueError):
            raise _garbled("info") from None

    async def seen(self, *, patience_seconds: float = 300.0, look_again: float = _LOOK_AGAIN_SECONDS) -> bool:
        """Wait until this instance's last mutation can be seen; False when it cannot after so long.

        Vectorize tells only the last mutation it has processed, so somebody else's later one keeps this waiting.
        """
        for _ in range(int(patience_seconds / look_again) + 1):
            if self._last_mutation is None:
                return True
            answer = await self._call("GET", "info")
            if isinstance(answer, dict) and answer.get("processedUpToMutation") == self._last_mutation:
                self._last_mutation = None
            else:
                await asyncio.sleep(look_again)
        return self._last_mutation is None

    async def _mutate(self, operation: str, **content: Any) -> None:
        answer = await self._call("POST", operation, **content)
        if not isinstance(answer, dict) or not isinstance(answer.get("mutationId"), str):
            raise _garbled(operation)
        self._last_mutation = answer["mutationId"]

    async def _call(self, method: str, operation: str, **content: Any) -> Any:
        try:
            return await self._client.call(method, f"{self._path}/{operation}", repeatable=True, **content)
        except RestError as error:
            raise IndexUnavailable(str(error)) from None


def _line(vector_id: str, values: list[float], document: str) -> str:
    return f'{{"id":{json.dumps(vector_id)},"values":{json.dumps(values)},"metadata":{document}}}'


def _garbled(operation: str) -> IndexUnavailable:
    return IndexUnavailable(f"Vectorize answered {operation} with something that is no result")
