"""What Vectorize accepts and how its filters decide, in plain Python: shared by every vector index.

A check raises ValueError naming the bound and the way out, and never quotes an id, a value or a filter's operand.
"""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mempersist.limits import (
    VECTOR_INDEXED_STRING_BYTES,
    VECTOR_MAX_DELETE,
    VECTOR_MAX_DIMENSIONS,
    VECTOR_MAX_FILTER_BYTES,
    VECTOR_MAX_GET,
    VECTOR_MAX_ID_BYTES,
    VECTOR_MAX_METADATA_BYTES,
    VECTOR_MAX_METADATA_INDEXES,
    VECTOR_MAX_TOP_K,
    VECTOR_MAX_TOP_K_WITH_METADATA,
    VECTOR_MAX_UPSERT,
)
from mempersist.ports import MetadataValue, Vector, VectorFilter, VectorRecord

MAX_KEY_CHARS = 512
SCORE_DECIMALS = 6
"""Scores are rounded to what float32 can tell apart on any machine, and equal ones are ordered by id."""

IndexedValues = tuple[MetadataValue | None, ...]
Matcher = Callable[[IndexedValues], bool]

_ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "$lt": lambda stored, bound: stored < bound,
    "$lte": lambda stored, bound: stored <= bound,
    "$gt": lambda stored, bound: stored > bound,
    "$gte": lambda stored, bound: stored >= bound,
}
_SIDES = {"$lt": "upper", "$lte": "upper", "$gt": "lower", "$gte": "lower"}


@dataclass(frozen=True, slots=True)
class IndexShape:
    """What an index is created with.

    :param dimensions: numbers in every vector.
    :param indexed: metadata keys that a filter may name, the metadata indexes of Vectorize.
    :raises ValueError: for a shape that Vectorize would refuse.
    """

    dimensions: int
    indexed: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= self.dimensions <= VECTOR_MAX_DIMENSIONS:
            raise ValueError(f"dimensions: must be 1 to {VECTOR_MAX_DIMENSIONS}")
        if len(self.indexed) > VECTOR_MAX_METADATA_INDEXES or len(set(self.indexed)) != len(self.indexed):
            raise ValueError(f"indexed: at most {VECTOR_MAX_METADATA_INDEXES} different metadata keys")
        for key in self.indexed:
            _check_key("indexed", key)


def check_records(records: Sequence[VectorRecord], shape: IndexShape) -> list[str]:
    """Check a mutation and return each record's metadata as JSON. Whether values are finite is left to the caller."""
    if len(records) > VECTOR_MAX_UPSERT:
        raise ValueError(f"upsert: {len(records)} records are more than {VECTOR_MAX_UPSERT}; send them in parts")
    documents = []
    for record in records:
        _check_id(record.id)
        if len(record.values) != shape.dimensions:
            raise ValueError(f"upsert: a vector of {len(record.values)} numbers; this index has {shape.dimensions}")
        documents.append(_metadata_json(record.metadata))
    return documents


def as_floats(vector: Vector) -> array[float]:
    """``vector`` in the precision that is stored. :raises ValueError: for what is not a finite float32."""
    try:
        floats = array("f", vector)
    except (TypeError, OverflowError):
        raise ValueError("vector: must hold numbers only") from None
    if not all(map(math.isfinite, floats)):
        raise ValueError("vector: must hold finite numbers that fit a 32-bit float")
    return floats


def check_delete(ids: Sequence[str]) -> None:
    _check_ids("delete", ids, VECTOR_MAX_DELETE)


def check_get(ids: Sequence[str]) -> None:
    _check_ids("get", ids, VECTOR_MAX_GET)


def check_query(vector: Vector, top_k: int, shape: IndexShape, *, return_metadata: bool) -> None:
    """Check all of a query but its filter, which :func:`compile_filter` checks, and the numbers' finiteness."""
    if len(vector) != shape.dimensions:
        raise ValueError(f"query: a vector of {len(vector)} numbers; this index has {shape.dimensions}")
    limit = VECTOR_MAX_TOP_K_WITH_METADATA if return_metadata else VECTOR_MAX_TOP_K
    if not 1 <= top_k <= limit:
        raise ValueError(f"top_k: must be 1 to {limit}" + (" with metadata" if return_metadata else ""))


def indexed_values(metadata: Mapping[str, MetadataValue], shape: IndexShape) -> IndexedValues:
    """What the metadata indexes hold of a vector: strings cut to their first 64 bytes, None where a key is absent."""
    return tuple(_as_indexed(metadata.get(key)) for key in shape.indexed)


def compile_filter(where: VectorFilter, shape: IndexShape) -> Matcher:
    """The predicate of a filter over :func:`indexed_values`.

    Types never mix: ``1`` is not ``True`` and not ``"1"``. A vector without the key matches ``$ne`` and ``$nin`` only.

    :raises ValueError: for what Vectorize refuses, a key without a metadata index, a string longer than what an index
        holds of one, and an empty list.
    """
    if not where:
        raise ValueError("where: must name at least one metadata key")
    try:
        size = len(_compact_json(where))
    except (TypeError, ValueError):
        raise ValueError("where: must hold strings, finite numbers and booleans only") from None
    if size >= VECTOR_MAX_FILTER_BYTES:
        raise ValueError(f"where: {size} bytes of JSON; must be under {VECTOR_MAX_FILTER_BYTES}, so name fewer values")
    tests = []
    for key, condition in where.items():
        _check_key("where", key)
        if key not in shape.indexed:
            raise ValueError(f"where: {key} has no metadata index; there is one for {', '.join(shape.indexed)}")
        tests.append((shape.indexed.index(key), _compile_condition(key, condition)))
    return lambda values: all(test(values[place]) for place, test in tests)


def _compile_condition(key: str, condition: object) -> Callable[[MetadataValue | None], bool]:
    if not isinstance(condition, Mapping):
        condition = {"$eq": condition}
    operators = list(condition)
    if operators and all(operator in _ORDERINGS for operator in operators):
        if len({_SIDES[operator] for operator in operators}) != len(operators):
            raise ValueError(f"where: {key} may have one lower and one upper bound")
        bounds = [(_ORDERINGS[operator], _operand(key, condition[operator])) for operator in operators]
        if any(isinstance(bound, bool) for _, bound in bounds):
            raise ValueError(f"where: {key} cannot be ordered by a boolean")
        return lambda stored: all(_kind(stored) is _kind(bound) and order(stored, bound) for order, bound in bounds)
    if len(operators) != 1 or operators[0] not in {"$eq", "$ne", "$in", "$nin"}:
        raise ValueError(f"where: {key} takes one of $eq $ne $in $nin, or bounds of $lt $lte $gt $gte")
    operator = operators[0]
    operand = condition[operator]
    if operator in {"$eq", "$ne"}:
        operand = [operand]
    elif not isinstance(operand, list | tuple) or not operand:
        raise ValueError(f"where: {operator} of {key} takes a list of at least one value")
    wanted = {(_kind(value), value) for value in (_operand(key, value) for value in operand)}
    if operator in {"$ne", "$nin"}:
        return lambda stored: (_kind(stored), stored) not in wanted
    return lambda stored: (_kind(stored), stored) in wanted


def _operand(key: str, value: object) -> MetadataValue:
    if not isinstance(value, str | int | float):
        raise ValueError(f"where: {key} must be compared with a string, a number or a boolean")
    if isinstance(value, str) and len(value.encode()) > VECTOR_INDEXED_STRING_BYTES:
        raise ValueError(
            f"where: {key} is indexed on its first {VECTOR_INDEXED_STRING_BYTES} bytes, fewer than the value has;"
            " store and ask for a hash"
        )
    return value


def _kind(value: MetadataValue | None) -> type:
    return float if isinstance(value, int) and not isinstance(value, bool) else type(value)


def _as_indexed(value: MetadataValue | None) -> MetadataValue | None:
    if isinstance(value, str):
        return value.encode()[:VECTOR_INDEXED_STRING_BYTES].decode("utf-8", "ignore")
    return value


def _check_id(vector_id: str) -> None:
    try:
        size = len(vector_id.encode())
    except UnicodeEncodeError:
        raise ValueError("id: holds a lone surrogate") from None
    if not 1 <= size <= VECTOR_MAX_ID_BYTES:
        raise ValueError(f"id: must have 1 to {VECTOR_MAX_ID_BYTES} bytes in UTF-8")


def _check_ids(operation: str, ids: Sequence[str], limit: int) -> None:
    if len(ids) > limit:
        raise ValueError(f"{operation}: {len(ids)} ids are more than {limit}; send them in parts")
    for vector_id in ids:
        _check_id(vector_id)


def _check_key(field: str, key: str) -> None:
    if not key or len(key) > MAX_KEY_CHARS or key.startswith("$") or "." in key or '"' in key:
        raise ValueError(f"{field}: keys have 1 to {MAX_KEY_CHARS} characters, no dot, no quote and no leading $")


def _metadata_json(metadata: Mapping[str, MetadataValue]) -> str:
    for key, value in metadata.items():
        _check_key("metadata", key)
        if not isinstance(value, str | int | float):
            raise ValueError(f"metadata: {key} must be a string, a number or a boolean")
    try:
        document = _compact_json(metadata)
    except ValueError:
        raise ValueError("metadata: numbers must be finite and text free of lone surrogates") from None
    if len(document) > VECTOR_MAX_METADATA_BYTES:
        raise ValueError(f"metadata: {len(document)} bytes of JSON are more than {VECTOR_MAX_METADATA_BYTES}")
    return document.decode()


def _compact_json(value: object) -> bytes:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_mapping)
    return text.encode()


def _mapping(value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError("not JSON")


def unique(ids: Iterable[str]) -> list[str]:
    """``ids`` without repeats, in their first order."""
    return list(dict.fromkeys(ids))
