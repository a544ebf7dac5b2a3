"""A changed, removed or late migration file stops everything, and says which file and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mempersist.ports import Catalog
from mempersist_ops import migrations
from mempersist_ops.migrations import MigrationError
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from tests.rigs.migrations import FIRST, SECOND, StoppedClock, write

CLOCK = StoppedClock()


@pytest.fixture
def catalog() -> Iterator[Catalog]:
    opened = MemoryCatalog()
    yield opened
    opened.close()


@pytest.fixture
async def directory(tmp_path: Path, catalog: Catalog) -> Path:
    """Two migrations, both applied."""
    made = write(tmp_path / "migrations", m0001_one=FIRST, m0002_two=SECOND)
    await migrations.apply(catalog, made, CLOCK)
    return made


async def assert_blocked(catalog: Catalog, directory: Path, name: str, status: str, way_out: str) -> None:
    write(directory, m0009_next="CREATE TABLE next (a TEXT) STRICT;")
    planned = await migrations.plan(catalog, directory)
    assert [(state.name, state.status) for state in planned.states if state.status not in {"applied", "pending"}] == [
        (name, status)
    ]
    (problem,) = planned.problems
    assert problem.startswith(name)
    assert way_out in problem
    with pytest.raises(MigrationError, match=name):
        await migrations.apply(catalog, directory, CLOCK)
    assert await catalog.query("SELECT name FROM sqlite_master WHERE name = 'next'") == ()


async def test_a_file_changed_after_it_was_applied(catalog: Catalog, directory: Path) -> None:
    write(directory, m0001_one=FIRST + "-- harmless?\n")
    await assert_blocked(catalog, directory, "0001_one.sql", "modified", "restore the file")


async def test_a_file_renamed_after_it_was_applied(catalog: Catalog, directory: Path) -> None:
    (directory / "0002_two.sql").rename(directory / "0002_zwei.sql")
    await assert_blocked(catalog, directory, "0002_zwei.sql", "modified", "restore the file")


async def test_a_file_removed_after_it_was_applied(catalog: Catalog, directory: Path) -> None:
    (directory / "0001_one.sql").unlink()
    await assert_blocked(catalog, directory, "0001_one.sql", "missing", "restore the file, or run the release")


async def test_a_file_that_comes_too_late(catalog: Catalog, tmp_path: Path) -> None:
    made = write(tmp_path / "gap", m0001_one=FIRST, m0003_three="CREATE TABLE three (a TEXT) STRICT;")
    await migrations.apply(catalog, made, CLOCK)
    write(made, m0002_two=SECOND)
    await assert_blocked(catalog, made, "0002_two.sql", "out_of_order", "give it the next free number")


async def test_line_ends_do_not_count(catalog: Catalog, directory: Path) -> None:
    (directory / "0001_one.sql").write_bytes(FIRST.replace("\n", "\r\n").encode())
    assert (await migrations.plan(catalog, directory)).problems == ()


async def test_the_digest_covers_names_and_contents(catalog: Catalog, directory: Path, tmp_path: Path) -> None:
    digest = (await migrations.plan(catalog, directory)).digest
    assert digest == migrations.directory_digest(migrations.read_directory(directory))
    copies = [
        write(tmp_path / "same", m0001_one=FIRST, m0002_two=SECOND),
        write(tmp_path / "content", m0001_one=FIRST, m0002_two=SECOND + " "),
        write(tmp_path / "name", m0001_one=FIRST, m0002_zwei=SECOND),
        write(tmp_path / "number", m0001_one=FIRST, m0003_two=SECOND),
        write(tmp_path / "fewer", m0001_one=FIRST),
    ]
    digests = [(await migrations.plan(catalog, copy)).digest for copy in copies]
    assert digests[0] == digest
    assert len(set(digests)) == len(copies)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("1_short.sql", b"SELECT 1;", "1_short.sql is not named like 0001_lower_case.sql"),
        ("0003_Upper.sql", b"SELECT 1;", "0003_Upper.sql is not named"),
        ("0000_zero.sql", b"SELECT 1;", "0000_zero.sql is not named"),
        ("0002_again.sql", b"SELECT 1;", "0002_two.sql and 0002_again.sql have one number"),
        ("0003_latin.sql", "SELECT 'é';".encode("latin-1"), "0003_latin.sql is not UTF-8"),
        ("0003_open.sql", b"SELECT 1;\nSELECT 2", "0003_open.sql: the statement at line 2 does not end"),
        ("0003_empty.sql", b"-- nothing yet;\n", "0003_empty.sql holds no statement"),
    ],
)
async def test_files_that_cannot_be_migrations(
    catalog: Catalog, directory: Path, name: str, content: bytes, message: str
) -> None:
    (directory / name).write_bytes(content)
    with pytest.raises(MigrationError, match=message):
        await migrations.plan(catalog, directory)


async def test_a_missing_directory_is_named(catalog: Catalog, tmp_path: Path) -> None:
    with pytest.raises(MigrationError, match=r"nowhere is not a directory"):
        await migrations.plan(catalog, tmp_path / "nowhere")


async def test_other_files_are_left_alone(catalog: Catalog, directory: Path) -> None:
    (directory / "README.md").write_text("About these files")
    assert len((await migrations.plan(catalog, directory)).states) == 2
