"""The catalog in memory, for tests and scratch work."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from mempersist.ports import Row, SqlValue, Statement, StatementResult
from mempersist_ops.stores.d1 import D1Connection, reads_only


class MemoryCatalog:
    """:class:`mempersist.ports.Catalog` that ends with the object; for one thread.

    It takes and refuses what the embedded catalog does. Each call gives other tasks a turn first, as a call to a
    database elsewhere would.
    """

    def __init__(self) -> None:
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        connection.execute("PRAGMA foreign_keys = ON")
        self._connection = D1Connection(connection)

    def close(self) -> None:
        self._connection.close()

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        (result,) = await self.batch((Statement(sql, tuple(params)),))
        return result.rows

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        await asyncio.sleep(0)
        if not statements:
            return ()
        return self._connection.run(statements, "BEGIN" if all(map(reads_only, statements)) else "BEGIN IMMEDIATE")
