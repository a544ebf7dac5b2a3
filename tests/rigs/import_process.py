"""A host process for tests that kill it: ``python -m tests.rigs.import_process DIRECTORY START``.

It opens the embedded world in DIRECTORY, says ``ready``, sweeps, works until its queues are quiet and says ``done``.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mempersist.recovery.sweep import sweep
from tests.rigs.worlds import drain, embedded_world


async def main(directory: Path, start: int) -> None:
    async with embedded_world(directory, start=start) as world:
        print("ready", flush=True)
        await sweep(world.ports, grace_seconds=0)
        await drain(world)
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
