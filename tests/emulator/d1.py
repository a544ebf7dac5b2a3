"""D1: databases that are SQLite files held to D1's rules, and SQL over REST."""

from __future__ import annotations

import re
import sqlite3
import time
import uuid
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mempersist import timestamps
from mempersist.ports import CatalogError, Clock, SqlValue, Statement, StatementResult
from mempersist_ops.sql_text import split_statements
from mempersist_ops.stores import sqlite
from mempersist_ops.stores.d1 import D1Connection, reads_only
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result, page_of

_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)
_SAFE = 2**53


class _SqlFailure(Exception):
    """SQLite's own words, data and all, as D1 passes them on."""


@dataclass(frozen=True, slots=True)
class _Ran:
    columns: list[str]
    rows: list[tuple[Any, ...]]
    changes: int
    last_row_id: int
    milliseconds: float


class _Connection(D1Connection):
    """Keeps what the REST answers say beyond the catalog's: column names, order, the last row's id, raw errors."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        super().__init__(connection)
        self.ran: list[_Ran] = []

    def data_version(self) -> int:
        """Counts the changes that were made."""
        return self._connection.total_changes

    def _execute(self, sql: str, params: Any) -> StatementResult:
        began = time.perf_counter()
        before = self._connection.total_changes
        try:
            with closing(self._connection.execute(sql, params)) as cursor:
                rows, last = cursor.fetchall(), cursor.lastrowid or 0
                columns = [column[0] for column in cursor.description or ()]
        except sqlite3.Error as error:
            raise self._translate(error, sql, len(params)) from None
        changes = self._connection.total_changes - before
        self.ran.append(_Ran(columns, rows, changes, last, (time.perf_counter() - began) * 1000))
        return StatementResult((), changes)

    def _translate(self, error: sqlite3.Error, sql: str, parameters: int) -> Exception:
        del sql, parameters
        name = getattr(error, "sqlite_errorname", None)
        if name is None:
            return _SqlFailure("Wrong number of parameter bindings for SQL query.")
        kind = "SQLITE_CONSTRAINT" if name.startswith("SQLITE_CONSTRAINT") else name
        return _SqlFailure(f"{error}: {kind}" + (f" (extended: {name})" if kind != name else ""))


@dataclass(slots=True)
class _Database:
    about: dict[str, Any]
    path: Path
    connection: _Connection


class Databases:
    """The databases of every account; each is a file in ``directory``."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        self._databases: dict[tuple[str, str], _Database] = {}

    def close(self) -> None:
        for database in self._databases.values():
            database.connection.close()

    def routes(self) -> list[Route]:
        base = "/d1/database"
        return [
            Route("POST", base, "D1", "Write", self._create),
            Route("GET", base, "D1", "Read", self._list),
            Route("GET", f"{base}/{{database_id}}", "D1", "Read", self._get),
            Route("PUT", f"{base}/{{database_id}}", "D1", "Write", self._update),
            Route("PATCH", f"{base}/{{database_id}}", "D1", "Write", self._update),
            Route("DELETE", f"{base}/{{database_id}}", "D1", "Write", self._delete),
            Route("POST", f"{base}/{{database_id}}/query", "D1", "Write", self._query),
            Route("POST", f"{base}/{{database_id}}/raw", "D1", "Write", self._raw),
            Route("GET", f"{base}/{{database_id}}/time_travel/bookmark", "D1", "Read", self._bookmark),
        ]

    async def _create(self, call: Call) -> Result:
        given = call.request.json_object()
        name = given.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ApiError(400, 7400, "The request is malformed: invalid property name")
        if any(database.about["name"] == name for database in self._of(call.account)):
            headers = {"x-should-retry": "false"}
            raise ApiError(400, 7502, f"A database with that name already exists: {name}", headers)
        made = str(uuid.uuid4())
        about = {
            "uuid": made,
            "name": name,
            "version": "production",
            "created_at": timestamps.from_ms(self._clock.now_ms()),
            "jurisdiction": given.get("jurisdiction"),
            "read_replication": self._replication(given.get("read_replication", {"mode": "disabled"})),
        }
        path = self._directory / f"{made}.sqlite3"
        connection = _Connection(sqlite.open_database(path, synchronous="NORMAL"))
        self._databases[call.account, made] = _Database(about, path, connection)
        return Result(self._details(self._databases[call.account, made]))

    async def _list(self, call: Call) -> Result:
        wanted = call.request.arguments.get("name", "")
        found = [database.about for database in self._of(call.account) if wanted in database.about["name"]]
        shown = [{key: value for key, value in about.items() if key != "read_replication"} for about in found]
        return page_of(shown, call.request, per_page=1000, most=10_000)

    async def _get(self, call: Call, database_id: str) -> Result:
        return Result(self._details(self._database(call.account, database_id)))

    async def _update(self, call: Call, database_id: str) -> Result:
        database = self._database(call.account, database_id)
        given = call.request.json_object()
        if "read_replication" in given or call.request.method == "PUT":
            database.about["read_replication"] = self._replication(given.get("read_replication"))
        return Result(self._details(database))

    async def _delete(self, call: Call, database_id: str) -> Result:
        database = self._database(call.account, database_id)
        del self._databases[call.account, database_id]
        database.connection.close()
        for suffix in ("", "-wal", "-shm"):
            database.path.with_name(database.path.name + suffix).unlink(missing_ok=True)
        return Result(None)

    async def _query(self, call: Call, database_id: str) -> Result:
        database, ran = self._run(call, database_id)
        rows = [[dict(zip(each.columns, row, strict=True)) for row in each.rows] for each in ran]
        return self._answer(database, ran, [[_javascript_row(row) for row in found] for found in rows])

    async def _raw(self, call: Call, database_id: str) -> Result:
        database, ran = self._run(call, database_id)
        found = [
            {"columns": each.columns, "rows": [[_javascript(v) for v in row] for row in each.rows]} for each in ran
        ]
        return self._answer(database, ran, found)

    async def _bookmark(self, call: Call, database_id: str) -> Result:
        database = self._database(call.account, database_id)
        version = database.connection.data_version()
        return Result({"bookmark": f"{version:08x}-00000000-{database_id[:8]}-{database_id.replace('-', '')}"})

    def _run(self, call: Call, database_id: str) -> tuple[_Database, list[_Ran]]:
        database = self._database(call.account, database_id)
        statements = _statements(call.request.json_object())
        connection = database.connection
        connection.ran = []
        try:
            connection.run(statements, "BEGIN" if all(map(reads_only, statements)) else "BEGIN IMMEDIATE")
        except (CatalogError, _SqlFailure) as error:
            raise ApiError(400, 7500, str(error)) from None
        return database, connection.ran

    def _answer(self, database: _Database, ran: Sequence[_Ran], results: Sequence[Any]) -> Result:
        size = database.path.stat().st_size
        return Result(
            [
                {"results": found, "success": True, "meta": _meta(each, size)}
                for each, found in zip(ran, results, strict=True)
            ]
        )

    def exists(self, account: str, database_id: str) -> bool:
        return (account, database_id) in self._databases

    def _of(self, account: str) -> list[_Database]:
        return [database for (owner, _), database in self._databases.items() if owner == account]

    def _database(self, account: str, database_id: str) -> _Database:
        found = self._databases.get((account, database_id))
        if found is None:
            raise ApiError(404, 7404, f"The database {database_id} could not be found")
        return found

    def _details(self, database: _Database) -> dict[str, Any]:
        tables = "SELECT name FROM sqlite_master WHERE type = 'table'"
        database.connection.ran = []
        database.connection.run([Statement(tables)], "BEGIN")
        return {
            **database.about,
            "file_size": database.path.stat().st_size,
            "num_tables": len(database.connection.ran[0].rows),
        }

    def _replication(self, given: Any) -> dict[str, str]:
        if not isinstance(given, dict) or given.get("mode") not in ("auto", "disabled"):
            raise ApiError(400, 7400, "The request is malformed: invalid property read_replication")
        return {"mode": given["mode"]}


def _statements(given: dict[str, Any]) -> list[Statement]:
    queries = given["batch"] if isinstance(given.get("batch"), list) else [given]
    statements: list[Statement] = []
    for query in queries:
        sql, params = (query.get("sql"), query.get("params") or []) if isinstance(query, dict) else (None, [])
        if not isinstance(sql, str) or not isinstance(params, list):
            raise ApiError(400, 7400, "The request is malformed: required property sql is missing")
        pieces = _split(sql)
        if len(pieces) > 1 and params:
            raise ApiError(400, 7500, "Params are only allowed with a single statement")
        statements += [Statement(piece, tuple(map(_value, params))) for piece in pieces]
    if not statements:
        raise ApiError(400, 7400, "The request is malformed: no SQL")
    return statements


def _split(sql: str) -> list[str]:
    """Each statement by itself; D1 runs those of one string as a batch."""
    try:
        pieces = list(split_statements(f"{sql}\n;"))
    except ValueError:
        return [sql]
    return [piece for piece in pieces if piece.strip()] or [sql]


def _value(given: Any) -> SqlValue:
    """A JSON value as D1 binds it; an array of bytes is a BLOB."""
    if isinstance(given, list):
        return bytes(given)
    if isinstance(given, bool):
        return int(given)
    if isinstance(given, int | float) and abs(given) >= _SAFE:
        return float(given)
    return given  # type: ignore[no-any-return]


def _javascript_row(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _javascript(value) for name, value in row.items()}


def _javascript(value: Any) -> Any:
    """A value as JavaScript writes it: one kind of number, a BLOB as a list of bytes."""
    if isinstance(value, bytes):
        return list(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _SAFE:
        return int(value)
    if isinstance(value, int) and abs(value) > _SAFE:
        return int(float(value))
    return value


def _meta(ran: _Ran, size: int) -> dict[str, Any]:
    """Rows read are those returned: SQLite in Python does not tell how many it scanned."""
    return {
        "served_by": "v3-prod",
        "served_by_region": "WEUR",
        "served_by_primary": True,
        "timings": {"sql_duration_ms": round(ran.milliseconds, 4)},
        "duration": round(ran.milliseconds, 4),
        "changes": ran.changes,
        "last_row_id": ran.last_row_id,
        "changed_db": ran.changes > 0,
        "size_after": size,
        "rows_read": len(ran.rows),
        "rows_written": ran.changes,
    }
