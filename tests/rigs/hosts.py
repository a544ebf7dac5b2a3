"""Where the service of a test runs: in this process over stores in memory or over the local server's files, or as the
Worker in its rig.

A module with ``EVERY_HOST = True`` runs on each. A test of it that replaces a part inside the process is marked
``in_process`` and runs there alone.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path

from mempersist.ports import Ports
from tests.rigs.worker.process import running
from tests.rigs.worker.world import RigPorts, rig_world
from tests.rigs.worlds import World, memory_world, open_embedded

HOSTS = ("memory", "embedded", "worker")


class Current:
    """The host of the test that runs, and what is to be closed after it."""

    name = "memory"
    opened = ExitStack()


async def new_world() -> World:
    """A new, empty system on the host of this test, which ends with the test."""
    if Current.name == "worker":
        return await rig_world(running())
    if Current.name == "memory":
        return await memory_world()
    directory = Current.opened.enter_context(tempfile.TemporaryDirectory())
    world, close = await open_embedded(Path(directory))
    Current.opened.callback(close)
    return world


def is_worker(ports: Ports) -> bool:
    """Whether these are the ports of the Worker, which then answers itself."""
    return isinstance(ports, RigPorts)
