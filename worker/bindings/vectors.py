"""Vectorize as the vector index."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import js
from pyodide.ffi import JsException, to_js

from bindings.ffi import from_json_value, js_object, to_json_value
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


class VectorizeIndex:
    """:class:`mempersist.ports.VectorIndex` over a Vectorize binding. Mutations are seen some seconds later."""

    def __init__(self, index: Any, dimensions: int, *, indexed: Sequence[str] = VECTOR_METADATA_INDEXES) -> None:
        self._index = index
        self._shape = IndexShape(dimensions, tuple(indexed))

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        documents = check_records(records, self._shape)
        if not records:
            return
        # Vectorize does not say which of two vectors with one id stays.
        latest = {
            record.id: js_object(
                {"id": record.id, "values": to_js(as_floats(record.values)), "metadata": js.JSON.parse(document)}
            )
            for record, document in zip(records, documents, strict=True)
        }
        try:
            await self._index.upsert(to_js(list(latest.values())))
        except JsException:
            raise _unavailable("upsert") from None

    async def delete(self, ids: Sequence[str]) -> None:
        check_delete(ids)
        if not ids:
            return
        try:
            await self._index.deleteByIds(to_js(unique(ids)))
        except JsException:
            raise _unavailable("delete") from None

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        check_query(vector, top_k, self._shape, return_metadata=return_metadata)
        compile_filter(where, self._shape)
        options = {"topK": top_k, "filter": where, "returnMetadata": "all" if return_metadata else "none"}
        try:
            found = await self._index.query(to_js(as_floats(vector)), to_json_value(options))
        except JsException:
            raise _unavailable("query") from None
        matches = [
            VectorMatch(
                match["id"],
                round(match["score"], SCORE_DECIMALS) + 0.0,
                (match.get("metadata") or {}) if return_metadata else {},
            )
            for match in from_json_value(found.matches)
        ]
        return tuple(sorted(matches, key=lambda match: (-match.score, match.id)))

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        check_get(ids)
        wanted = unique(ids)
        if not wanted:
            return ()
        try:
            found = await self._index.getByIds(to_js(wanted))
        except JsException:
            raise _unavailable("get") from None
        by_id = {item.id: item for item in found}
        return tuple(
            VectorRecord(vector_id, list(by_id[vector_id].values), _metadata(by_id[vector_id]))
            for vector_id in wanted
            if vector_id in by_id
        )

    async def describe(self) -> VectorIndexInfo:
        try:
            info = await self._index.describe()
        except JsException:
            raise _unavailable("describe") from None
        return VectorIndexInfo(int(info.dimensions), int(info.vectorCount))


def _metadata(item: Any) -> dict[str, Any]:
    text = js.JSON.stringify(item.metadata)
    return json.loads(text) if isinstance(text, str) and text != "null" else {}


def _unavailable(operation: str) -> IndexUnavailable:
    return IndexUnavailable(f"Vectorize did not answer to {operation}")
