"""D1 as the catalog."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyodide.ffi import JsException, jsnull, to_js

from bindings.ffi import from_json_value, message_of
from mempersist.limits import SQL_MAX_STATEMENT_BYTES
from mempersist.ports import CatalogError, Row, SqlValue, Statement, StatementResult
from mempersist.rules.statements import bound, refusal


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
    return refusal(message_of(error), sql)
