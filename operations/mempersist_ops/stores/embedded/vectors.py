"""The vector index in a SQLite file, searched exactly."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mempersist.limits import VECTOR_METADATA_INDEXES
from mempersist.ports import IndexUnavailable, Vector, VectorFilter, VectorIndexInfo, VectorMatch, VectorRecord
from mempersist.rules.vectors import (
    IndexedValues,
    IndexShape,
    Matcher,
    check_delete,
    check_get,
    check_query,
    check_records,
    compile_filter,
    indexed_values,
    unique,
)
from mempersist_ops.stores import sqlite
from mempersist_ops.stores.embedded.matrix import FREE, Matrix

T = TypeVar("T")

FORMAT = 1
_STORED = np.dtype("<f4")
_ROWS_AT_ONCE = 4096

# A slot is a row of the matrix. A deleted vector leaves its slot with no id, to be used again; `seq` is the mutation
# that last touched the slot, so that whoever keeps a matrix fetches only what changed.
_SCHEMA = """
CREATE TABLE IF NOT EXISTS shape (format INTEGER NOT NULL, dimensions INTEGER NOT NULL, indexed TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS state (seq INTEGER NOT NULL, count INTEGER NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS facets (facet INTEGER PRIMARY KEY, indexed_values TEXT NOT NULL UNIQUE) STRICT;
CREATE TABLE IF NOT EXISTS vectors (
  slot INTEGER PRIMARY KEY,
  seq INTEGER NOT NULL,
  id TEXT UNIQUE,
  facet INTEGER NOT NULL,
  embedding BLOB,
  metadata TEXT
) STRICT;
CREATE INDEX IF NOT EXISTS vectors_changed ON vectors (seq);
CREATE INDEX IF NOT EXISTS vectors_free ON vectors (slot) WHERE id IS NULL;
"""
_IN = "IN (SELECT value FROM json_each(?))"


class SqliteVectorIndex:
    """:class:`mempersist.ports.VectorIndex` over one file: Vectorize's limits and filters, exact results, no delay.

    The file holds the truth. The first query loads all vectors into a matrix (``4 * dimensions`` bytes each), and
    later ones fetch what changed since, whoever changed it; an instance that never queries holds no vectors. Equal
    scores are ordered by id. A mutation that returned survives a power cut. Several instances, in threads or processes,
    may use one file. A call that is cancelled may still run to its end.
    """

    def __init__(
        self,
        path: Path,
        dimensions: int,
        *,
        indexed: Sequence[str] = VECTOR_METADATA_INDEXES,
        busy_seconds: float = sqlite.BUSY_SECONDS,
    ) -> None:
        """Open ``path``, creating the file.

        :param indexed: the metadata keys that filters may name.
        :raises ValueError: when the file was made with other dimensions or keys.
        :raises IndexUnavailable: when the file cannot be opened.
        """
        self._shape = IndexShape(dimensions, tuple(indexed))
        with _translated():
            self._writing = sqlite.open_database(path, busy_seconds=busy_seconds)
            try:
                _create(self._writing, self._shape)
                self._reading = sqlite.open_database(path, busy_seconds=busy_seconds, query_only=True)
            except BaseException:
                self._writing.close()
                raise
        self._write_thread = ThreadPoolExecutor(1, thread_name_prefix="vectors-write")
        self._read_thread = ThreadPoolExecutor(1, thread_name_prefix="vectors-read")
        self._facet_numbers: dict[str, int] = {}  # of the write thread; those below are of the read thread
        self._matrix = Matrix(dimensions)
        self._seen_seq = 0
        self._facet_values: list[IndexedValues | None] = [None]

    def close(self) -> None:
        """Wait for calls that run, then close the file. The instance cannot be used again."""
        self._read_thread.shutdown()
        self._write_thread.shutdown()
        self._reading.close()
        self._writing.close()

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        documents = check_records(records, self._shape)
        if records:
            vectors = _as_floats([record.values for record in records])
            await self._run(self._write_thread, self._upsert, records, vectors, documents)

    async def delete(self, ids: Sequence[str]) -> None:
        check_delete(ids)
        if ids:
            await self._run(self._write_thread, self._delete, ids)

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        check_query(vector, top_k, self._shape, return_metadata=return_metadata)
        matches = compile_filter(where, self._shape)
        target = _as_floats([vector])[0]
        return await self._run(self._read_thread, self._query, target, top_k, matches, return_metadata)

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        check_get(ids)
        return await self._run(self._read_thread, self._get, ids)

    async def describe(self) -> VectorIndexInfo:
        return await self._run(self._read_thread, self._describe)

    async def _run(self, thread: ThreadPoolExecutor, call: Callable[..., T], *arguments: Any) -> T:
        with _translated():
            return await asyncio.get_running_loop().run_in_executor(thread, call, *arguments)

    # ---------------------------------------------------------------- in the write thread

    def _upsert(self, records: Sequence[VectorRecord], vectors: NDArray[np.float32], documents: list[str]) -> None:
        last_of = {record.id: place for place, record in enumerate(records)}
        keys = [_json(indexed_values(records[place].metadata, self._shape)) for place in last_of.values()]
        with _transaction(self._writing, "BEGIN IMMEDIATE") as connection:
            numbered = _number_facets(connection, set(keys).difference(self._facet_numbers))
            facets = self._facet_numbers | numbered
            slots = dict(connection.execute(f"SELECT id, slot FROM vectors WHERE id {_IN}", (_json(list(last_of)),)))
            new = [vector_id for vector_id in last_of if vector_id not in slots]
            slots.update(zip(new, _free_slots(connection, len(new)), strict=True))
            (seq,) = connection.execute(
                "UPDATE state SET seq = seq + 1, count = count + ? RETURNING seq", (len(new),)
            ).fetchone()
            connection.executemany(
                "INSERT INTO vectors (slot, seq, id, facet, embedding, metadata) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (slot) DO UPDATE SET seq = excluded.seq, id = excluded.id, facet = excluded.facet,"
                " embedding = excluded.embedding, metadata = excluded.metadata",
                (
                    (slots[vector_id], seq, vector_id, facets[key], vectors[place].tobytes(), documents[place])
                    for (vector_id, place), key in zip(last_of.items(), keys, strict=True)
                ),
            )
        self._facet_numbers = facets

    def _delete(self, ids: Sequence[str]) -> None:
        with _transaction(self._writing, "BEGIN IMMEDIATE") as connection:
            gone = connection.execute(
                "UPDATE vectors SET id = NULL, embedding = NULL, metadata = NULL, facet = ?,"
                f" seq = (SELECT seq + 1 FROM state) WHERE id {_IN}",
                (FREE, _json(list(ids))),
            ).rowcount
            if gone:
                connection.execute("UPDATE state SET seq = seq + 1, count = count - ?", (gone,))

    # ---------------------------------------------------------------- in the read thread

    def _query(
        self, target: NDArray[np.float32], top_k: int, matches: Matcher, return_metadata: bool
    ) -> tuple[VectorMatch, ...]:
        # One transaction, so that a slot still means what the matrix holds when its id is looked up.
        with _transaction(self._reading, "BEGIN") as connection:
            self._catch_up(connection)
            allowed = np.fromiter((values is not None and matches(values) for values in self._facet_values), np.bool_)
            scores = dict(self._matrix.best(target, allowed, top_k))
            rows = connection.execute(f"SELECT slot, id FROM vectors WHERE slot {_IN}", (_json(list(scores)),))
            best = sorted((-scores[slot], vector_id) for slot, vector_id in rows)[:top_k]
            metadata: Mapping[str, str] = {}
            if return_metadata:
                found = _json([vector_id for _, vector_id in best])
                metadata = dict(connection.execute(f"SELECT id, metadata FROM vectors WHERE id {_IN}", (found,)))
        return tuple(
            VectorMatch(vector_id, -score + 0.0, json.loads(metadata[vector_id]) if return_metadata else {})
            for score, vector_id in best
        )

    def _catch_up(self, connection: sqlite3.Connection) -> None:
        """Bring the matrix to the state of the transaction."""
        (seq,) = connection.execute("SELECT seq FROM state").fetchone()
        if seq == self._seen_seq:
            return
        for facet, values in connection.execute(
            "SELECT facet, indexed_values FROM facets WHERE facet >= ? ORDER BY facet", (len(self._facet_values),)
        ):
            self._facet_values.extend([None] * (facet - len(self._facet_values)))
            self._facet_values.append(tuple(json.loads(values)))
        columns = "SELECT slot, facet, embedding FROM vectors"
        if self._seen_seq:
            cursor = connection.execute(f"{columns} WHERE seq > ?", (self._seen_seq,))
        else:
            (last,) = connection.execute("SELECT max(slot) FROM vectors").fetchone()
            self._matrix.reserve((last or 0) + 1)
            cursor = connection.execute(columns)
        empty = bytes(4 * self._shape.dimensions)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            slots, facets, blobs = zip(*rows, strict=True)
            vectors = np.frombuffer(b"".join(blob or empty for blob in blobs), _STORED)
            self._matrix.put(np.array(slots), np.array(facets), vectors.reshape(len(rows), -1))
        self._seen_seq = seq

    def _get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        rows = self._reading.execute(f"SELECT id, embedding, metadata FROM vectors WHERE id {_IN}", (_json(list(ids)),))
        found = {
            vector_id: VectorRecord(vector_id, np.frombuffer(blob, _STORED).tolist(), json.loads(metadata))
            for vector_id, blob, metadata in rows
        }
        return tuple(found[vector_id] for vector_id in unique(ids) if vector_id in found)

    def _describe(self) -> VectorIndexInfo:
        (count,) = self._reading.execute("SELECT count FROM state").fetchone()
        return VectorIndexInfo(self._shape.dimensions, count)


def _create(connection: sqlite3.Connection, shape: IndexShape) -> None:
    with _transaction(connection, "BEGIN IMMEDIATE"):
        for statement in _SCHEMA.split(";\n"):
            connection.execute(statement)
        expected = (FORMAT, shape.dimensions, _json(shape.indexed))
        found = connection.execute("SELECT format, dimensions, indexed FROM shape").fetchone()
        if found is None:
            connection.execute("INSERT INTO shape (format, dimensions, indexed) VALUES (?, ?, ?)", expected)
            connection.execute("INSERT INTO state (seq, count) VALUES (0, 0)")
        elif found != expected:
            raise ValueError(
                f"the vector index file has format {found[0]}, {found[1]} dimensions and metadata indexes {found[2]};"
                f" wanted are format {FORMAT}, {shape.dimensions} and {expected[2]}: remove the file and reindex"
            )


def _number_facets(connection: sqlite3.Connection, keys: Collection[str]) -> dict[str, int]:
    """The facet of each combination of indexed values in ``keys``, numbering those that are new to the file."""
    connection.executemany(
        "INSERT INTO facets (indexed_values) VALUES (?) ON CONFLICT DO NOTHING", ((key,) for key in sorted(keys))
    )
    rows = connection.execute(
        f"SELECT indexed_values, facet FROM facets WHERE indexed_values {_IN}", (_json(list(keys)),)
    )
    return dict(rows)


def _free_slots(connection: sqlite3.Connection, count: int) -> list[int]:
    """``count`` slots for new vectors, those of deleted ones first."""
    reused = [
        slot
        for (slot,) in connection.execute("SELECT slot FROM vectors WHERE id IS NULL ORDER BY slot LIMIT ?", (count,))
    ]
    (last,) = connection.execute("SELECT coalesce(max(slot), -1) FROM vectors").fetchone()
    return reused + list(range(last + 1, last + 1 + count - len(reused)))


def _as_floats(vectors: Sequence[Vector]) -> NDArray[np.float32]:
    """``vectors`` in the precision that is stored. :raises ValueError: for what is not a finite float32."""
    try:
        with np.errstate(over="ignore"):
            floats = np.asarray(vectors, _STORED)
    except (TypeError, ValueError):
        raise ValueError("vector: must hold numbers only") from None
    if not np.isfinite(floats).all():
        raise ValueError("vector: must hold finite numbers that fit a 32-bit float")
    return floats


def _json(values: Sequence[object]) -> str:
    return json.dumps(values, ensure_ascii=False)


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[sqlite3.Connection]:
    connection.execute(begin)
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", type(error).__name__)
        raise IndexUnavailable(f"vector index: {sqlite.reason(error) or name}") from None
