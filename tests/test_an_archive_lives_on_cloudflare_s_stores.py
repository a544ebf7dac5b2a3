"""The whole system over the remote adapters: imported, searched, and its catalog and vectors rebuilt from R2 alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path

import pytest

from mempersist import background
from mempersist.archive import accounts
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.imports import uploads
from mempersist.index.generation import ensure_generation
from mempersist.limits import VECTOR_METADATA_INDEXES
from mempersist.ports import Ports, QueueName
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.search.query import search
from mempersist_ops import migrations
from mempersist_ops.sample import DEMO_QUERY, build
from mempersist_ops.stores.memory.system import ManualClock, SeededIds
from tests.rigs.emulator import RemoteCatalog, RemoteObjectStore, RemoteQueue, RemoteVectorIndex, remote_embedder

QUEUES: tuple[QueueName, ...] = ("import", "index")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


async def deployment(directory: Path, opened: ExitStack, objects: RemoteObjectStore) -> tuple[Ports, RemoteQueue]:
    """``objects`` with new, empty databases beside it."""
    clock, embedder = ManualClock(), remote_embedder()
    catalog = opened.enter_context(closing(RemoteCatalog(directory / "d1")))
    dimensions = embedder.model.dimensions
    vectors = opened.enter_context(closing(RemoteVectorIndex(directory / "v", dimensions, VECTOR_METADATA_INDEXES)))
    queue = opened.enter_context(closing(RemoteQueue(directory / "q", clock)))
    ports = Ports(objects, catalog, vectors, queue, embedder, clock, SeededIds())
    await migrations.apply(catalog, migrations.find_directory(), clock, owner="test")
    await ensure_generation(ports)
    return ports, queue


async def drain(ports: Ports, queue: RemoteQueue) -> None:
    busy = True
    while busy:
        busy = False
        for name in QUEUES:
            while deliveries := await queue.receive(name, limit=5):
                await queue.settle(await background.deliver(ports, name, deliveries))
                busy = True


async def found(ports: Ports) -> list[str]:
    result = await search(ports, OWNER, query=DEMO_QUERY, limit=10)
    assert not result.degraded
    return [hit.chunk_id for hit in result.results]


async def test_from_import_to_rebuild(tmp_path: Path, opened: ExitStack) -> None:
    objects = opened.enter_context(closing(RemoteObjectStore(tmp_path)))
    ports, queue = await deployment(tmp_path / "first", opened, objects)
    await accounts.ensure_owner(ports)
    export = build(tmp_path / "sample.zip").read_bytes()
    await uploads.direct(ports, OWNER, filename="sample.zip", body=export, size=len(export))
    await drain(ports, queue)
    before, hits, vectors = await digest(ports.catalog), await found(ports), await ports.vectors.describe()
    assert before.tables["messages"].rows > 20
    assert hits
    assert vectors.count > 10

    again, queue = await deployment(tmp_path / "second", opened, objects)
    await rebuild_catalog(replace(again, ids=SeededIds(1)))
    await drain(again, queue)
    assert (await digest(again.catalog)).total == before.total
    assert await found(again) == hits
    assert await again.vectors.describe() == vectors
