"""One vector file serves several threads and processes; who only writes holds no vectors in memory."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from mempersist.ports import IndexUnavailable, VectorRecord
from mempersist_ops.stores.embedded.vectors import SqliteVectorIndex
from tests.rigs.vectors import found, record

X, Y = (1.0, 0.0), (0.0, 1.0)
PROCESS = """
import asyncio, pathlib, sys
from tests.test_vector_file_is_shared import open_index
from tests.rigs.vectors import record
async def main():
    index = open_index(pathlib.Path(sys.argv[1]))
    await index.delete(["a"])
    await index.upsert([record("from afar", (1.0, 0.0)), record("b", (0.0, 1.0))])
    index.close()
asyncio.run(main())
"""


def open_index(path: Path, dimensions: int = 2) -> SqliteVectorIndex:
    return SqliteVectorIndex(path, dimensions, indexed=("owner",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vectors.sqlite3"


@pytest.fixture
def first(path: Path) -> Iterator[SqliteVectorIndex]:
    with closing(open_index(path)) as index:
        yield index


@pytest.fixture
def second(first: SqliteVectorIndex, path: Path) -> Iterator[SqliteVectorIndex]:
    with closing(open_index(path)) as index:
        yield index


async def test_an_instance_that_has_searched_sees_what_another_changes(
    first: SqliteVectorIndex, second: SqliteVectorIndex
) -> None:
    await first.upsert([record("a", X), record("b", Y)])
    assert await found(second, X) == ["a", "b"]
    await first.upsert([record("b", X), record("c", X, owner="other")])
    assert await found(second, X) == ["a", "b"]
    assert await found(second, X, {"owner": "other"}) == ["c"]
    await first.delete(["a"])
    assert await found(second, X) == ["b"]
    await second.upsert([record("d", X)])
    assert await found(first, X) == await found(second, X) == ["b", "d"]
    assert (await second.describe()).count == 3


async def test_what_another_process_changes_is_seen(first: SqliteVectorIndex, path: Path) -> None:
    await first.upsert([record("a", X), record("b", X)])
    assert await found(first, X) == ["a", "b"]
    root = Path(__file__).parents[1]
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", PROCESS, str(path), cwd=root)
    assert await process.wait() == 0
    assert await found(first, X) == ["from afar", "b"]


async def test_writers_and_readers_at_once_see_whole_mutations(
    first: SqliteVectorIndex, second: SqliteVectorIndex
) -> None:
    async def write(index: SqliteVectorIndex, name: str) -> None:
        for number in range(20):
            await index.upsert([record(f"{name}{number}", X), record(f"{name}{number} too", X)])
            await index.delete([f"{name}{number - 1}", f"{name}{number - 1} too"])

    async def read() -> None:
        for _ in range(20):
            assert len(await found(first, X)) % 2 == 0

    await asyncio.gather(write(first, "one"), write(second, "two"), read())
    assert await found(second, X) == ["one19", "one19 too", "two19", "two19 too"]


async def test_vectors_are_there_after_reopening(path: Path) -> None:
    with closing(open_index(path)) as index:
        await index.upsert([record("a", X), record("b", Y)])
        await index.delete(["b"])
    with closing(open_index(path)) as index:
        assert await found(index, X) == ["a"]
        assert (await index.describe()).count == 1


async def test_places_of_deleted_vectors_are_used_again(first: SqliteVectorIndex, path: Path) -> None:
    await first.upsert([record(f"old{number:02}", X) for number in range(50)])
    await first.delete([f"old{number:02}" for number in range(0, 50, 2)])
    await first.upsert([record(f"new{number:02}", X) for number in range(30)])
    assert len(await found(first, X)) == 55
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT count(*) FROM vectors").fetchone() == (55,)


async def test_many_equal_vectors_are_cut_in_order_of_id(first: SqliteVectorIndex) -> None:
    for start in range(0, 20_000, 1000):
        await first.upsert([record(f"{(7919 * number) % 20_000:05}", X) for number in range(start, start + 1000)])
    assert await found(first, X, top_k=3) == ["00000", "00001", "00002"]
    assert await found(first, Y, top_k=3) == ["00000", "00001", "00002"]


async def test_only_a_search_takes_memory_for_all_vectors(path: Path) -> None:
    dimensions, count = 512, 8000
    all_vectors = 4 * dimensions * count
    values = [0.5] * dimensions
    with closing(open_index(path, dimensions)) as index:
        tracemalloc.start()
        try:
            for start in range(0, count, 500):
                await index.upsert([record(f"{number:05}", values) for number in range(start, start + 500)])
            assert tracemalloc.get_traced_memory()[1] < all_vectors / 2
            await index.query(values, top_k=1, where={"owner": "me"})
            assert tracemalloc.get_traced_memory()[0] > all_vectors
        finally:
            tracemalloc.stop()


async def test_a_failed_mutation_leaves_the_index_usable(first: SqliteVectorIndex, path: Path) -> None:
    await first.upsert([record("a", X)])
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("CREATE TRIGGER broken BEFORE INSERT ON vectors BEGIN SELECT raise(ABORT, 'hunter2'); END")
        with pytest.raises(IndexUnavailable) as raised:
            await first.upsert([VectorRecord("b", X, {"owner": "new"})])
        assert "hunter2" not in str(raised.value)
        file.execute("DROP TRIGGER broken")
    assert await found(first, X) == ["a"]
    await first.upsert([VectorRecord("b", X, {"owner": "new"})])
    assert await found(first, X, {"owner": "new"}) == ["b"]
    assert (await first.describe()).count == 2


async def test_a_mutation_waits_for_another_and_builds_on_it(first: SqliteVectorIndex, path: Path) -> None:
    await first.upsert([record("a", X)])
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE state SET seq = seq + 100")
        waiting = asyncio.create_task(first.upsert([record("b", X)]))
        for _ in range(5):
            assert await found(first, X) == ["a"]
        assert not waiting.done()
        other.execute("COMMIT")
        await waiting
        assert other.execute("SELECT seq, count FROM state").fetchone() == (102, 2)
    assert await found(first, X) == ["a", "b"]


async def test_a_file_that_stays_locked_is_unavailable(path: Path) -> None:
    with (
        closing(SqliteVectorIndex(path, 2, indexed=("owner",), busy_seconds=0.02)) as index,
        closing(sqlite3.connect(path, isolation_level=None)) as other,
    ):
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(IndexUnavailable, match="another process kept the database locked"):
            await index.upsert([record("a", X)])
        assert await found(index, X) == []


def test_a_file_of_another_shape_is_refused(path: Path) -> None:
    open_index(path).close()
    with pytest.raises(ValueError, match=r"2 dimensions .* remove the file and reindex"):
        open_index(path, 3)
    with pytest.raises(ValueError, match=r'indexes \["owner"\].* remove the file and reindex'):
        SqliteVectorIndex(path, 2, indexed=("owner", "kind"))


def test_a_file_that_is_no_database_is_unavailable(path: Path) -> None:
    path.write_bytes(b"not a database, but longer than a header of one hundred bytes" * 10)
    with pytest.raises(IndexUnavailable, match="not a SQLite database; remove it and rebuild"):
        open_index(path)


@pytest.mark.parametrize(
    ("dimensions", "indexed"),
    [(0, ()), (1537, ()), (2, ("a", "a")), (2, tuple("abcdefghijk")), (2, ("a.b",)), (2, ("",))],
)
def test_shapes_that_vectorize_refuses(path: Path, dimensions: int, indexed: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"^(dimensions|indexed): "):
        SqliteVectorIndex(path, dimensions, indexed=indexed)
