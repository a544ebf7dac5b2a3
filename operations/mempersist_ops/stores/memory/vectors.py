"""The vector index in memory, by brute force in plain Python: the reference that the fast one is held to."""

from __future__ import annotations

import asyncio
import json
import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import mul

from mempersist.limits import VECTOR_METADATA_INDEXES
from mempersist.ports import MetadataValue, Vector, VectorFilter, VectorIndexInfo, VectorMatch, VectorRecord
from mempersist.rules.vectors import (
    SCORE_DECIMALS,
    IndexedValues,
    IndexShape,
    as_floats,
    check_delete,
    check_get,
    check_query,
    check_records,
    compile_filter,
    indexed_values,
    unique,
)


@dataclass(frozen=True, slots=True)
class _Stored:
    values: array[float]
    length: float
    document: str
    indexed: IndexedValues

    def metadata(self) -> dict[str, MetadataValue]:
        copy: dict[str, MetadataValue] = json.loads(self.document)
        return copy


class MemoryVectorIndex:
    """:class:`mempersist.ports.VectorIndex` that ends with the object: Vectorize's limits and filters, exact results.

    :param asynchronous: mutations are accepted at once and seen only after :meth:`settle`, as on Vectorize.
    """

    def __init__(
        self, dimensions: int, *, indexed: Sequence[str] = VECTOR_METADATA_INDEXES, asynchronous: bool = False
    ) -> None:
        self._shape = IndexShape(dimensions, tuple(indexed))
        self._asynchronous = asynchronous
        self._pending: list[Callable[[], None]] = []
        self._stored: dict[str, _Stored] = {}

    def close(self) -> None:
        """Nothing to close; here so that tests treat every index alike."""

    def settle(self) -> None:
        """Let every accepted mutation become visible, in order."""
        for mutation in self._pending:
            mutation()
        self._pending.clear()

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        documents = check_records(records, self._shape)
        stored = {
            record.id: _stored(as_floats(record.values), document, indexed_values(record.metadata, self._shape))
            for record, document in zip(records, documents, strict=True)
        }
        await self._mutate(lambda: self._stored.update(stored))

    async def delete(self, ids: Sequence[str]) -> None:
        check_delete(ids)
        gone = tuple(ids)

        def remove() -> None:
            for vector_id in gone:
                self._stored.pop(vector_id, None)

        await self._mutate(remove)

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        check_query(vector, top_k, self._shape, return_metadata=return_metadata)
        matches = compile_filter(where, self._shape)
        target = as_floats(vector)
        await asyncio.sleep(0)
        length = math.hypot(*target)
        scored = sorted(
            (-_cosine(stored, target, length), vector_id)
            for vector_id, stored in self._stored.items()
            if matches(stored.indexed)
        )
        return tuple(
            VectorMatch(vector_id, -score + 0.0, self._stored[vector_id].metadata() if return_metadata else {})
            for score, vector_id in scored[:top_k]
        )

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        check_get(ids)
        await asyncio.sleep(0)
        return tuple(
            VectorRecord(vector_id, stored.values.tolist(), stored.metadata())
            for vector_id in unique(ids)
            if (stored := self._stored.get(vector_id)) is not None
        )

    async def describe(self) -> VectorIndexInfo:
        await asyncio.sleep(0)
        return VectorIndexInfo(self._shape.dimensions, len(self._stored))

    async def _mutate(self, mutation: Callable[[], None]) -> None:
        await asyncio.sleep(0)
        if self._asynchronous:
            self._pending.append(mutation)
        else:
            mutation()


def _stored(values: array[float], document: str, indexed: IndexedValues) -> _Stored:
    return _Stored(values, math.hypot(*values), document, indexed)


def _cosine(stored: _Stored, target: array[float], length: float) -> float:
    if not stored.length or not length:
        return 0.0
    unit = (value / length for value in target)
    return round(math.fsum(map(mul, (value / stored.length for value in stored.values), unit)), SCORE_DECIMALS) + 0.0
