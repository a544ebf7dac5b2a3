"""Vectorize v2 over REST. Its error codes are not documented, so those here say only that there is one."""

from __future__ import annotations

import json
import math
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mempersist import timestamps
from mempersist.limits import VECTOR_MAX_METADATA_INDEXES, VECTOR_MAX_TOP_K, VECTOR_MAX_TOP_K_WITH_METADATA
from mempersist.ports import Clock, VectorRecord
from mempersist.rules.vectors import IndexShape, as_floats, check_records
from tests.emulator.routing import Call, Route
from tests.emulator.vector_index import VectorStore
from tests.emulator.wire import ApiError, Result

MAX_LINES = 5000
MAX_UPLOAD_BYTES = 100_000_000
_MAX_IDS = 100
_MAX_LIST = 1000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
_TYPES = ("string", "number", "boolean")
_PART = re.compile(rb'name="vectors"[^\r\n]*\r\n(?:[^\r\n]+\r\n)*\r\n(.*?)\r\n--', re.DOTALL)


@dataclass(slots=True)
class _Index:
    about: dict[str, Any]
    store: VectorStore


class Vectorize:
    """The indexes of every account.

    :param delay_ms: how late a mutation is seen.
    """

    def __init__(self, clock: Clock, delay_ms: int) -> None:
        self._clock, self._delay_ms = clock, delay_ms
        self._indexes: dict[tuple[str, str], _Index] = {}

    def routes(self) -> list[Route]:
        base = "/vectorize/v2/indexes"
        one = f"{base}/{{name}}"
        described = [
            ("POST", base, "Write", self._create),
            ("GET", base, "Read", self._list),
            ("GET", one, "Read", self._get),
            ("DELETE", one, "Write", self._delete),
            ("GET", f"{one}/info", "Read", self._info),
            ("POST", f"{one}/insert", "Write", self._insert),
            ("POST", f"{one}/upsert", "Write", self._upsert),
            ("POST", f"{one}/query", "Read", self._query),
            ("POST", f"{one}/get_by_ids", "Read", self._get_by_ids),
            ("POST", f"{one}/delete_by_ids", "Write", self._delete_by_ids),
            ("GET", f"{one}/list", "Read", self._list_vectors),
            ("POST", f"{one}/metadata_index/create", "Write", self._create_metadata_index),
            ("GET", f"{one}/metadata_index/list", "Read", self._list_metadata_indexes),
            ("POST", f"{one}/metadata_index/delete", "Write", self._delete_metadata_index),
        ]
        return [Route(method, path, "Vectorize", access, handler) for method, path, access, handler in described]  # type: ignore[arg-type]

    # ---------------------------------------------------------------- indexes

    async def _create(self, call: Call) -> Result:
        given = call.request.json_object(1001)
        name, config = given.get("name"), given.get("config")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(config, dict):
            raise ApiError(400, 3003, "vectorize.index.invalid_name")
        if (call.account, name) in self._indexes:
            raise ApiError(409, 3002, "vectorize.index.duplicate_name", {"x-should-retry": "false"})
        dimensions, metric = config.get("dimensions"), config.get("metric")
        try:
            if not isinstance(dimensions, int) or not isinstance(metric, str):
                raise ValueError("config: dimensions and metric are required")
            IndexShape(dimensions, ())
            store = VectorStore(dimensions, metric, self._delay_ms)
        except ValueError as error:
            raise ApiError(400, 3004, f"vectorize.index.invalid_config: {error}") from None
        now = self._now()
        about = {
            "name": name,
            "description": given.get("description", ""),
            "config": {"dimensions": dimensions, "metric": metric},
            "created_on": now,
            "modified_on": now,
        }
        self._indexes[call.account, name] = _Index(about, store)
        return Result(about)

    async def _list(self, call: Call) -> Result:
        return Result([index.about for (owner, _), index in sorted(self._indexes.items()) if owner == call.account])

    async def _get(self, call: Call, name: str) -> Result:
        return Result(self._index(call, name).about)

    async def _delete(self, call: Call, name: str) -> Result:
        self._index(call, name)
        del self._indexes[call.account, name]
        return Result(None)

    async def _info(self, call: Call, name: str) -> Result:
        store = self._store(call, name)
        mutation, at = store.processed or (None, None)
        return Result(
            {
                "dimensions": store.dimensions,
                "vectorCount": len(store.ids()),
                "processedUpToMutation": mutation or "",
                "processedUpToDatetime": None if at is None else timestamps.from_ms(at),
            }
        )

    # ---------------------------------------------------------------- vectors

    async def _insert(self, call: Call, name: str) -> Result:
        return self._write(call, name, replace=False)

    async def _upsert(self, call: Call, name: str) -> Result:
        return self._write(call, name, replace=True)

    def _write(self, call: Call, name: str, *, replace: bool) -> Result:
        store = self._store(call, name)
        lines = _lines(call, store.dimensions)
        return self._mutated(store, lambda: store.write(lines, replace=replace))

    async def _delete_by_ids(self, call: Call, name: str) -> Result:
        store, ids = self._store(call, name), _ids(call)
        return self._mutated(store, lambda: store.remove(ids))

    async def _get_by_ids(self, call: Call, name: str) -> Result:
        store = self._store(call, name)
        return Result([vector.shown(values=True, metadata=True) for vector in store.get(_ids(call))])

    async def _list_vectors(self, call: Call, name: str) -> Result:
        store, asked = self._store(call, name), call.request.arguments
        every, after = store.ids(), asked.get("cursor", "")
        count = min(int(asked.get("count", "100")), _MAX_LIST)
        left = [vector_id for vector_id in every if vector_id > after]
        more = len(left) > count
        return Result(
            {
                "count": len(left[:count]),
                "totalCount": len(every),
                "vectors": [{"id": vector_id} for vector_id in left[:count]],
                "isTruncated": more,
                "nextCursor": left[count - 1] if more else None,
                "cursorExpirationTimestamp": timestamps.from_ms(self._clock.now_ms() + 86_400_000) if more else None,
            }
        )

    async def _query(self, call: Call, name: str) -> Result:
        store, given = self._store(call, name), call.request.json_object(40020)
        values, metadata = given.get("returnValues", False), given.get("returnMetadata", "none")
        top_k = given.get("topK", 5)
        most = VECTOR_MAX_TOP_K_WITH_METADATA if values or metadata == "all" else VECTOR_MAX_TOP_K
        if not isinstance(top_k, int) or not 1 <= top_k <= most:
            raise ApiError(400, 40022, f"VECTOR_QUERY_ERROR: topK must be 1 to {most}")
        try:
            target = self._target(store, given)
            best = store.best(target, top_k, given.get("filter"), given.get("namespace"))
        except ValueError as error:
            raise ApiError(400, 40023, f"VECTOR_QUERY_ERROR: {error}") from None
        keys = None if metadata == "all" else list(store.metadata_indexes)
        matches = [
            {**vector.shown(values=values, metadata=metadata != "none", keys=keys), "score": score}
            for score, vector in best
        ]
        return Result({"count": len(matches), "matches": matches})

    def _target(self, store: VectorStore, given: dict[str, Any]) -> Any:
        vector = given.get("vector")
        if vector is None and isinstance(given.get("vectorId"), str):
            found = store.get([given["vectorId"]])
            if not found:
                raise ValueError("vectorId: no such vector")
            return found[0].values
        if not isinstance(vector, list) or len(vector) != store.dimensions:
            raise ValueError(f"vector: must have {store.dimensions} numbers")
        return np.asarray(as_floats(vector), np.float64)

    # ---------------------------------------------------------------- metadata indexes

    async def _create_metadata_index(self, call: Call, name: str) -> Result:
        store, given = self._store(call, name), call.request.json_object(1001)
        key, kind = given.get("propertyName"), given.get("indexType")
        if not isinstance(key, str) or not key or kind not in _TYPES:
            raise ApiError(400, 40030, "metadata index: propertyName and indexType are required")
        if len(store.metadata_indexes) == VECTOR_MAX_METADATA_INDEXES and key not in store.metadata_indexes:
            raise ApiError(400, 40031, f"metadata index: there are {VECTOR_MAX_METADATA_INDEXES} already")
        return self._mutated(store, lambda: store.metadata_indexes.update({key: kind}))

    async def _list_metadata_indexes(self, call: Call, name: str) -> Result:
        held = self._store(call, name).metadata_indexes
        return Result({"metadataIndexes": [{"propertyName": key, "indexType": kind} for key, kind in held.items()]})

    async def _delete_metadata_index(self, call: Call, name: str) -> Result:
        store, key = self._store(call, name), str(call.request.json_object(1001).get("propertyName"))
        return self._mutated(store, lambda: store.metadata_indexes.pop(key, None))

    # ---------------------------------------------------------------- parts of the above

    def exists(self, account: str, name: str) -> bool:
        return (account, name) in self._indexes

    def _index(self, call: Call, name: str) -> _Index:
        index = self._indexes.get((call.account, name))
        if index is None:
            raise ApiError(404, 3000, "vectorize.index.not_found")
        return index

    def _store(self, call: Call, name: str) -> VectorStore:
        store = self._index(call, name).store
        store.settle(self._clock.now_ms())
        return store

    def _mutated(self, store: VectorStore, apply: Any) -> Result:
        mutation = str(uuid.uuid4())
        store.mutate(mutation, self._clock.now_ms(), apply)
        return Result({"mutationId": mutation})

    def _now(self) -> str:
        return timestamps.from_ms(self._clock.now_ms())


def _ids(call: Call) -> Sequence[str]:
    ids = call.request.json_object(1001).get("ids")
    if not isinstance(ids, list) or len(ids) > _MAX_IDS or not all(isinstance(each, str) for each in ids):
        raise ApiError(400, 40040, f"ids: must be a list of at most {_MAX_IDS} strings")
    return ids


def _lines(call: Call, dimensions: int) -> list[dict[str, Any]]:
    """The vectors of an NDJSON body, or of its multipart field; none is taken when one is refused."""
    body = call.request.body
    if call.request.headers.get("content-type", "").startswith("multipart/form-data"):
        part = _PART.search(body)
        body = part[1] if part else b""
    if len(body) > MAX_UPLOAD_BYTES:
        raise ApiError(413, 40005, f"upload: more than {MAX_UPLOAD_BYTES} bytes")
    discard = call.request.arguments.get("unparsable-behavior") == "discard"
    lines = []
    for text in body.splitlines():
        if not text.strip():
            continue
        try:
            lines.append(_line(text, dimensions))
        except ValueError as error:
            if not discard:
                raise ApiError(400, 40012, f"VECTOR_UPSERT_ERROR: {error}") from None
    if len(lines) > MAX_LINES:
        raise ApiError(400, 40006, f"VECTOR_UPSERT_ERROR: more than {MAX_LINES} vectors")
    return lines


def _line(text: bytes, dimensions: int) -> dict[str, Any]:
    line = json.loads(text)
    if not isinstance(line, dict) or not isinstance(line.get("id"), str) or not isinstance(line.get("values"), list):
        raise ValueError("a line must have id and values")
    check_records([VectorRecord(line["id"], line["values"], line.get("metadata") or {})], IndexShape(dimensions, ()))
    if not all(map(math.isfinite, as_floats(line["values"]))):
        raise ValueError("values must be finite")
    return line
