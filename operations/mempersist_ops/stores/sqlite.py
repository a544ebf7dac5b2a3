"""Opening SQLite files, and what SQLite's error codes mean for the person who runs the service."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path
from typing import Literal

Synchronous = Literal["FULL", "NORMAL"]

BUSY_SECONDS = 30.0
"""How long a call waits for another process that is writing before it gives up."""

_CACHE_KIB = 16 * 1024
_WAL_KEPT_BYTES = 64 * 1024 * 1024
_OPEN_RETRY_SECONDS = 0.01

_REASONS = {
    sqlite3.SQLITE_BUSY: "another process kept the database locked; try again when it is done",
    sqlite3.SQLITE_LOCKED: "another connection kept the database locked; try again when it is done",
    sqlite3.SQLITE_TOOBIG: "a value, a row or the statement is larger than the database takes",
    sqlite3.SQLITE_FULL: "the disk is full; free some space and try again",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write",
    sqlite3.SQLITE_CANTOPEN: "the file cannot be opened; check that its directory exists and may be written",
    sqlite3.SQLITE_READONLY: "the database file or its directory is read-only",
    sqlite3.SQLITE_CORRUPT: "the database file is damaged; remove it and rebuild it from the archive",
    sqlite3.SQLITE_NOTADB: "the file is not a SQLite database; remove it and rebuild it from the archive",
}


def open_database(
    path: Path,
    *,
    busy_seconds: float = BUSY_SECONDS,
    synchronous: Synchronous = "FULL",
    query_only: bool = False,
) -> sqlite3.Connection:
    """A connection in WAL mode without Python's implicit transactions, usable from any one thread at a time.

    A file that does not exist is created for its owner's eyes only. With ``query_only`` writes are refused.

    :raises sqlite3.Error: when the file cannot be opened, or is no database.
    """
    if not path.exists():
        try:
            path.touch(mode=0o600)
        except OSError as error:
            raise sqlite3.OperationalError(f"the file cannot be created: {error.strerror}") from None
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=512
    )
    try:
        _use_wal(connection, busy_seconds)
        connection.execute(f"PRAGMA synchronous = {synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit = {_WAL_KEPT_BYTES}")
        if query_only:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection, busy_seconds: float) -> None:
    # SQLite does not call its busy handler while it changes the journal mode, so two processes that open a new file
    # at once need this loop.
    deadline = time.monotonic() + busy_seconds
    while True:
        try:
            (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if primary_code(error) != sqlite3.SQLITE_BUSY or time.monotonic() >= deadline:
                raise
            time.sleep(_OPEN_RETRY_SECONDS)
            continue
        if mode != "wal":
            raise sqlite3.OperationalError("the file system does not support SQLite's WAL mode")
        return


def primary_code(error: sqlite3.Error) -> int | None:
    """SQLite's primary result code; None for an error that Python's module raised itself."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def reason(error: sqlite3.Error) -> str | None:
    """A sentence for a failure of the machine, without any of SQLite's own text; None for other errors."""
    code = primary_code(error)
    return None if code is None else _REASONS.get(code)
