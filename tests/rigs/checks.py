"""What holds of a system after whatever happened to it."""

from __future__ import annotations

from mempersist.archive import read
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.recovery.sweep import sweep
from mempersist.search.query import search
from tests.rigs.worlds import World, drain, with_empty_catalog


async def started_again(world: World) -> None:
    """What a host does after a start, when everything that was under way is dead."""
    world.clock.advance(1_000_000)
    await sweep(world.ports, grace_seconds=0)
    await drain(world)


async def is_whole(world: World) -> None:
    """The catalog is what the archive says, nothing waits, and every conversation can be read and found."""
    live = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    report = await rebuild_catalog(rebuilt.ports)
    assert report.damaged == []
    assert await digest(rebuilt.ports.catalog) == live
    for table in ("intents", "jobs"):
        assert await world.ports.catalog.query(f"SELECT * FROM {table}") == (), table
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE deleted_at IS NULL")
    for row in rows:
        page = await read.read_page(world.ports, OWNER, row["conversation_id"], limit=100)
        for message in page.messages:
            found = await search(world.ports, OWNER, query=message.node.text, limit=5)
            assert row["conversation_id"] in {hit.conversation_id for hit in found.results}
            assert {hit.sources for hit in found.results} == {("lexical", "semantic")}
