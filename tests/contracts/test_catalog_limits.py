"""What every catalog refuses, so that SQL which passes the tests runs on D1: its limits, statements and values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mempersist.limits import SQL_MAX_BOUND_PARAMETERS, SQL_MAX_STATEMENT_BYTES, SQL_MAX_VALUE_BYTES
from mempersist.ports import Catalog, CatalogError, Statement
from tests.rigs.adapters import adapters
from tests.rigs.catalogs import CATALOGS, is_local, run, value

SECRET = "hunter2"
_ENFORCED_BY_PRODUCTION_ALONE = 32
"""Arguments of a function, which Miniflare's D1 does not count."""
_STRICTER_THAN_D1 = {"PRAGMA ignore_check_constraints = ON", "SELECT 1; SELECT 2", ""}


@pytest.fixture(params=adapters(CATALOGS))
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    adapter = CATALOGS[request.param](tmp_path)
    yield adapter
    adapter.close()


class TestLimits:
    async def test_a_hundred_parameters(self, catalog: Catalog) -> None:
        for count in (SQL_MAX_BOUND_PARAMETERS - 1, SQL_MAX_BOUND_PARAMETERS):
            sql = "SELECT " + " || ".join("?" * count)
            assert await value(catalog, sql, *"x" * count) == "x" * count
        with pytest.raises(CatalogError, match="101 parameters are more than 100"):
            await catalog.query("SELECT " + " || ".join("?" * 101), tuple("x" * 101))
        with pytest.raises(CatalogError):
            await catalog.query("SELECT ?101", ("x",))

    @pytest.mark.parametrize("params", [(), ("a", "b")])
    async def test_as_many_parameters_as_placeholders(self, catalog: Catalog, params: tuple[str, ...]) -> None:
        with pytest.raises(CatalogError, match="number of bindings"):
            await catalog.query("SELECT ?", params)

    async def test_values_of_two_million_bytes(self, catalog: Catalog) -> None:
        for size in (SQL_MAX_VALUE_BYTES - 1, SQL_MAX_VALUE_BYTES):
            assert await value(catalog, "SELECT length(?)", "x" * size) == size
            assert await value(catalog, "SELECT length(?)", b"x" * size) == size
        assert await value(catalog, "SELECT length(?)", "\u00e9" * (SQL_MAX_VALUE_BYTES // 2)) == 1_000_000
        for large in ("x" * (SQL_MAX_VALUE_BYTES + 1), b"x" * (SQL_MAX_VALUE_BYTES + 1), "\u00e9" * 1_000_001):
            with pytest.raises(CatalogError, match="parameter 1: larger than 2000000 bytes"):
                await catalog.query("SELECT length(?)", (large,))

    async def test_rows_of_two_million_bytes(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (a TEXT, b TEXT) STRICT")
        half = "x" * (SQL_MAX_VALUE_BYTES // 2)
        await catalog.query("INSERT INTO t VALUES (?, ?)", (half, half[:-100]))
        if is_local(catalog):
            with pytest.raises(CatalogError, match="larger than the database takes"):
                await catalog.query("INSERT INTO t VALUES (?, ?)", (half, half))

    async def test_a_computed_value_of_two_million_bytes(self, catalog: Catalog) -> None:
        assert await value(catalog, "SELECT length(zeroblob(2000000))") == SQL_MAX_VALUE_BYTES
        if is_local(catalog):
            with pytest.raises(CatalogError, match="larger than the database takes"):
                await catalog.query("SELECT zeroblob(2000001)")

    async def test_statements_of_a_hundred_thousand_bytes(self, catalog: Catalog) -> None:
        for size in (SQL_MAX_STATEMENT_BYTES - 1, SQL_MAX_STATEMENT_BYTES):
            assert await value(catalog, "SELECT 1 --".ljust(size, "x")) == 1
        with pytest.raises(CatalogError, match="longer than 100000 bytes"):
            await catalog.query("SELECT 1 --".ljust(SQL_MAX_STATEMENT_BYTES + 1, "x"))

    @pytest.mark.parametrize(
        ("build", "limit"),
        [
            pytest.param(lambda n: "SELECT " + ", ".join(["1"] * n), 100, id="columns"),
            pytest.param(lambda n: f"SELECT max({', '.join(['1'] * n)})", 32, id="function arguments"),
            pytest.param(lambda n: " UNION ALL ".join(["SELECT 1"] * n), 5, id="compound SELECT"),
            pytest.param(lambda n: "SELECT " + "+".join(["1"] * n), 100, id="expression depth"),
            pytest.param(lambda n: f"SELECT 'a' LIKE '{'a' * n}'", 50, id="LIKE pattern"),
            pytest.param(lambda n: f"SELECT 'a' GLOB '{'a' * n}'", 50, id="GLOB pattern"),
        ],
    )
    async def test_other_limits(self, catalog: Catalog, build: Callable[[int], str], limit: int) -> None:
        for size in (limit - 1, limit):
            await catalog.query(build(size))
        if is_local(catalog) or limit != _ENFORCED_BY_PRODUCTION_ALONE:
            with pytest.raises(CatalogError):
                await catalog.query(build(limit + 1))

    async def test_a_list_of_any_length_fits_one_json_parameter(self, catalog: Catalog) -> None:
        ids = [f"id-{index}" for index in range(5000)]
        sql = "SELECT count(*) FROM json_each(?1) WHERE value IN (SELECT value FROM json_each(?1))"
        assert await value(catalog, sql, json.dumps(ids)) == 5000

    async def test_a_values_list_may_be_long(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER) STRICT", "INSERT INTO t VALUES " + ", ".join(["(1)"] * 300))
        assert await value(catalog, "SELECT count(*) FROM t") == 300


class TestWhatCannotBeBound:
    async def test_integers_beyond_what_javascript_holds(self, catalog: Catalog) -> None:
        for sign in (1, -1):
            assert await value(catalog, "SELECT ?", sign * (2**53 - 1)) == sign * (2**53 - 1)
            for large in (2**53, 2**63, 2**64, 10**400):
                with pytest.raises(CatalogError, match=r"parameter 1: an integer beyond 2\^53 - 1; bind it as text"):
                    await catalog.query("SELECT ?", (sign * large,))

    @pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
    async def test_floats_that_are_no_numbers(self, catalog: Catalog, number: float) -> None:
        with pytest.raises(CatalogError, match="parameter 2: NaN and infinities"):
            await catalog.query("SELECT ?, ?", (1, number))

    @pytest.mark.parametrize("flag", [True, False])
    async def test_booleans(self, catalog: Catalog, flag: bool) -> None:
        with pytest.raises(CatalogError, match="parameter 1: bool is refused; bind 1 or 0"):
            await catalog.query("SELECT ?", (flag,))

    @pytest.mark.parametrize("other", [[SECRET], {"a": SECRET}, bytearray(b"x"), object()])
    async def test_other_types(self, catalog: Catalog, other: Any) -> None:
        with pytest.raises(CatalogError, match=r"parameter 1: \w+ cannot be bound") as raised:
            await catalog.query("SELECT ?", (other,))
        assert SECRET not in str(raised.value)

    async def test_lone_surrogates(self, catalog: Catalog) -> None:
        with pytest.raises(CatalogError, match="parameter 1: a lone surrogate"):
            await catalog.query("SELECT ?", ("a\ud800",))


class TestRefusals:
    @pytest.mark.parametrize(
        "sql",
        [
            "BEGIN",
            "begin immediate",
            "COMMIT",
            "END",
            "ROLLBACK",
            "SAVEPOINT s",
            "RELEASE s",
            "/* a comment */ -- another\n ;BEGIN",
            "ATTACH ':memory:' AS other",
            "DETACH main",
            "VACUUM",
            "VACUUM INTO '/tmp/copy'",
            "CREATE TEMP TABLE t (a)",
            "CREATE TEMPORARY VIEW v AS SELECT 1",
            "CREATE TABLE temp.t (a)",
            "CREATE TEMP TRIGGER g AFTER INSERT ON existing BEGIN SELECT 1; END",
            "PRAGMA user_version",
            "PRAGMA user_version = 5",
            "PRAGMA journal_mode = DELETE",
            "PRAGMA synchronous = OFF",
            "PRAGMA page_count",
            "PRAGMA compile_options",
            "PRAGMA writable_schema = ON",
            "PRAGMA query_only = OFF",
            "PRAGMA ignore_check_constraints = ON",
            "SELECT * FROM pragma_user_version",
            "SELECT sqlite_version()",
            "SELECT sqlite_source_id()",
            "SELECT SQLITE_COMPILEOPTION_USED('ENABLE_FTS5')",
            "SELECT load_extension('x')",
            "SELECT fts3_tokenizer('simple')",
            "SELECT * FROM dbstat",
            "CREATE VIRTUAL TABLE v USING fts4 (a)",
            "SELECT :named",
            "SELECT @named",
            "SELECT $named",
            "SELECT 1; SELECT 2",
            "SELECT 1; COMMIT",
            "",
            " ; -- nothing",
            "SELEC 1",
        ],
    )
    async def test_refused_statements_leave_the_catalog_usable(self, catalog: Catalog, sql: str) -> None:
        if sql in _STRICTER_THAN_D1 and not is_local(catalog):
            return
        await run(catalog, "CREATE TABLE existing (a TEXT) STRICT")
        with pytest.raises(CatalogError):
            await catalog.query(sql)
        with pytest.raises(CatalogError):
            await catalog.batch([Statement("INSERT INTO existing VALUES ('x')"), Statement(sql)])
        assert await value(catalog, "SELECT count(*) FROM existing") == 0
        await catalog.query("INSERT INTO existing VALUES ('y')")
        assert await value(catalog, "SELECT count(*) FROM existing") == 1

    async def test_a_string_that_looks_like_a_placeholder_is_a_string(self, catalog: Catalog) -> None:
        assert await value(catalog, "SELECT ':a' || \"$b\" || ? FROM (SELECT '@c' AS \"$b\") -- :d", "!") == ":a@c!"

    @pytest.mark.parametrize(
        "sql",
        [
            "PRAGMA foreign_keys",
            "PRAGMA table_info(existing)",
            "PRAGMA table_list",
            "PRAGMA index_list(existing)",
            "PRAGMA foreign_key_check",
            "PRAGMA quick_check",
            "PRAGMA optimize",
            "ANALYZE",
            "EXPLAIN QUERY PLAN SELECT * FROM existing",
            "SELECT * FROM pragma_table_info('existing')",
            "ALTER TABLE existing ADD COLUMN b TEXT CHECK (b <> '')",
            "ALTER TABLE existing RENAME COLUMN a TO c",
            "ALTER TABLE existing RENAME TO renamed",
            "CREATE VIEW v AS SELECT a FROM existing",
            "CREATE TABLE w (a TEXT PRIMARY KEY, b TEXT GENERATED ALWAYS AS (upper(a))) STRICT, WITHOUT ROWID",
            "CREATE VIRTUAL TABLE f USING fts5 (a)",
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9) SELECT sum(i) FROM n",
            "SELECT row_number() OVER (ORDER BY a) FROM existing",
            "SELECT json_group_array(json_object('a', a)) FROM existing",
            "SELECT date('now'), unixepoch(), current_timestamp",
            "SELECT 1;",
            "SELECT 1 /* the end */;",
        ],
    )
    async def test_what_d1_allows_is_allowed(self, catalog: Catalog, sql: str) -> None:
        await run(catalog, "CREATE TABLE existing (a TEXT) STRICT")
        await catalog.query(sql)

    async def test_a_statement_refused_once_is_refused_again(self, catalog: Catalog) -> None:
        for _ in range(2):
            with pytest.raises(CatalogError, match=r"user_version is refused|not authorized"):
                await catalog.query("PRAGMA user_version")


class TestErrorsHoldNoData:
    @pytest.mark.parametrize(
        ("sql", "param"),
        [
            ("INSERT INTO t VALUES (?, 'b')", SECRET),
            ("INSERT INTO t VALUES ('c', ?)", SECRET),
            ("SELECT json(?)", SECRET),
            ("SELECT json_extract('{}', ?)", SECRET),
            ("SELECT * FROM f WHERE f MATCH ?", f'"{SECRET}'),
            ("SELECT * FROM f WHERE f MATCH ?", f"{SECRET}: x"),
            ("SELECT * FROM f WHERE f MATCH ?", f"{SECRET}*^("),
            ("INSERT INTO f (f, rank) VALUES (?, 1)", SECRET),
            ("INSERT INTO f (f, rank) VALUES ('rank', ?)", f"{SECRET}("),
            ("INSERT INTO n VALUES (?)", SECRET),
            ("SELECT 'a' LIKE ?", SECRET * 20),
        ],
    )
    async def test_no_value_is_quoted(self, catalog: Catalog, sql: str, param: str) -> None:
        await run(
            catalog,
            "CREATE TABLE t (a TEXT PRIMARY KEY, b TEXT CHECK (length(b) < 3)) STRICT",
            "CREATE TABLE n (i INTEGER) STRICT",
            "CREATE VIRTUAL TABLE f USING fts5 (body)",
        )
        await catalog.query("INSERT INTO t VALUES (?, 'b')", (SECRET,))
        with pytest.raises(CatalogError) as raised:
            await catalog.query(sql, (param,))
        assert SECRET not in f"{raised.value!r} {raised.value.__cause__!r}"

    async def test_a_statement_s_own_mistake_is_quoted(self, catalog: Catalog) -> None:
        with pytest.raises(CatalogError, match="no such column: nowhere"):
            await catalog.query("SELECT nowhere FROM (SELECT ?)", ("x",))
