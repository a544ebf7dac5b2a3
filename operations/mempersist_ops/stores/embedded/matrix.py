"""Vectors in memory as one matrix, for exact cosine search. A cache: the database beside it holds the truth."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mempersist.rules.vectors import SCORE_DECIMALS

Floats = NDArray[np.floating[Any]]
Integers = NDArray[np.integer[Any]]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)

FREE = 0
"""The facet of a slot that holds no vector."""

_BLOCK = 8192
_SPARSE = 8
"""With fewer than one in this many vectors allowed, copying those out is cheaper than scoring all."""


class Matrix:
    """Vectors by slot, each with its facet: the number of its combination of indexed metadata values.

    A vector is kept scaled by a power of two, which loses nothing, so that no product overflows. A search scores all
    of them in float32 and then the few that can be among the best in double precision. Not thread-safe.
    """

    def __init__(self, dimensions: int) -> None:
        self._rows = np.zeros((0, dimensions), np.float32)
        self._inverse_lengths = np.zeros(0, np.float32)
        self._facets = np.zeros(0, np.int32)
        self._used = 0
        # A float32 cosine is off by less than this, whatever the order of its sums.
        self._error = 2 * (dimensions + 4) * float(np.finfo(np.float32).eps)

    def reserve(self, slots: int) -> None:
        """Make room for slots below ``slots``: exactly so at first, at least doubling later."""
        if slots <= len(self._facets):
            return
        capacity = max(slots, 2 * len(self._facets))
        self._rows = _extended(self._rows, capacity)
        self._inverse_lengths = _extended(self._inverse_lengths, capacity)
        self._facets = _extended(self._facets, capacity)

    def put(self, slots: Integers, facets: Integers, vectors: Floats) -> None:
        """Set slots; a vector of zeros scores 0 with everything, and one with the facet :data:`FREE` is no vector."""
        if not len(slots):
            return
        used = max(self._used, int(slots.max()) + 1)
        self.reserve(used)
        self._used = used
        wide = vectors.astype(np.float64)
        lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
        scales = np.ldexp(1.0, -np.frexp(lengths)[1])
        self._rows[slots] = wide * scales[:, np.newaxis]
        scaled = lengths * scales
        self._inverse_lengths[slots] = np.divide(1.0, scaled, out=np.zeros_like(scaled), where=scaled > 0)
        self._facets[slots] = facets

    def best(self, query: Floats, allowed: Mask, top_k: int) -> list[tuple[int, float]]:
        """Slots and rounded cosines of the ``top_k`` best vectors with an allowed facet, and of all that tie with the
        last of them, in no order.

        :param allowed: by facet; false for :data:`FREE`.
        """
        wanted = allowed[self._facets[: self._used]]
        count = int(np.count_nonzero(wanted))
        if not count:
            return []
        target = _unit(query)
        if count * _SPARSE < self._used:
            slots = np.flatnonzero(wanted)
            scores = np.concatenate([self._rows[block] @ target.astype(np.float32) for block in _blocks(slots)])
            near = slots[_near_best(scores * self._inverse_lengths[slots], top_k, self._error)]
        else:
            scores = self._rows[: self._used] @ target.astype(np.float32)
            scores *= self._inverse_lengths[: self._used]
            if count < self._used:
                scores[~wanted] = -np.inf
            near = np.flatnonzero(_near_best(scores, min(top_k, count), self._error))
        scored = [
            (slot, round(score, SCORE_DECIMALS) + 0.0)
            for block in _blocks(near)
            for slot, score in zip(block.tolist(), _cosines(self._rows[block], target), strict=True)
        ]
        if len(scored) > top_k:
            last = sorted((score for _, score in scored), reverse=True)[top_k - 1]
            scored = [(slot, score) for slot, score in scored if score >= last]
        return scored


def _extended(array: NDArray[Number], capacity: int) -> NDArray[Number]:
    longer = np.zeros((capacity, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer


def _unit(vector: Floats) -> NDArray[np.float64]:
    wide = vector.astype(np.float64)
    length = float(np.sqrt(wide @ wide))
    return wide / length if length else wide


def _cosines(rows: Floats, target: NDArray[np.float64]) -> list[float]:
    wide = rows.astype(np.float64)
    lengths = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    cosines = np.divide(wide @ target, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return [float(cosine) for cosine in cosines]


def _near_best(scores: NDArray[np.float32], top_k: int, error: float) -> Mask:
    """Which of ``scores`` may be among the ``top_k`` best when each is off by up to ``error``."""
    if top_k >= len(scores):
        return np.ones(len(scores), np.bool_)
    last = float(np.partition(scores, len(scores) - top_k)[len(scores) - top_k])
    return scores >= last - 2 * error


def _blocks(slots: Integers) -> list[Integers]:
    return [slots[start : start + _BLOCK] for start in range(0, len(slots), _BLOCK)]
