"""Whole systems for tests: every port, the schema applied, the owner there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path

from mempersist import background
from mempersist.archive import accounts
from mempersist.index.generation import ensure_generation
from mempersist.ports import ObjectStore, Ports, QueueName
from mempersist_ops import migrations
from mempersist_ops.stores.consumer import ConsumerQueue
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.embedded.mailer import OutboxMailer
from mempersist_ops.stores.embedded.objects import FileObjectStore
from mempersist_ops.stores.embedded.queue import SqliteQueue
from mempersist_ops.stores.embedded.vectors import SqliteVectorIndex
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from mempersist_ops.stores.memory.embedder import HashEmbedder
from mempersist_ops.stores.memory.mailer import MemoryMailer
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from mempersist_ops.stores.memory.queue import MemoryQueue
from mempersist_ops.stores.memory.system import ManualClock, SeededIds
from mempersist_ops.stores.memory.vectors import MemoryVectorIndex

QUEUES: tuple[QueueName, ...] = ("import", "index")


@dataclass(frozen=True, slots=True)
class World:
    """A system with what a test turns by hand. ``queue`` is that of ``ports`` with its consumer's side."""

    ports: Ports
    clock: ManualClock
    ids: SeededIds
    queue: ConsumerQueue


async def memory_world() -> World:
    """A new, empty system in memory."""
    clock, ids = ManualClock(), SeededIds()
    world = await _with_stores(MemoryObjectStore(), clock, ids)
    await accounts.ensure_owner(world.ports)
    return world


async def with_empty_catalog(world: World) -> World:
    """The same objects with everything else new and empty, as after the loss of the catalog and the vectors."""
    return await _with_stores(world.ports.objects, world.clock, world.ids)


@asynccontextmanager
async def embedded_world(directory: Path, *, start: int = 0) -> AsyncIterator[World]:
    """The system kept in ``directory``, new or as it was left there; closed at the end.

    :param start: how often it was started before: the clock shows a later time and the ids are others.
    """
    world, close = await open_embedded(directory, start=start)
    try:
        yield world
    finally:
        close()


async def open_embedded(directory: Path, *, start: int = 0) -> tuple[World, Callable[[], None]]:
    """The same with what closes it."""
    clock, ids, embedder = ManualClock(), SeededIds(start), HashEmbedder()
    clock.advance(start * 3_600_000)
    with ExitStack() as opened:
        objects = opened.enter_context(closing(FileObjectStore(directory / "objects")))
        catalog = opened.enter_context(closing(SqliteCatalog(directory / "catalog.sqlite3")))
        dimensions = embedder.model.dimensions
        vectors = opened.enter_context(closing(SqliteVectorIndex(directory / "vectors.sqlite3", dimensions)))
        queue = opened.enter_context(closing(SqliteQueue(directory / "queue.sqlite3", clock)))
        mailer = OutboxMailer(directory / "outbox", clock)
        ports = Ports(objects, catalog, vectors, queue, embedder, clock, ids, mailer)
        world = await _ready(World(ports, clock, ids, queue))
        await accounts.ensure_owner(world.ports)
        return world, opened.pop_all().close


async def _with_stores(objects: ObjectStore, clock: ManualClock, ids: SeededIds) -> World:
    embedder, queue = HashEmbedder(), MemoryQueue(clock)
    catalog, vectors = MemoryCatalog(), MemoryVectorIndex(embedder.model.dimensions)
    ports = Ports(objects, catalog, vectors, queue, embedder, clock, ids, MemoryMailer())
    return await _ready(World(ports, clock, ids, queue))


async def _ready(world: World) -> World:
    await migrations.apply(world.ports.catalog, migrations.find_directory(), world.clock, owner="test")
    await ensure_generation(world.ports)
    return world


async def drain(world: World, *, limit: int = 10_000, ports: Ports | None = None) -> None:
    """Deliver what is due on both queues until nothing is. The clock stands still; a host that has consumers of its
    own delivers to those.

    :param ports: deliver through these instead of the world's own, as a rig that injects faults needs.
    """
    if ports is None and hasattr(world.queue, "drain"):
        await world.queue.drain()
        return
    for _ in range(limit):
        handled = [await _deliver(world, queue, ports or world.ports) for queue in QUEUES]
        if not any(handled):
            return
    raise AssertionError("the queues do not become quiet")


async def _deliver(world: World, queue: QueueName, ports: Ports) -> int:
    """Hand over one batch and do with each message what is decided; how many there were."""
    deliveries = await world.queue.receive(queue, limit=5)
    if deliveries:
        await world.queue.settle(await background.deliver(ports, queue, deliveries))
    return len(deliveries)
