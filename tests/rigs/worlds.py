"""Whole systems for tests: every port, the schema applied, the owner there."""

from __future__ import annotations

from dataclasses import dataclass

from mempersist import background
from mempersist.archive import accounts
from mempersist.index.generation import ensure_generation
from mempersist.ports import Ports, QueueName
from mempersist_ops import migrations
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from mempersist_ops.stores.memory.embedder import HashEmbedder
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
    queue: MemoryQueue


async def memory_world() -> World:
    """A new, empty system in memory."""
    clock, ids = ManualClock(), SeededIds()
    world = await _with_stores(MemoryObjectStore(), clock, ids)
    await accounts.ensure_owner(world.ports)
    return world


async def with_empty_catalog(world: World) -> World:
    """The same objects with everything else new and empty, as after the loss of the catalog and the vectors."""
    return await _with_stores(world.ports.objects, world.clock, world.ids)


async def _with_stores(objects: object, clock: ManualClock, ids: SeededIds) -> World:
    embedder, queue = HashEmbedder(), MemoryQueue(clock)
    catalog, vectors = MemoryCatalog(), MemoryVectorIndex(embedder.model.dimensions)
    await migrations.apply(catalog, migrations.find_directory(), clock, owner="test")
    ports = Ports(objects, catalog, vectors, queue, embedder, clock, ids)  # type: ignore[arg-type]
    await ensure_generation(ports)
    return World(ports, clock, ids, queue)


async def drain(world: World, *, limit: int = 10_000, ports: Ports | None = None) -> None:
    """Deliver what is due on both queues until nothing is. The clock stands still.

    :param ports: deliver through these instead of the world's own, as a rig that injects faults needs.
    """
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
