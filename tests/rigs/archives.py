"""An archive with one of everything in it."""

from __future__ import annotations

from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from tests.rigs import exports
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, store


async def populated() -> World:
    """Imported and written conversations, an append, an asset, a deletion; everything indexed."""
    world = await memory_world()
    data = exports.ugly_zip()
    await uploads.direct(world.ports, OWNER, filename="export.zip", body=data, size=len(data))
    await drain(world)
    base = await store(world.ports, "first words", "second words", title="Kept")
    await append(world.ports, base, "third words")
    gone = await store(world.ports, "deleted words", title="Gone")
    await drain(world)
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    await drain(world)
    return world
