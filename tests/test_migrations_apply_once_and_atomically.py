"""Each migration is applied wholly and once, in order, by one operator at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mempersist.ports import Catalog, CatalogError, Row, SqlValue, Statement, StatementResult
from mempersist_ops import migrations
from mempersist_ops.migrations import LOCK_SECONDS, MigrationError
from tests.rigs.adapters import adapters
from tests.rigs.catalogs import CATALOGS, is_local, value
from tests.rigs.migrations import FIRST, SECOND, StoppedClock, write

CLOCK = StoppedClock()


@pytest.fixture(params=adapters(CATALOGS))
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Catalog]:
    adapter = CATALOGS[request.param](tmp_path)
    yield adapter
    adapter.close()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return write(tmp_path / "migrations", m0001_one=FIRST, m0002_two=SECOND)


async def ledger(catalog: Catalog) -> list[str]:
    return [row["name"] for row in await catalog.query("SELECT name FROM schema_migrations ORDER BY version")]


async def names(catalog: Catalog) -> set[str]:
    rows = await catalog.query("SELECT name FROM sqlite_master WHERE type <> 'index'")
    return {row["name"] for row in rows} - {"_cf_METADATA"}  # D1's own


async def test_pending_migrations_are_applied_in_order_and_once(catalog: Catalog, directory: Path) -> None:
    applied = await migrations.apply(catalog, directory, CLOCK)
    assert [file.name for file in applied] == ["0001_one.sql", "0002_two.sql"]
    assert {"one", "two", "two_in"} <= await names(catalog)
    assert await migrations.apply(catalog, directory, CLOCK) == ()
    assert await value(catalog, "SELECT count(*) FROM one") == 1


async def test_later_migrations_follow_earlier_ones(catalog: Catalog, directory: Path) -> None:
    await migrations.apply(catalog, directory, CLOCK)
    write(directory, m0007_seven="CREATE TABLE seven (a TEXT) STRICT;")
    before = await migrations.plan(catalog, directory)
    assert [(state.name, state.status) for state in before.states] == [
        ("0001_one.sql", "applied"),
        ("0002_two.sql", "applied"),
        ("0007_seven.sql", "pending"),
    ]
    assert [file.version for file in await migrations.apply(catalog, directory, CLOCK)] == [7]


async def test_the_ledger_says_what_when_and_who(catalog: Catalog, directory: Path) -> None:
    (first, _) = await migrations.apply(catalog, directory, CLOCK, owner="someone")
    (row, _) = await catalog.query("SELECT * FROM schema_migrations ORDER BY version")
    assert row == {
        "version": 1,
        "name": "0001_one.sql",
        "checksum": first.checksum,
        "applied_at": "2023-11-14T22:13:20.000Z",
        "applied_by": "someone",
    }


async def test_planning_writes_nothing(catalog: Catalog, directory: Path) -> None:
    planned = await migrations.plan(catalog, directory)
    assert [state.status for state in planned.pending] == ["pending", "pending"]
    assert planned.problems == ()
    assert await names(catalog) == set()


@pytest.mark.parametrize("failing", range(3))
async def test_a_failing_statement_undoes_its_migration_only(catalog: Catalog, directory: Path, failing: int) -> None:
    statements = ["CREATE TABLE three (a TEXT) STRICT;", "INSERT INTO three VALUES ('x');", "DELETE FROM one;"]
    place = f": statement {failing + 1} of .*" if is_local(catalog) else ""
    broken = [*statements[:failing], "INSERT INTO nowhere VALUES (1);", *statements[failing:]]
    write(directory, m0003_three="\n".join(broken))
    with pytest.raises(MigrationError, match=rf"0003_three.sql failed .*{place}no such table: nowhere"):
        await migrations.apply(catalog, directory, CLOCK)
    assert await ledger(catalog) == ["0001_one.sql", "0002_two.sql"]
    assert "three" not in await names(catalog)
    assert await value(catalog, "SELECT count(*) FROM one") == 1
    write(directory, m0003_three="\n".join(statements))
    assert [file.version for file in await migrations.apply(catalog, directory, CLOCK)] == [3]


async def test_transaction_control_in_a_migration_is_refused(catalog: Catalog, directory: Path) -> None:
    write(directory, m0003_three="BEGIN;\nDROP TABLE one;\nCOMMIT;")
    with pytest.raises(MigrationError, match=r"0003_three\.sql failed .*(BEGIN is refused|the database refused)"):
        await migrations.apply(catalog, directory, CLOCK)
    assert "one" in await names(catalog)


async def test_another_operator_s_lock_is_respected_until_it_lapses(catalog: Catalog, directory: Path) -> None:
    await migrations.apply(catalog, write(directory.parent / "old", m0001_one=FIRST), CLOCK)
    lapses = "2023-11-14T22:14:20.000Z"
    await catalog.query("INSERT INTO schema_migration_lock VALUES (1, 'someone else', ?)", (lapses,))
    with pytest.raises(MigrationError, match=f"another operator, someone else, .* lapses at {lapses}"):
        await migrations.apply(catalog, directory, CLOCK)
    assert await ledger(catalog) == ["0001_one.sql"]
    just_before, just_then = (StoppedClock(CLOCK.now + 1000 * LOCK_SECONDS + late) for late in (-1, 0))
    with pytest.raises(MigrationError, match="someone else"):
        await migrations.apply(catalog, directory, just_before)
    assert [file.version for file in await migrations.apply(catalog, directory, just_then)] == [2]


async def test_the_lock_is_given_back(catalog: Catalog, directory: Path) -> None:
    await migrations.apply(catalog, directory, CLOCK, owner="a")
    write(directory, m0003_three="INSERT INTO nowhere VALUES (1);")
    with pytest.raises(MigrationError, match="nowhere"):
        await migrations.apply(catalog, directory, CLOCK, owner="b")
    assert await value(catalog, "SELECT count(*) FROM schema_migration_lock") == 0


class Interloper:
    """A catalog before whose ``turn``-th batch something else happens, or whose connection then breaks."""

    def __init__(self, catalog: Catalog, turn: int, *before: Statement, breaks: bool = False) -> None:
        self.catalog, self.turn, self.before, self.breaks = catalog, turn, before, breaks

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        return await self.catalog.query(sql, params)

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        self.turn -= 1
        if self.turn == 0:
            await self.catalog.batch(self.before)
            if self.breaks:
                raise CatalogError("the connection broke")
        return await self.catalog.batch(statements)


async def test_an_operator_who_lost_the_lock_applies_nothing_more(catalog: Catalog, directory: Path) -> None:
    steal = Statement("UPDATE schema_migration_lock SET owner = 'thief', expires_at = '9999'")
    # Batches: ledger tables, lock, first migration, second migration.
    with pytest.raises(MigrationError, match="another operator, thief, is applying"):
        await migrations.apply(Interloper(catalog, 4, steal), directory, CLOCK)
    assert await ledger(catalog) == ["0001_one.sql"]
    assert "two" not in await names(catalog)
    assert await value(catalog, "SELECT owner FROM schema_migration_lock") == "thief"


@pytest.mark.parametrize("turn", range(1, 5))
async def test_a_run_that_breaks_anywhere_can_be_run_again(catalog: Catalog, directory: Path, turn: int) -> None:
    with pytest.raises((CatalogError, MigrationError), match="the connection broke"):
        await migrations.apply(Interloper(catalog, turn, breaks=True), directory, CLOCK)
    await migrations.apply(catalog, directory, CLOCK)
    assert await ledger(catalog) == ["0001_one.sql", "0002_two.sql"]
    assert await migrations.schema_problems(catalog, directory) == ()


async def test_two_runs_of_one_owner_apply_each_migration_once(catalog: Catalog, directory: Path) -> None:
    runs = await asyncio.gather(*(migrations.apply(catalog, directory, CLOCK, owner="this machine") for _ in range(2)))
    assert sorted(file.version for run in runs for file in run) == [1, 2]
    assert await value(catalog, "SELECT count(*) FROM one") == 1
    assert await migrations.schema_problems(catalog, directory) == ()


async def test_two_operators_apply_each_migration_once(catalog: Catalog, directory: Path) -> None:
    runs = await asyncio.gather(
        *(migrations.apply(catalog, directory, CLOCK) for _ in range(3)), return_exceptions=True
    )
    refused = [run for run in runs if isinstance(run, BaseException)]
    assert all(isinstance(run, MigrationError) and "another operator" in str(run) for run in refused)
    assert sorted(file.version for run in runs if not isinstance(run, BaseException) for file in run) == [1, 2]


async def test_the_service_s_own_migrations_apply(catalog: Catalog) -> None:
    directory = migrations.find_directory()
    applied = await migrations.apply(catalog, directory, CLOCK)
    assert applied == migrations.read_directory(directory)
    assert await migrations.schema_problems(catalog, directory) == ()
