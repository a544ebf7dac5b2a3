"""SQLite held to what D1 takes, so that SQL which runs on the local host runs on Cloudflare.

Enforced are D1's documented limits and what its runtime refuses: transactions other than a batch, ATTACH, temporary
tables, most PRAGMAs, functions and modules outside its list, named parameters, numbers that JavaScript cannot hold.
Stricter than D1: several statements in one string, booleans as parameters, and PRAGMAs that switch a connection.

As on D1 an integer parameter is bound as REAL: an INTEGER column turns it back, but ``? / 2`` is a division of reals
and ``typeof(?)`` is ``real``. Two differences in answers remain: D1 returns a REAL 1.0 as the integer 1, and integers
beyond 2^53 lose digits there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from typing import Literal

from mempersist.limits import SQL_MAX_BOUND_PARAMETERS, SQL_MAX_STATEMENT_BYTES, SQL_MAX_VALUE_BYTES
from mempersist.ports import CatalogError, Statement, StatementResult, UniqueViolation
from mempersist.rules.statements import Bound, bound
from mempersist_ops.sql_text import tokens
from mempersist_ops.stores import sqlite

MAX_COLUMNS = 100
MAX_FUNCTION_ARGUMENTS = 32
MAX_COMPOUND_SELECT = 5
MAX_EXPRESSION_DEPTH = 100
MAX_LIKE_PATTERN_BYTES = 50

_LIMITS = (
    (sqlite3.SQLITE_LIMIT_LENGTH, SQL_MAX_VALUE_BYTES),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, SQL_MAX_STATEMENT_BYTES),
    (sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, SQL_MAX_BOUND_PARAMETERS),
    (sqlite3.SQLITE_LIMIT_COLUMN, MAX_COLUMNS),
    (sqlite3.SQLITE_LIMIT_FUNCTION_ARG, MAX_FUNCTION_ARGUMENTS),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, MAX_COMPOUND_SELECT),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, MAX_EXPRESSION_DEPTH),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, MAX_LIKE_PATTERN_BYTES),
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
)
_READ_KEYWORDS = frozenset({"SELECT", "WITH", "VALUES", "EXPLAIN"})
_REFUSED_KEYWORDS = frozenset(
    {"BEGIN", "COMMIT", "END", "ROLLBACK", "SAVEPOINT", "RELEASE", "ATTACH", "DETACH", "VACUUM"}
)
# D1 also lets a few connection switches through; here a connection is shared, so they stay refused.
_PRAGMAS = frozenset(
    {
        "data_version",
        "defer_foreign_keys",
        "foreign_key_check",
        "foreign_key_list",
        "foreign_keys",
        "index_info",
        "index_list",
        "index_xinfo",
        "optimize",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    }
)
_MODULES = frozenset({"fts5", "fts5vocab", "rtree"})
_ABSENT_TABLES = frozenset({"dbstat", "sqlite_dbpage", "sqlite_stmt"})
_FUNCTION_NAMES = """
abs changes char coalesce format glob hex ifnull iif instr last_insert_rowid length like likelihood likely lower ltrim
nullif printf quote random randomblob replace round rtrim sign soundex substr substring total_changes trim typeof
unicode unlikely upper zeroblob

avg count cume_dist dense_rank first_value group_concat lag last_value lead max min nth_value ntile percent_rank rank
row_number sum total

current_date current_time current_timestamp date datetime julianday strftime time unixepoch

acos acosh asin asinh atan atan2 atanh ceil cos cosh degrees exp floor ln log log2 mod pi pow radians sin sinh sqrt
tan tanh trunc

-> ->> json json_array json_array_length json_each json_extract json_group_array json_group_object json_insert
json_object json_patch json_quote json_remove json_replace json_set json_tree json_type json_valid

bm25 highlight match snippet

sqlite_drop_column sqlite_rename_column sqlite_rename_quotefix sqlite_rename_table sqlite_rename_test
"""
_FUNCTIONS = frozenset(_FUNCTION_NAMES.split())
_TEMP_ACTIONS = frozenset(
    {
        sqlite3.SQLITE_CREATE_TEMP_INDEX,
        sqlite3.SQLITE_CREATE_TEMP_TABLE,
        sqlite3.SQLITE_CREATE_TEMP_TRIGGER,
        sqlite3.SQLITE_CREATE_TEMP_VIEW,
        sqlite3.SQLITE_DROP_TEMP_INDEX,
        sqlite3.SQLITE_DROP_TEMP_TABLE,
        sqlite3.SQLITE_DROP_TEMP_TRIGGER,
        sqlite3.SQLITE_DROP_TEMP_VIEW,
    }
)
_UNIQUE_CODES = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID}
)
# Constraints whose message may be made of data: RAISE takes an expression in newer versions.
_FREE_TEXT_CODES = frozenset(
    {sqlite3.SQLITE_CONSTRAINT_TRIGGER, sqlite3.SQLITE_CONSTRAINT_FUNCTION, sqlite3.SQLITE_CONSTRAINT_VTAB}
)
_FIXED_TEXTS = frozenset(
    {"malformed JSON", "integer overflow", "datatype mismatch", "LIKE or GLOB pattern too complex"}
)

Begin = Literal["BEGIN", "BEGIN IMMEDIATE"]


class WriteRefusedError(Exception):
    """A statement would write, and the connection only reads."""


@lru_cache(maxsize=1024)
def _inspect(sql: str) -> tuple[str, str | None]:
    """The first word of ``sql`` in upper case, and what is wrong with its text."""
    if len(sql.encode("utf-8", "surrogatepass")) > SQL_MAX_STATEMENT_BYTES:
        return "", f"the statement is longer than {SQL_MAX_STATEMENT_BYTES} bytes; pass data as parameters"
    keyword = ""
    for token in tokens(sql):
        if not keyword and token.text != ";":
            keyword = token.text.upper()
        if token.kind == "parameter" and not token.text.startswith("?"):
            return keyword, "named parameters are refused; write ? or ?1"
    if not keyword:
        return keyword, "there is no SQL statement"
    if keyword in _REFUSED_KEYWORDS:
        return keyword, f"{keyword} is refused; a batch is the only transaction"
    return keyword, None


def reads_only(statement: Statement) -> bool:
    """Whether the statement begins like one that only reads; ``WITH`` may turn out to write."""
    return _inspect(statement.sql)[0] in _READ_KEYWORDS


class D1Connection:
    """A SQLite connection that refuses what D1 refuses. It blocks, and serves one thread at a time.

    :param connection: in autocommit mode with foreign keys on; owned from now on.
    :param query_only: whether the connection was opened to read only.
    """

    def __init__(self, connection: sqlite3.Connection, *, query_only: bool = False) -> None:
        for category, limit in _LIMITS:
            connection.setlimit(category, limit)
        connection.set_authorizer(self._authorize)
        self._connection = connection
        self._query_only = query_only
        self._denied: str | None = None

    def close(self) -> None:
        self._connection.close()

    def run(self, statements: Sequence[Statement], begin: Begin) -> tuple[StatementResult, ...]:
        """Run ``statements`` as one transaction: all or none.

        :raises CatalogError: and UniqueViolation; nothing has then changed.
        :raises WriteRefusedError: when the connection only reads and a statement writes.
        """
        work = []
        for place, statement in enumerate(statements, 1):
            with _placed(place, len(statements)):
                _, problem = _inspect(statement.sql)
                if problem is not None:
                    raise CatalogError(problem)
                work.append((statement.sql, bound(statement.params)))
        if len(work) == 1 and begin == "BEGIN":  # one read is a transaction by itself
            return (self._execute(*work[0]),)
        self._control(begin)
        try:
            results = []
            for place, (sql, params) in enumerate(work, 1):
                with _placed(place, len(work)):
                    results.append(self._execute(sql, params))
            self._control("COMMIT")
        except BaseException:
            # A full disk or a failed read has rolled back already.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        return tuple(results)

    def _control(self, sql: str) -> None:
        try:
            self._connection.execute(sql).close()
        except sqlite3.Error as error:
            raise self._translate(error, sql, 0) from None

    def _execute(self, sql: str, params: tuple[Bound, ...]) -> StatementResult:
        before = self._connection.total_changes
        self._denied = None
        try:
            with closing(self._connection.execute(sql, params)) as cursor:
                rows = cursor.fetchall()
                names = [column[0] for column in cursor.description or ()]
        except sqlite3.Error as error:
            raise self._translate(error, sql, len(params)) from None
        return StatementResult(
            tuple(dict(zip(names, row, strict=True)) for row in rows), self._connection.total_changes - before
        )

    def _translate(self, error: sqlite3.Error, sql: str, parameters: int) -> Exception:
        """The port's error for SQLite's, with SQLite's words only where they cannot hold data."""
        code = getattr(error, "sqlite_errorcode", None)
        primary = sqlite.primary_code(error)
        if primary == sqlite3.SQLITE_READONLY and self._query_only:
            return WriteRefusedError()
        if primary == sqlite3.SQLITE_AUTH and self._denied is not None:
            return CatalogError(self._denied)
        if code in _UNIQUE_CODES:
            return UniqueViolation(str(error))
        if (known := sqlite.reason(error)) is not None:
            return CatalogError(known)
        constraint = primary == sqlite3.SQLITE_CONSTRAINT and code not in _FREE_TEXT_CODES
        if code is None or constraint or str(error) in _FIXED_TEXTS or self._says_the_same(error, sql, parameters):
            return CatalogError(str(error))
        return CatalogError(f"the statement failed on its values ({error.sqlite_errorname})")

    def _says_the_same(self, error: sqlite3.Error, sql: str, parameters: int) -> bool:
        """Whether SQLite says ``error`` of the statement alone, with no value bound: then it quotes none."""
        try:
            self._connection.execute(f"EXPLAIN {sql}", (None,) * parameters).close()
        except sqlite3.Error as again:
            return str(again) == str(error)
        return False

    def _authorize(
        self, action: int, first: str | None, second: str | None, database: str | None, _source: str | None
    ) -> int:
        denied = _denial(action, (first or "").lower(), (second or "").lower(), database)
        if denied is None:
            return sqlite3.SQLITE_OK
        self._denied = denied
        return sqlite3.SQLITE_DENY


def _denial(action: int, first: str, second: str, database: str | None) -> str | None:
    if action in _TEMP_ACTIONS or (
        database == "temp" and action in {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_CREATE_TABLE}
    ):
        return "temporary tables, views, indexes and triggers are refused"
    if action in {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}:
        return "ATTACH, DETACH and VACUUM are refused"
    if action == sqlite3.SQLITE_PRAGMA and first not in _PRAGMAS:
        return f"PRAGMA {first} is refused"
    if action == sqlite3.SQLITE_FUNCTION and second not in _FUNCTIONS:
        return f"the function {second} is refused"
    if action == sqlite3.SQLITE_CREATE_VTABLE and second not in _MODULES:
        return f"the virtual table module {second} is refused"
    if action == sqlite3.SQLITE_READ and first in _ABSENT_TABLES:
        return f"the table {first} is refused"
    return None


@contextmanager
def _placed(place: int, count: int) -> Iterator[None]:
    """Errors raised inside name the statement when there are several."""
    try:
        yield
    except CatalogError as error:
        if count > 1:
            error.args = (f"statement {place} of {count}: {error}",)
        raise
