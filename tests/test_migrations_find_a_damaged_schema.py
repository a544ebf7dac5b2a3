"""A ledger that says "applied" over a schema that is not there is found, object by object."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mempersist.ports import Catalog
from mempersist_ops import migrations
from mempersist_ops.migrations import MigrationError
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from tests.rigs.catalogs import run
from tests.rigs.migrations import FIRST, SECOND, StoppedClock, write

CLOCK = StoppedClock()
THIRD = """
CREATE INDEX two_b ON two (b) WHERE b IS NOT NULL;
CREATE VIEW both AS SELECT a, b FROM one JOIN two ON a = b;
CREATE VIRTUAL TABLE words USING fts5 (body);
ALTER TABLE one ADD COLUMN extra TEXT;
"""


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    opened = MemoryCatalog()
    yield opened
    opened.close()


@pytest.fixture
async def directory(tmp_path: Path, catalog: Catalog) -> Path:
    """Three migrations, all applied."""
    made = write(tmp_path / "migrations", m0001_one=FIRST, m0002_two=SECOND, m0003_three=THIRD)
    await migrations.apply(catalog, made, CLOCK)
    return made


async def problems(catalog: Catalog, directory: Path) -> list[str]:
    return [str(problem) for problem in await migrations.schema_problems(catalog, directory)]


async def test_a_whole_schema_has_no_problems(catalog: Catalog, directory: Path) -> None:
    assert await problems(catalog, directory) == []


async def test_a_pending_migration_is_no_problem(catalog: Catalog, directory: Path) -> None:
    write(directory, m0004_four="CREATE TABLE four (a TEXT) STRICT;")
    assert await problems(catalog, directory) == []


async def test_a_database_without_anything_has_no_problems(directory: Path) -> None:
    empty = MemoryCatalog()
    assert await problems(empty, directory) == []
    empty.close()


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (("DROP INDEX two_b",), ["index two_b is missing"]),
        (("DROP TRIGGER two_in",), ["trigger two_in is missing"]),
        (("DROP VIEW both",), ["view both is missing"]),
        (("DROP TABLE two",), ["index two_b is missing", "table two is missing", "trigger two_in is missing"]),
        (("ALTER TABLE one DROP COLUMN extra",), ["table one is not what the migrations make"]),
        (
            ("DROP INDEX two_b", "CREATE INDEX two_b ON two (b)"),
            ["index two_b is not what the migrations make"],
        ),
        (
            ("DROP TABLE words", "CREATE VIRTUAL TABLE words USING fts5 (body, tokenize = 'porter')"),
            ["table words is not what the migrations make"],
        ),
        (("CREATE TABLE stranger (a)",), ["table stranger is in the database but in no applied migration"]),
        (("DROP TABLE schema_migration_lock",), ["table schema_migration_lock is missing"]),
    ],
)
async def test_damage_is_named(catalog: Catalog, directory: Path, damage: tuple[str, ...], expected: list[str]) -> None:
    await run(catalog, *damage)
    assert await problems(catalog, directory) == expected


async def test_a_dropped_full_text_table_takes_its_own_tables_along(catalog: Catalog, directory: Path) -> None:
    await run(catalog, "DROP TABLE words")
    assert "table words is missing" in await problems(catalog, directory)
    assert "table words_data is missing" in await problems(catalog, directory)


async def test_layout_and_comments_are_no_damage(catalog: Catalog, directory: Path) -> None:
    await run(
        catalog, "DROP INDEX two_b", "CREATE INDEX two_b\n  ON two (b) /* all but\n nulls */ WHERE b IS NOT  NULL"
    )
    assert await problems(catalog, directory) == []


async def test_tables_of_cloudflare_are_not_strangers(catalog: Catalog, directory: Path) -> None:
    await run(catalog, "CREATE TABLE _cf_KV (a)", "CREATE TABLE d1_migrations (a)")
    assert await problems(catalog, directory) == []


async def test_a_file_that_no_longer_works_is_named(catalog: Catalog, directory: Path) -> None:
    write(directory, m0002_two="CREATE TABLE one (a);")
    with pytest.raises(MigrationError, match=r"0002_two\.sql fails in an empty database: .*already exists"):
        await problems(catalog, directory)
