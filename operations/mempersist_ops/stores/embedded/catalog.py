"""The catalog in a SQLite file."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mempersist.ports import CatalogError, Row, SqlValue, Statement, StatementResult
from mempersist_ops.stores import sqlite
from mempersist_ops.stores.d1 import D1Connection, WriteRefusedError, reads_only


class SqliteCatalog:
    """:class:`mempersist.ports.Catalog` over one file, with D1's semantics and refusals (see ``stores/d1.py``).

    A batch that returned survives a power cut. Writes and reads have a connection and a thread each, so that a read
    sees the last committed state and does not wait for a batch in progress. Several instances, in threads or processes,
    may use one file: a writer waits its turn for ``busy_seconds``. ``changes`` counts as D1 does, with what triggers
    and cascades wrote. A call that is cancelled may still run to its end.
    """

    def __init__(
        self,
        path: Path,
        *,
        synchronous: sqlite.Synchronous = "FULL",
        busy_seconds: float = sqlite.BUSY_SECONDS,
    ) -> None:
        """Open ``path``, creating the file. :raises CatalogError: when that is not possible."""
        try:
            writing = sqlite.open_database(path, synchronous=synchronous, busy_seconds=busy_seconds)
            try:
                reading = sqlite.open_database(path, busy_seconds=busy_seconds, query_only=True)
            except BaseException:
                writing.close()
                raise
        except sqlite3.Error as error:
            raise CatalogError(f"catalog {path.name}: {sqlite.reason(error) or error}") from None
        self._writer = D1Connection(writing)
        self._reader = D1Connection(reading, query_only=True)
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="catalog-write")
        self._read_thread = ThreadPoolExecutor(1, thread_name_prefix="catalog-read")

    def close(self) -> None:
        """Wait for calls that run, then close the file. The instance cannot be used again."""
        self._read_thread.shutdown()
        self._write_thread.shutdown()
        self._reader.close()
        self._writer.close()

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        (result,) = await self.batch((Statement(sql, tuple(params)),))
        return result.rows

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        """As the port says; no statements are no work, though D1 itself refuses an empty batch."""
        if not statements:
            return ()
        loop = asyncio.get_running_loop()
        if all(map(reads_only, statements)):
            try:
                return await loop.run_in_executor(self._read_thread, self._reader.run, statements, "BEGIN")
            except WriteRefusedError:
                pass
        return await loop.run_in_executor(self._write_thread, self._writer.run, statements, "BEGIN IMMEDIATE")
