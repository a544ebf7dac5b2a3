"""One index of Vectorize: exact search, under the filters and limits of the service's own rules."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mempersist.rules.vectors import IndexShape, compile_filter, indexed_values

_METRICS = ("cosine", "euclidean", "dot-product")


@dataclass(frozen=True, slots=True)
class Vector:
    """``indexed`` is what the metadata indexes held when it was written: one made later does not know it."""

    id: str
    values: NDArray[np.float64]
    document: str
    namespace: str | None
    indexed: dict[str, Any]

    def shown(self, *, values: bool, metadata: bool, keys: Sequence[str] | None = None) -> dict[str, Any]:
        answer: dict[str, Any] = {"id": self.id}
        if values:
            answer["values"] = self.values.tolist()
        if metadata:
            held = json.loads(self.document)
            answer["metadata"] = {key: value for key, value in held.items() if keys is None or key in keys}
        if self.namespace is not None:
            answer["namespace"] = self.namespace
        return answer


@dataclass(frozen=True, slots=True)
class _Mutation:
    id: str
    due_ms: int
    apply: Callable[[], None]


class VectorStore:
    """The vectors of an index, and the mutations that wait to be seen.

    :param delay_ms: from accepting a mutation to its being seen.
    """

    def __init__(self, dimensions: int, metric: str, delay_ms: int) -> None:
        if metric not in _METRICS:
            raise ValueError(f"metric: must be one of {', '.join(_METRICS)}")
        self.dimensions, self.metric = dimensions, metric
        self.metadata_indexes: dict[str, str] = {}
        self.processed: tuple[str, int] | None = None
        self._delay_ms = delay_ms
        self._vectors: dict[str, Vector] = {}
        self._pending: list[_Mutation] = []
        self._cache: tuple[list[Vector], NDArray[np.float64]] | None = None

    @property
    def shape(self) -> IndexShape:
        return IndexShape(self.dimensions, tuple(self.metadata_indexes))

    def mutate(self, mutation_id: str, now_ms: int, apply: Callable[[], None]) -> None:
        self._pending.append(_Mutation(mutation_id, now_ms + self._delay_ms, apply))
        self.settle(now_ms)

    def settle(self, now_ms: int) -> None:
        """Let what is due be seen, in the order in which it was accepted."""
        while self._pending and self._pending[0].due_ms <= now_ms:
            mutation = self._pending.pop(0)
            mutation.apply()
            self._cache = None
            self.processed = (mutation.id, mutation.due_ms)

    def write(self, lines: Sequence[dict[str, Any]], *, replace: bool) -> None:
        """Write vectors that were checked before; the last line of an id counts."""
        shape = self.shape
        for line in lines:
            if not replace and line["id"] in self._vectors:
                continue
            metadata = line.get("metadata") or {}
            held = dict(zip(shape.indexed, indexed_values(metadata, shape), strict=True))
            values = np.asarray(line["values"], np.float32).astype(np.float64)
            self._vectors[line["id"]] = Vector(line["id"], values, json.dumps(metadata), line.get("namespace"), held)

    def remove(self, ids: Sequence[str]) -> None:
        for vector_id in ids:
            self._vectors.pop(vector_id, None)

    def get(self, ids: Sequence[str]) -> list[Vector]:
        return [self._vectors[vector_id] for vector_id in dict.fromkeys(ids) if vector_id in self._vectors]

    def ids(self) -> list[str]:
        return sorted(self._vectors)

    def best(
        self, target: NDArray[np.float64], top_k: int, where: Any, namespace: str | None
    ) -> list[tuple[float, Vector]]:
        """:raises ValueError: for a filter that Vectorize refuses."""
        shape = self.shape
        matches = compile_filter(where, shape) if where else None
        vectors, matrix = self._loaded()
        fitting = [
            place
            for place, vector in enumerate(vectors)
            if (namespace is None or vector.namespace == namespace)
            and (matches is None or matches(tuple(vector.indexed.get(key) for key in shape.indexed)))
        ]
        scores = self._scores(matrix[fitting], target)
        ascending = self.metric == "euclidean"
        order = sorted(
            zip(scores.tolist(), fitting, strict=True),
            key=lambda found: (found[0] if ascending else -found[0], vectors[found[1]].id),
        )
        return [(score, vectors[place]) for score, place in order[:top_k]]

    def _loaded(self) -> tuple[list[Vector], NDArray[np.float64]]:
        if self._cache is None:
            vectors = list(self._vectors.values())
            rows = np.array([vector.values for vector in vectors]).reshape(len(vectors), self.dimensions)
            self._cache = (vectors, _units(rows) if self.metric == "cosine" else rows)
        return self._cache

    def _scores(self, rows: NDArray[np.float64], target: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.metric == "euclidean":
            distances: NDArray[np.float64] = np.linalg.norm(rows - target, axis=1)
            return distances
        products: NDArray[np.float64] = rows @ (_units(target[None])[0] if self.metric == "cosine" else target)
        rounded: NDArray[np.float64] = products.round(7)
        return rounded


def _units(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """``rows`` with length 1; a zero row stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    units: NDArray[np.float64] = np.divide(rows, lengths, out=np.zeros_like(rows), where=lengths > 0)
    return units
