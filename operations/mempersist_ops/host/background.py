"""The work behind the doors: queue messages become turns, and the sweeper finds what no message reached."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Final

from mempersist import logs
from mempersist.background import deliver
from mempersist.defects import place_of
from mempersist.limits import LEASE_SECONDS
from mempersist.ports import QueueName
from mempersist.recovery.sweep import sweep
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.runtime import Host, opened

_BATCH: Final[dict[QueueName, int]] = {"import": 1, "index": 25}
_SWEEP_SECONDS: Final = 30.0
_IDLE_SECONDS: Final = 0.2
_LOOK_SECONDS: Final = 0.2
_TROUBLE_SECONDS: Final = 5.0


async def turn(host: Host) -> int:
    """Handle one batch of each queue; the number of messages that were there.

    :raises Exception: a defect in a turn, after which the messages come again.
    """
    handled = 0
    for queue, size in _BATCH.items():
        deliveries = await host.queue.receive(queue, limit=size, lease_seconds=LEASE_SECONDS)
        if deliveries:
            await host.queue.settle(await deliver(host.ports, queue, deliveries))
        handled += len(deliveries)
    return handled


async def work_until(host: Host, done: Callable[[], Awaitable[bool]]) -> None:
    """Turn after turn until ``done``, which is asked now and then, with a sweep every half minute. Others may work on
    the same directory meanwhile."""
    clock = asyncio.get_running_loop().time
    asked = swept = -_SWEEP_SECONDS
    busy = True
    while True:
        now = clock()
        if not busy or now - asked >= _LOOK_SECONDS:
            if await done():
                return
            asked = now
        if now - swept >= _SWEEP_SECONDS:
            await sweep(host.ports)
            swept = now
        busy = bool(await turn(host))
        if not busy:
            await asyncio.sleep(_IDLE_SECONDS)


class BackgroundWork:
    """Consumers and sweeper in a thread with an event loop and store connections of its own."""

    def __init__(self, directory: DataDirectory) -> None:
        self._directory = directory
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="mempersist-background")

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask it to stop and wait for the turn that runs: what a turn has not recorded is done again."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                asyncio.run(self._work())
            except Exception as error:  # whatever it was, the work has to go on, and the log has to say so
                logs.error("background_trouble", defect=place_of(error))
                self._stopping.wait(_TROUBLE_SECONDS)

    async def _work(self) -> None:
        async with opened(self._directory) as host:
            await work_until(host, self._stopped)

    async def _stopped(self) -> bool:
        return self._stopping.is_set()
