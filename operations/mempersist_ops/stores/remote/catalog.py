"""D1 as the catalog, over the REST API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from mempersist.limits import SQL_MAX_STATEMENT_BYTES
from mempersist.ports import CatalogError, Row, SqlValue, Statement, StatementResult
from mempersist.rules.statements import bound, refusal
from mempersist_ops.sql_text import split_statements, tokens
from mempersist_ops.stores.remote.rest import RestClient, RestError

_READS: Final = frozenset({"SELECT", "VALUES", "WITH", "EXPLAIN"})
_WRITES: Final = frozenset({"INSERT", "UPDATE", "DELETE", "REPLACE"})
_SQL_FAILED: Final = 7500


class D1RestCatalog:
    """:class:`mempersist.ports.Catalog` over the REST API of a D1 database. Reads are tried again, nothing else is.

    The API's description knows text parameters only; numbers, null and BLOBs as arrays of bytes are sent as its other
    clients do.
    """

    def __init__(self, client: RestClient, database_id: str) -> None:
        self._client = client
        self._path = f"/d1/database/{database_id}/query"

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        (result,) = await self.batch((Statement(sql, tuple(params)),))
        return result.rows

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        """As the port says, but a write whose answer was lost may have been done: the error then says so."""
        if not statements:
            return ()
        queries = [_query(statement, place, len(statements)) for place, statement in enumerate(statements, 1)]
        body = queries[0] if len(queries) == 1 else {"batch": queries}
        repeatable = all(_only_reads(statement.sql) for statement in statements)
        try:
            answer = await self._client.call("POST", self._path, body=body, repeatable=repeatable)
        except RestError as error:
            if _SQL_FAILED in error.codes:
                raise refusal(error.words, " ".join(statement.sql for statement in statements)) from None
            raise CatalogError(str(error)) from None
        if not isinstance(answer, list) or len(answer) != len(statements):
            raise CatalogError(f"D1 did not answer with {len(statements)} results; the statements may have run")
        try:
            return tuple(StatementResult(_rows(each["results"]), int(each["meta"]["changes"])) for each in answer)
        except (KeyError, TypeError, ValueError):
            raise CatalogError("D1 answered with something that is no result; the statements may have run") from None


def _query(statement: Statement, place: int, count: int) -> dict[str, Any]:
    try:
        problem = _problem(statement.sql)
        if problem is not None:
            raise CatalogError(problem)
        values = bound(statement.params)
    except CatalogError as error:
        if count > 1:
            error.args = (f"statement {place} of {count}: {error}",)
        raise
    return {"sql": statement.sql, "params": [list(value) if isinstance(value, bytes) else value for value in values]}


@lru_cache(maxsize=1024)
def _problem(sql: str) -> str | None:
    """What is wrong with a text that D1 would cut into several statements, or run none of."""
    if len(sql.encode("utf-8", "surrogatepass")) > SQL_MAX_STATEMENT_BYTES:
        return f"the statement is longer than {SQL_MAX_STATEMENT_BYTES} bytes; pass data as parameters"
    try:
        count = len(split_statements(f"{sql}\n;"))
    except ValueError:
        return "the statement is not complete, or holds a NUL character"
    return None if count == 1 else "there must be one SQL statement"


@lru_cache(maxsize=1024)
def _only_reads(sql: str) -> bool:
    words = [token.text.upper() for token in tokens(sql) if token.kind == "word"]
    return words[:1] != [] and words[0] in _READS and _WRITES.isdisjoint(words)


def _rows(rows: Sequence[Mapping[str, Any]]) -> tuple[Row, ...]:
    """A BLOB comes as a list of numbers, and nothing else comes as a list."""
    return tuple(
        {name: bytes(value) if isinstance(value, list) else value for name, value in row.items()} for row in rows
    )
