"""One catalog file serves several threads and processes: writers take turns, readers see whole batches."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from mempersist.ports import CatalogError, Statement
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from tests.rigs.catalogs import run, value

ROUNDS = 60
# Moves one from the first row to the second and counts the move.
MOVE = tuple(
    Statement(sql)
    for sql in (
        "UPDATE t SET amount = amount - 1 WHERE name = 'a'",
        "UPDATE t SET amount = amount + 1 WHERE name = 'b'",
        "UPDATE t SET amount = amount + 1 WHERE name = 'moves'",
    )
)
PROCESS = """
import asyncio, os, pathlib, sys
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from tests.test_catalog_file_is_shared import MOVE
async def main():
    catalog = SqliteCatalog(pathlib.Path(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        await catalog.batch(MOVE)
    os._exit(0)
asyncio.run(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "catalog.sqlite3"


@pytest.fixture
def catalog(path: Path) -> Iterator[SqliteCatalog]:
    with closing(SqliteCatalog(path)) as opened:
        asyncio.run(
            run(
                opened,
                "CREATE TABLE t (name TEXT PRIMARY KEY, amount INTEGER NOT NULL) STRICT",
                "INSERT INTO t VALUES ('a', 0), ('b', 0), ('moves', 0)",
            )
        )
        yield opened


def move_in_this_thread(path: Path, times: int) -> None:
    async def move() -> None:
        for _ in range(times):
            await opened.batch(MOVE)

    with closing(SqliteCatalog(path)) as opened:
        asyncio.run(move())


def start_process(path: Path, times: int) -> subprocess.Popen[bytes]:
    root = Path(__file__).parents[1]
    return subprocess.Popen([sys.executable, "-c", PROCESS, str(path), str(times)], cwd=root)


async def amounts(catalog: SqliteCatalog) -> dict[str, int]:
    return {row["name"]: row["amount"] for row in await catalog.query("SELECT name, amount FROM t")}


async def test_writers_in_two_threads_lose_nothing(catalog: SqliteCatalog, path: Path) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(move_in_this_thread, [path, path], [ROUNDS, ROUNDS]))
    assert await amounts(catalog) == {"a": -2 * ROUNDS, "b": 2 * ROUNDS, "moves": 2 * ROUNDS}


async def test_writers_in_two_processes_lose_nothing(catalog: SqliteCatalog, path: Path) -> None:
    processes = [start_process(path, ROUNDS) for _ in range(2)]
    for _ in range(ROUNDS):
        await catalog.batch(MOVE)
    assert [process.wait() for process in processes] == [0, 0]
    assert await amounts(catalog) == {"a": -3 * ROUNDS, "b": 3 * ROUNDS, "moves": 3 * ROUNDS}


async def test_a_process_that_dies_after_a_batch_returned_has_written_it(catalog: SqliteCatalog, path: Path) -> None:
    assert start_process(path, 1).wait() == 0  # it leaves without closing the file
    assert (await amounts(catalog))["moves"] == 1


async def test_readers_see_a_batch_wholly_or_not_at_all(catalog: SqliteCatalog, path: Path) -> None:
    writer = threading.Thread(target=move_in_this_thread, args=(path, ROUNDS))
    writer.start()
    seen = set()
    one = [Statement(f"SELECT amount FROM t WHERE name = '{name}'") for name in ("a", "b", "moves")]
    while True:
        ended = not writer.is_alive()
        together = await amounts(catalog)
        assert together["a"] == -together["b"] == -together["moves"]
        # The statements of a batch that only reads see one state, too.
        a, b, moves = (result.rows[0]["amount"] for result in await catalog.batch(one))
        assert a == -b == -moves
        seen.add(moves)
        if ended:
            break
    assert max(seen) == ROUNDS


async def test_a_read_does_not_wait_for_a_batch_in_progress(catalog: SqliteCatalog) -> None:
    slow = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n"
    reads_before_it_ended = False
    batch = asyncio.create_task(catalog.batch([MOVE[2], Statement(slow), *MOVE[:2]]))
    while (await amounts(catalog))["moves"] == 0 and not batch.done():
        reads_before_it_ended = True
        await asyncio.sleep(0)
    assert reads_before_it_ended
    await batch
    assert (await amounts(catalog))["moves"] == 1


async def test_a_write_waits_for_another_connection(catalog: SqliteCatalog, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(other):
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(catalog.batch(MOVE))
        for _ in range(5):
            assert (await amounts(catalog))["moves"] == 0
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
    assert (await amounts(catalog))["moves"] == 1


async def test_a_write_that_waited_too_long_changes_nothing_and_says_why(catalog: SqliteCatalog, path: Path) -> None:
    other = sqlite3.connect(path, isolation_level=None)
    with closing(other), closing(SqliteCatalog(path, busy_seconds=0.02)) as impatient:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CatalogError, match="another process kept the database locked; try again"):
            await impatient.batch(MOVE)
        other.execute("ROLLBACK")
        await impatient.batch(MOVE)
        assert (await amounts(impatient))["moves"] == 1


async def test_many_may_create_the_file_at_once(path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        opened = list(threads.map(SqliteCatalog, [path] * 8))
    assert await value(opened[3], "SELECT 1") == 1
    for each in opened:
        each.close()


def test_the_file_is_for_its_owner_s_eyes_only(catalog: SqliteCatalog, path: Path) -> None:
    assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}


def test_a_file_that_is_no_database_is_refused(path: Path) -> None:
    path.write_bytes(b"not a database, but longer than a header of one hundred bytes" * 10)
    with pytest.raises(CatalogError, match="not a SQLite database; remove it and rebuild"):
        SqliteCatalog(path)


def test_a_directory_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match=r"catalog\.sqlite3: .*cannot be created: No such file"):
        SqliteCatalog(tmp_path / "missing" / "catalog.sqlite3")
