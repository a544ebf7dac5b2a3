"""A data directory as a running service: its stores opened, its schema current, its owner there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from typing import Final

from mempersist import timestamps
from mempersist.errors import Code, MempersistError
from mempersist.ports import Ports
from mempersist.recovery.sweep import sweep
from mempersist.startup import begin
from mempersist.system import SystemClock, SystemIds
from mempersist_ops import migrations
from mempersist_ops.embedding.static import load_default
from mempersist_ops.host import datadir
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.embedded.mailer import OutboxMailer
from mempersist_ops.stores.embedded.objects import FileObjectStore
from mempersist_ops.stores.embedded.queue import SqliteQueue
from mempersist_ops.stores.embedded.vectors import SqliteVectorIndex

_MIGRATOR: Final = "local host"


@dataclass(frozen=True, slots=True)
class Host:
    """An open data directory. ``queue`` is that of ``ports``, with what a consumer needs."""

    directory: DataDirectory
    ports: Ports
    queue: SqliteQueue


@asynccontextmanager
async def opened(directory: DataDirectory) -> AsyncIterator[Host]:
    """The directory for use, shared with other programs: schema current, account of the owner there.

    The first program to come takes over what one that was killed had begun.

    :raises MempersistError: CANONICAL_STORAGE or DERIVED_INDEXING if catalog or index are lost or a restore was
        interrupted; RETRYABLE_INFRASTRUCTURE while a restore runs.
    """
    with closing(datadir.DirectoryLock(directory)) as lock:
        alone = lock.alone()
        if not alone:
            lock.share()
        if directory.restoring.exists():
            message = f"a restore into {directory.root} was interrupted; run the same command again"
            raise MempersistError(Code.CANONICAL_STORAGE, message)
        async with stores(directory) as host:
            await begin(host.ports)
            await _refuse_lost_vectors(host)
            if alone:
                await _take_over(host.ports)
                lock.share()
            yield host


@asynccontextmanager
async def stores(directory: DataDirectory) -> AsyncIterator[Host]:
    """The directory's stores with the schema current, and nothing else looked at: for a rebuild.

    :raises IndexUnavailable: if the embedding model or the vector file cannot be opened.
    :raises CatalogError: / :raises MempersistError: if the catalog cannot, or its schema cannot be made current.
    """
    embedder = load_default()
    clock = SystemClock()
    with (
        closing(SqliteCatalog(directory.catalog)) as catalog,
        closing(SqliteVectorIndex(directory.vectors, embedder.model.dimensions)) as vectors,
        closing(SqliteQueue(directory.queue, clock)) as queue,
        closing(FileObjectStore(directory.root)) as objects,
    ):
        try:
            await migrations.apply(catalog, migrations.find_directory(), clock, owner=_MIGRATOR)
        except migrations.MigrationError as error:
            raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, f"catalog of {directory.root}: {error}") from error
        mailer = OutboxMailer(directory.outbox, clock)
        yield Host(directory, Ports(objects, catalog, vectors, queue, embedder, clock, SystemIds(), mailer), queue)


async def _take_over(ports: Ports) -> None:
    """Nobody else runs, so every lease is a dead program's: end it, and send its work again at once."""
    now = timestamps.from_ms(ports.clock.now_ms())
    await ports.catalog.query("UPDATE jobs SET lease_expires_at = ? WHERE status = 'running'", (now,))
    await sweep(ports, grace_seconds=0)


async def _refuse_lost_vectors(host: Host) -> None:
    """An empty index beside a full catalog would find nothing and not say why."""
    if await vectors_lost(host):
        way_out = "run `mempersist rebuild-catalog --yes`, which makes it anew from the archive's objects"
        raise MempersistError(Code.DERIVED_INDEXING, f"the vector index in {host.directory.root} is lost; {way_out}")


async def vectors_lost(host: Host) -> bool:
    """Whether the catalog tells of indexed conversations and the vector index is empty."""
    indexed = await host.ports.catalog.query(
        "SELECT 1 FROM index_state WHERE status = 'indexed' AND chunk_count > 0 LIMIT 1"
    )
    return bool(indexed) and not (await host.ports.vectors.describe()).count
