"""What every catalog does: SQLite's SQL, dicts for rows, and a batch that is all or nothing."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest

from mempersist.ports import Catalog, CatalogError, SqlValue, Statement, UniqueViolation
from tests.rigs.adapters import adapters
from tests.rigs.catalogs import CATALOGS, at, run, value


@pytest.fixture(params=adapters(CATALOGS))
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    adapter = CATALOGS[request.param](tmp_path)
    yield adapter
    adapter.close()


class TestRowsAndValues:
    async def test_rows_are_dicts_in_the_order_of_the_statement(self, catalog: Catalog) -> None:
        rows = await catalog.query('SELECT value AS item, key AS place FROM json_each(\'["a","b"]\') ORDER BY key DESC')
        assert rows == ({"item": "b", "place": 1}, {"item": "a", "place": 0})

    async def test_values_come_back_as_they_went_in(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER, r REAL, x TEXT, b BLOB, n TEXT) STRICT")
        row: dict[str, SqlValue] = {"i": -(2**53) + 1, "r": 0.1, "x": "a\0b\U0001f600'", "b": b"\x00\xff", "n": None}
        await catalog.query("INSERT INTO t VALUES (?, ?, ?, ?, ?)", tuple(row.values()))
        (found,) = await catalog.query("SELECT * FROM t")
        assert found == row
        assert [type(found[name]) for name in row] == [int, float, str, bytes, type(None)]

    async def test_an_integer_is_bound_as_a_real_as_on_d1(self, catalog: Catalog) -> None:
        assert await value(catalog, "SELECT typeof(?)", 5) == "real"
        assert await value(catalog, "SELECT ? / 2", 5) == 2.5

    async def test_a_bound_integer_limits_and_finds_rows(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER PRIMARY KEY) STRICT", "INSERT INTO t VALUES (1), (2), (3)")
        assert await catalog.query("SELECT i FROM t WHERE i >= ? ORDER BY i LIMIT ? OFFSET ?", (1, 1, 1)) == ({"i": 2},)

    async def test_numbered_parameters_may_repeat(self, catalog: Catalog) -> None:
        assert await value(catalog, "SELECT ?2 || ?1 || ?2", "a", "b") == "bab"

    async def test_returning_gives_the_written_rows(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER PRIMARY KEY, x TEXT) STRICT")
        assert await catalog.query("INSERT INTO t (x) VALUES ('a') RETURNING i, x") == ({"i": 1, "x": "a"},)

    async def test_a_with_clause_may_write(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (x TEXT) STRICT")
        await catalog.query("WITH new (x) AS (SELECT 'a') INSERT INTO t SELECT x FROM new")
        assert await value(catalog, "SELECT x FROM t") == "a"

    async def test_changes_count_written_rows(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER) STRICT")
        inserted, updated, read, deleted = await catalog.batch(
            [
                Statement("INSERT INTO t SELECT value FROM json_each(?)", ("[1,2,3]",)),
                Statement("UPDATE t SET i = 0 WHERE i > 1"),
                Statement("SELECT i FROM t"),
                Statement("DELETE FROM t WHERE i = 9"),
            ]
        )
        assert [result.changes for result in (inserted, updated, read, deleted)] == [3, 2, 0, 0]

    async def test_changes_include_those_of_triggers_and_cascades(self, catalog: Catalog) -> None:
        await run(
            catalog,
            "CREATE TABLE parent (i INTEGER PRIMARY KEY) STRICT",
            "CREATE TABLE child (i INTEGER REFERENCES parent (i) ON DELETE CASCADE) STRICT",
            "INSERT INTO parent VALUES (1)",
            "INSERT INTO child VALUES (1), (1)",
        )
        (result,) = await catalog.batch([Statement("DELETE FROM parent")])
        assert result.changes == 3


class TestBatches:
    async def test_each_statement_has_its_rows(self, catalog: Catalog) -> None:
        results = await catalog.batch([Statement("SELECT ? AS x", ("a",)), Statement("SELECT ? AS x", ("b",))])
        assert [result.rows for result in results] == [({"x": "a"},), ({"x": "b"},)]

    async def test_no_statements_are_no_work(self, catalog: Catalog) -> None:
        assert await catalog.batch([]) == ()

    @pytest.mark.parametrize("failing", range(4))
    @pytest.mark.parametrize(
        "bad",
        [
            Statement("INSERT INTO t VALUES ('taken')"),
            Statement("INSERT INTO missing VALUES (1)"),
            Statement("SELECT json('{')"),
            Statement("SELECT ?", (math.nan,)),
            Statement("COMMIT"),
        ],
        ids=["constraint", "no table", "run time", "parameter", "refused"],
    )
    async def test_a_failure_anywhere_undoes_everything(self, catalog: Catalog, failing: int, bad: Statement) -> None:
        await run(catalog, "CREATE TABLE t (x TEXT PRIMARY KEY) STRICT", "INSERT INTO t VALUES ('taken')")
        statements = [
            Statement("INSERT INTO t VALUES ('new')"),
            Statement("UPDATE t SET x = 'changed' WHERE x = 'taken' AND false"),
            Statement("CREATE TABLE made (x TEXT) STRICT"),
        ]
        statements.insert(failing, bad)
        with pytest.raises(CatalogError, match=at(catalog, failing + 1, 4)):
            await catalog.batch(statements)
        assert await catalog.query("SELECT x FROM t") == ({"x": "taken"},)
        assert await value(catalog, "SELECT count(*) FROM sqlite_master WHERE name = 'made'") == 0
        statements.remove(bad)
        assert len(await catalog.batch(statements)) == 3

    async def test_a_statement_sees_the_ones_before_it(self, catalog: Catalog) -> None:
        results = await catalog.batch(
            [
                Statement("CREATE TABLE t (x TEXT) STRICT"),
                Statement("INSERT INTO t VALUES ('a')"),
                Statement("SELECT x FROM t"),
            ]
        )
        assert results[2].rows == ({"x": "a"},)

    async def test_tasks_that_increment_lose_nothing(self, catalog: Catalog) -> None:
        await run(catalog, "CREATE TABLE t (i INTEGER) STRICT", "INSERT INTO t VALUES (0)")
        increment = [Statement("UPDATE t SET i = i + 1"), Statement("SELECT i FROM t")]
        results = await asyncio.gather(*(catalog.batch(increment) for _ in range(40)))
        assert sorted(read.rows[0]["i"] for _, read in results) == list(range(1, 41))


class TestConstraints:
    @pytest.mark.parametrize(
        "sql",
        [
            "INSERT INTO t (i, u) VALUES (1, 'b')",
            "INSERT INTO t (i, u) VALUES (2, 'a')",
            "INSERT INTO w VALUES ('a')",
            "UPDATE t SET i = 1",
        ],
    )
    async def test_a_taken_key_is_a_unique_violation(self, catalog: Catalog, sql: str) -> None:
        await run(
            catalog,
            "CREATE TABLE t (i INTEGER PRIMARY KEY, u TEXT UNIQUE) STRICT",
            "CREATE TABLE w (x TEXT PRIMARY KEY) STRICT, WITHOUT ROWID",
            "INSERT INTO t VALUES (1, 'a'), (5, 'e')",
            "INSERT INTO w VALUES ('a')",
        )
        with pytest.raises(UniqueViolation):
            await catalog.query(sql)
        with pytest.raises(UniqueViolation):
            await catalog.batch([Statement("DELETE FROM w WHERE x = 'z'"), Statement(sql)])

    @pytest.mark.parametrize(
        ("sql", "message"),
        [
            ("INSERT INTO t VALUES (NULL, 1)", "NOT NULL constraint failed: t.a"),
            ("INSERT INTO t VALUES ('ab', 1)", "CHECK constraint failed"),
            ("INSERT INTO t VALUES ('a', 'x')", "cannot store TEXT value in INTEGER column t.b"),
            ("INSERT INTO t VALUES ('a', 7)", "FOREIGN KEY constraint failed"),
        ],
    )
    async def test_other_constraints_are_named(self, catalog: Catalog, sql: str, message: str) -> None:
        await run(
            catalog,
            "CREATE TABLE parent (i INTEGER PRIMARY KEY) STRICT",
            "CREATE TABLE t (a TEXT NOT NULL CHECK (length(a) = 1), b INTEGER REFERENCES parent (i)) STRICT",
            "INSERT INTO parent VALUES (1)",
        )
        with pytest.raises(CatalogError, match=message) as raised:
            await catalog.query(sql)
        assert not isinstance(raised.value, UniqueViolation)

    async def test_foreign_keys_cascade_and_cannot_be_switched_off(self, catalog: Catalog) -> None:
        await run(
            catalog,
            "CREATE TABLE parent (i INTEGER PRIMARY KEY) STRICT",
            "CREATE TABLE child (i INTEGER REFERENCES parent (i) ON DELETE CASCADE) STRICT",
            "INSERT INTO parent VALUES (1), (2)",
            "INSERT INTO child VALUES (1), (2)",
            "PRAGMA foreign_keys = OFF",
        )
        await catalog.query("PRAGMA foreign_keys = OFF")
        assert await value(catalog, "PRAGMA foreign_keys") == 1
        await catalog.query("DELETE FROM parent WHERE i = 1")
        assert await catalog.query("SELECT i FROM child") == ({"i": 2},)
        with pytest.raises(CatalogError, match="FOREIGN KEY"):
            await catalog.query("INSERT INTO child VALUES (3)")

    async def test_deferred_foreign_keys_are_checked_at_the_end_of_their_batch(self, catalog: Catalog) -> None:
        await run(
            catalog,
            "CREATE TABLE parent (i INTEGER PRIMARY KEY) STRICT",
            "CREATE TABLE child (i INTEGER REFERENCES parent (i)) STRICT",
        )
        defer, child = Statement("PRAGMA defer_foreign_keys = ON"), Statement("INSERT INTO child VALUES (1)")
        with pytest.raises(CatalogError, match="FOREIGN KEY"):
            await catalog.batch([defer, child])
        assert await catalog.query("SELECT i FROM child") == ()
        await catalog.batch([defer, child, Statement("INSERT INTO parent VALUES (1)")])
        assert await catalog.query("SELECT i FROM child") == ({"i": 1},)
        await catalog.query("PRAGMA defer_foreign_keys = ON")
        with pytest.raises(CatalogError, match=at(catalog, 1, 2) + "FOREIGN KEY"):
            await catalog.batch([Statement("INSERT INTO child VALUES (9)"), Statement("INSERT INTO parent VALUES (9)")])


class TestFullText:
    SCHEMA = (
        "CREATE TABLE docs (i INTEGER PRIMARY KEY, title TEXT NOT NULL, body TEXT NOT NULL) STRICT",
        "CREATE VIRTUAL TABLE docs_fts USING fts5 (title, body, content = 'docs', content_rowid = 'i')",
        """CREATE TRIGGER docs_in AFTER INSERT ON docs BEGIN
             INSERT INTO docs_fts (rowid, title, body) VALUES (new.i, new.title, new.body);
           END""",
        """CREATE TRIGGER docs_out AFTER DELETE ON docs BEGIN
             INSERT INTO docs_fts (docs_fts, rowid, title, body) VALUES ('delete', old.i, old.title, old.body);
           END""",
    )

    async def find(self, catalog: Catalog, query: str) -> list[int]:
        sql = "SELECT rowid AS i FROM docs_fts WHERE docs_fts MATCH ? ORDER BY bm25(docs_fts, 3.0, 1.0), rowid"
        return [row["i"] for row in await catalog.query(sql, (query,))]

    async def test_triggers_keep_an_external_content_index(self, catalog: Catalog) -> None:
        await run(catalog, *self.SCHEMA)
        rows = json.dumps([[1, "apple", "a pear"], [2, "pear", "an apple"], [3, "plum", "none"]])
        insert = Statement("INSERT INTO docs SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?)", (rows,))
        await catalog.batch([insert])
        assert await self.find(catalog, "apple") == [1, 2]
        await catalog.batch([Statement("DELETE FROM docs"), insert, Statement("DELETE FROM docs WHERE i = 1")])
        assert await self.find(catalog, "apple") == [2]
        await catalog.query("INSERT INTO docs_fts (docs_fts) VALUES ('integrity-check')")

    async def test_snippets_mark_the_match(self, catalog: Catalog) -> None:
        await run(catalog, *self.SCHEMA, "INSERT INTO docs VALUES (1, 't', 'one two three four five six seven')")
        sql = "SELECT snippet(docs_fts, 1, '[', ']', '...', 2) AS s FROM docs_fts WHERE docs_fts MATCH 'six'"
        assert await value(catalog, sql) == "...[six] seven"

    async def test_a_failed_batch_leaves_the_index_as_it_was(self, catalog: Catalog) -> None:
        await run(catalog, *self.SCHEMA, "INSERT INTO docs VALUES (1, 'apple', '')")
        with pytest.raises(UniqueViolation):
            await run(catalog, "DELETE FROM docs", "INSERT INTO docs VALUES (2, 'pear', ''), (2, 'pear', '')")
        assert await self.find(catalog, "apple") == [1]
        assert await self.find(catalog, "pear") == []
        await catalog.query("INSERT INTO docs_fts (docs_fts) VALUES ('integrity-check')")
