"""The Worker as a world: stores for a test to look into, and queues that stand still until they are drained."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from mempersist.ports import Ports
from mempersist.startup import begin
from mempersist.system import SystemIds
from mempersist_ops import migrations
from tests.rigs.worker.ports import RigCatalog, RigEmbedder, RigMailer, RigObjectStore, RigQueue, RigVectorIndex
from tests.rigs.worker.process import Rig
from tests.rigs.worlds import World


@dataclass(frozen=True, slots=True)
class RigPorts(Ports):
    """The ports of the Worker that runs in ``rig``."""

    rig: Rig | None = None


@dataclass(frozen=True, slots=True)
class RigClock:
    """The time as the Worker sees it."""

    rig: Rig

    def now_ms(self) -> int:
        return int(self.rig.steer("now"))

    def advance(self, milliseconds: int) -> None:
        self.rig.steer("clock", advance=milliseconds)


@dataclass(frozen=True, slots=True)
class RigConsumer:
    """The Worker's side of its queues."""

    rig: Rig

    async def drain(self) -> None:
        """Let the Worker handle what is due until nothing is."""
        await asyncio.to_thread(self.rig.steer, "drain")


async def rig_world(rig: Rig, **options: object) -> World:
    """A new, empty system of the Worker. ``options`` go to the rig: ``variables``, ``vectorDelay`` in milliseconds."""
    await asyncio.to_thread(lambda: rig.steer("world", **options))
    rig.steer("mode", mode="hold")
    clock = RigClock(rig)
    vectors = RigVectorIndex(rig, "MEMORY_VECTOR", 1024, ("account", "generation", "namespace"))
    mailer = RigMailer(rig, "memory@example.com")
    objects, catalog, queue = RigObjectStore(rig), RigCatalog(rig), RigQueue(rig)
    ports = RigPorts(objects, catalog, vectors, queue, RigEmbedder(rig), clock, SystemIds(), mailer, rig)
    await migrations.apply(catalog, migrations.find_directory(), clock, owner="test")
    await begin(ports)
    return World(ports, clock, ports.ids, RigConsumer(rig))  # type: ignore[arg-type]
