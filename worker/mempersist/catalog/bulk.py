"""Rows in bulk under D1's limits: one JSON parameter carries many rows, and no parameter nears the value limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from mempersist.limits import SQL_MAX_VALUE_BYTES
from mempersist.ports import SqlValue, Statement
from mempersist.text import utf8_safe

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
# A bound value and its row share one limit with SQLite's own bookkeeping; stay clear of it.
_MAX_PARAMETER_BYTES = SQL_MAX_VALUE_BYTES // 2


def json_parameters(items: Iterable[object]) -> Iterator[str]:
    """``items`` as JSON arrays of at most about a megabyte each, in order; none for no items."""
    batch: list[str] = []
    size = 0
    for item in items:
        text = utf8_safe(_encoder.encode(item))
        length = len(text.encode()) + 1
        if batch and size + length > _MAX_PARAMETER_BYTES:
            yield f"[{','.join(batch)}]"
            batch, size = [], 0
        batch.append(text)
        size += length
    if batch:
        yield f"[{','.join(batch)}]"


def insert(
    table: str, columns: Sequence[str], rows: Iterable[Sequence[SqlValue]], *, on_conflict: str = ""
) -> list[Statement]:
    """INSERT statements for ``rows``; ``on_conflict`` is appended as an UPSERT clause.

    ``table``, ``columns`` and ``on_conflict`` are constants of the program, never data.
    """
    values = ", ".join(f"value ->> {index}" for index in range(len(columns)))
    # "WHERE true" keeps the parser from reading ON CONFLICT as a join condition.
    sql = (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {values} FROM json_each(?) WHERE true {on_conflict}".strip()
    )
    return [Statement(sql, (parameter,)) for parameter in json_parameters(list(row) for row in rows)]


def delete(table: str, column: str, values: Iterable[str]) -> list[Statement]:
    """DELETE statements for the rows whose ``column`` is one of ``values``."""
    sql = f"DELETE FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
    return [Statement(sql, (parameter,)) for parameter in json_parameters(values)]
