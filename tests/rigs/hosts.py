"""Where the service of a test runs: in this process over stores in memory, or as the Worker in its rig.

A module with ``EVERY_HOST = True`` runs on each. A test of it that replaces a part inside the process is marked
``in_process`` and runs there alone.
"""

from __future__ import annotations

from mempersist.ports import Ports
from tests.rigs.worker.process import running
from tests.rigs.worker.world import RigPorts, rig_world
from tests.rigs.worlds import World, memory_world

HOSTS = ("memory", "worker")


class Current:
    """The host of the test that runs."""

    name = "memory"


async def new_world() -> World:
    """A new, empty system on the host of this test."""
    return await rig_world(running()) if Current.name == "worker" else await memory_world()


def is_worker(ports: Ports) -> bool:
    """Whether these are the ports of the Worker, which then answers itself."""
    return isinstance(ports, RigPorts)
