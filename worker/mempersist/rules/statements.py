"""What D1 takes as the values of a statement."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mempersist.limits import SQL_MAX_BOUND_PARAMETERS, SQL_MAX_VALUE_BYTES
from mempersist.ports import CatalogError, SqlValue

MAX_SAFE_INTEGER = 2**53 - 1

Bound = str | float | bytes | None


def bound(params: Sequence[SqlValue]) -> tuple[Bound, ...]:
    """``params`` as D1 binds them: numbers as JavaScript has them, so an integer becomes a float.

    :raises CatalogError: naming the place of one that cannot be bound, never its value.
    """
    if len(params) > SQL_MAX_BOUND_PARAMETERS:
        raise CatalogError(
            f"{len(params)} parameters are more than {SQL_MAX_BOUND_PARAMETERS}; pass a list as one JSON parameter"
        )
    return tuple(_bound(value, place) for place, value in enumerate(params, 1))


def _bound(value: SqlValue, place: int) -> Bound:
    if value is None:
        return None
    if isinstance(value, bool):
        raise CatalogError(f"parameter {place}: bool is refused; bind 1 or 0")
    if isinstance(value, int):
        if abs(value) > MAX_SAFE_INTEGER:
            raise CatalogError(f"parameter {place}: an integer beyond 2^53 - 1; bind it as text")
        return float(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise CatalogError(f"parameter {place}: NaN and infinities are refused")
        return value
    if not isinstance(value, str | bytes):
        raise CatalogError(f"parameter {place}: {type(value).__name__} cannot be bound; use str, int, float, bytes")
    if _size(value, place) > SQL_MAX_VALUE_BYTES:
        raise CatalogError(f"parameter {place}: larger than {SQL_MAX_VALUE_BYTES} bytes; split it")
    return value


def _size(value: str | bytes, place: int) -> int:
    try:
        return len(value if isinstance(value, bytes) else value.encode())
    except UnicodeEncodeError:
        raise CatalogError(f"parameter {place}: a lone surrogate; pass text through utf8_safe") from None
