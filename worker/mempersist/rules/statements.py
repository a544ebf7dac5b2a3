"""What D1 takes as the values of a statement, and what may be repeated of its words when it refuses one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final

from mempersist.limits import SQL_MAX_BOUND_PARAMETERS, SQL_MAX_VALUE_BYTES
from mempersist.ports import CatalogError, SqlValue, UniqueViolation

MAX_SAFE_INTEGER = 2**53 - 1

_UNIQUE: Final = re.compile(r"UNIQUE constraint failed: [\w., ]+")
# Words of D1 that can hold names of the schema and SQL of ours, but no bound value.
_SAYABLE: Final = re.compile(
    r"(?:NOT NULL|FOREIGN KEY) constraint failed(?:: [\w.]+)?|CHECK constraint failed"
    r"|cannot store \w+ value in \w+ column [\w.]+|no such (?:table|column|function|module|index): (?P<name>[\w.]+)"
    r"|malformed JSON|integer overflow|datatype mismatch|LIKE or GLOB pattern too complex|Wrong number of parameter"
    r"|too many (?:SQL variables|columns|terms in compound SELECT|arguments on function)|not authorized"
    r"|string or blob too big|statement too long|Expression tree is too large|Network connection lost"
    r"|storage operation exceeded timeout|reset because its code was updated|D1 DB is overloaded"
    r"|Exceeded maximum DB size"
)
_TOO_BIG: Final = "a value, a row or the statement is larger than the database takes"
_BINDINGS: Final = "the number of bindings is not that of the placeholders"
_PLAIN: Final = {"string or blob too big": _TOO_BIG, "Wrong number of parameter": _BINDINGS}

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


def refusal(words: str, sql: str) -> CatalogError:
    """The port's error for D1's, in D1's words only where those are fixed or stand in ``sql``, and so hold no data."""
    unique = _UNIQUE.search(words)
    if unique:
        return UniqueViolation(unique.group())
    sayable = _SAYABLE.search(words)
    if sayable and (sayable["name"] or "") in sql:
        return CatalogError(_PLAIN.get(sayable.group(), sayable.group()))
    code = re.search(r"SQLITE_[A-Z_]+", words)
    return CatalogError(f"the database refused the statement ({code.group() if code else 'no code'})")
