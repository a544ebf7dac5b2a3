"""Promise: the objects are enough. Without catalog and vectors, a rebuild gives the same digest and answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from mempersist_ops import sample
from mempersist_ops.cli.tools import call_here
from mempersist_ops.host import datadir
from mempersist_ops.host.runtime import opened
from tests.rigs.command import answer, mempersist

QUERIES = (sample.DEMO_QUERY, "Rezept", "ベルリン", "image", "the")


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    export = sample.build(tmp_path / "sample-export.zip")
    answer("import", export, "--data-dir", tmp_path / "data")
    return tmp_path / "data"


def answers(data_dir: Path) -> list[Any]:
    """What memory_search answers to each of the queries."""

    async def ask() -> list[Any]:
        async with opened(datadir.existing(data_dir)) as host:
            return [await call_here(host, "memory_search", {"query": query}) for query in QUERIES]

    return asyncio.run(ask())


def remove(data_dir: Path, *names: str) -> None:
    for name in names:
        for file in data_dir.glob(f"{name}*"):
            file.unlink()


def test_without_catalog_vectors_and_queue_a_rebuild_gives_the_same_archive(data_dir: Path) -> None:
    before = answer("rebuild-catalog", "--data-dir", data_dir)
    assert (before["differingTables"], before["vectorsLost"]) == ([], False)
    found = answers(data_dir)
    assert found[0]["results"]
    remove(data_dir, "catalog.sqlite3", "vectors.sqlite3", "queue.sqlite3")

    refused = mempersist("search", "the", "--data-dir", data_dir)
    assert refused.returncode == 1
    assert "mempersist rebuild-catalog --yes" in refused.stderr

    dry = answer("rebuild-catalog", "--data-dir", data_dir, code=1)
    assert dry["objectsDigest"] == before["catalogDigest"]
    assert dry["catalogDigest"] != before["catalogDigest"]
    assert "conversations" in dry["differingTables"]

    rebuilt = answer("rebuild-catalog", "--yes", "--data-dir", data_dir)
    assert (rebuilt["catalogDigest"], rebuilt["damaged"]) == (before["catalogDigest"], [])
    assert answers(data_dir) == found
    answer("rebuild-catalog", "--data-dir", data_dir)


def test_lost_vectors_are_noticed_and_come_back(data_dir: Path) -> None:
    found = answers(data_dir)
    remove(data_dir, "vectors.sqlite3")
    refused = mempersist("search", "the", "--data-dir", data_dir)
    assert refused.returncode == 1
    assert "vector index" in refused.stderr
    assert answer("rebuild-catalog", "--data-dir", data_dir, code=1)["vectorsLost"] is True
    answer("rebuild-catalog", "--yes", "--data-dir", data_dir)
    assert answers(data_dir) == found


def test_a_lost_object_is_named(data_dir: Path) -> None:
    segment = next((data_dir / "objects").rglob("segments/*"))
    while segment.is_dir():
        segment = next(segment.iterdir())
    segment.unlink()
    remove(data_dir, "catalog.sqlite3")
    report = mempersist("rebuild-catalog", "--yes", "--json", "--data-dir", data_dir)
    assert report.returncode == 1
    assert "canonical/conversations/" in report.stdout
