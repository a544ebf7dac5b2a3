"""D1 as the catalog."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from pyodide.ffi import JsException, jsnull, to_js

from bindings.ffi import from_json_value, message_of
from mempersist.limits import SQL_MAX_STATEMENT_BYTES
from mempersist.ports import CatalogError, Row, SqlValue, Statement, StatementResult, UniqueViolation
from mempersist.rules.statements import bound

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


class D1Catalog:
    """:class:`mempersist.ports.Catalog` over a D1 binding. D1 itself tries reads again; nothing else is."""

    def __init__(self, database: Any) -> None:
        self._database = database

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        statement = self._prepared(sql, params)
        try:
            result = await statement.all()
        except JsException as error:
            raise _translated(error, sql) from None
        return _rows(from_json_value(result.results))

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        if not statements:
            return ()
        prepared = []
        for place, statement in enumerate(statements, 1):
            try:
                prepared.append(self._prepared(statement.sql, statement.params))
            except CatalogError as error:
                if len(statements) > 1:
                    error.args = (f"statement {place} of {len(statements)}: {error}",)
                raise
        try:
            results = await self._database.batch(to_js(prepared))
        except JsException as error:
            raise _translated(error, " ".join(statement.sql for statement in statements)) from None
        return tuple(
            StatementResult(_rows(result.get("results") or ()), result["meta"]["changes"])
            for result in from_json_value(results)
        )

    def _prepared(self, sql: str, params: Sequence[SqlValue]) -> Any:
        if len(sql) > SQL_MAX_STATEMENT_BYTES:
            raise CatalogError(f"the statement is longer than {SQL_MAX_STATEMENT_BYTES} bytes; pass data as parameters")
        values = [_js_value(value) for value in bound(params)]
        try:
            statement = self._database.prepare(sql)
            return statement.bind(*values) if values else statement
        except JsException as error:
            raise _translated(error, sql) from None


def _js_value(value: str | float | bytes | None) -> Any:
    if value is None:
        return jsnull
    return to_js(value) if isinstance(value, bytes) else value


def _rows(rows: Sequence[dict[str, Any]]) -> tuple[Row, ...]:
    """A BLOB comes as a list of numbers, and nothing else comes as a list."""
    for row in rows:
        for name, value in row.items():
            if isinstance(value, list):
                row[name] = bytes(value)
    return tuple(rows)


def _translated(error: JsException, sql: str) -> CatalogError:
    """The port's error for D1's, in D1's words only where those are fixed or stand in ``sql``, and so hold no data."""
    message = message_of(error)
    unique = _UNIQUE.search(message)
    if unique:
        return UniqueViolation(unique.group())
    sayable = _SAYABLE.search(message)
    if sayable and (sayable["name"] or "") in sql:
        return CatalogError(_PLAIN.get(sayable.group(), sayable.group()))
    code = re.search(r"SQLITE_[A-Z_]+", message)
    return CatalogError(f"the database refused the statement ({code.group() if code else type(error).__name__})")
