"""Making catalog and indexes anew from the archive's objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mempersist.archive import keys
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import CatalogDigest, digest
from mempersist.ports import Statement
from mempersist.recovery.rebuild import RebuildReport, rebuild_catalog
from mempersist_ops.archive_file import scratch
from mempersist_ops.host.runtime import Host, vectors_lost


@dataclass(frozen=True, slots=True)
class Comparison:
    """The catalog as it is beside what the objects fold to."""

    catalog: CatalogDigest
    objects: CatalogDigest
    vectors_lost: bool

    @property
    def differing(self) -> tuple[str, ...]:
        """Names of the tables that a rebuild would change."""
        return tuple(name for name, table in self.objects.tables.items() if self.catalog.tables.get(name) != table)

    @property
    def as_it_should_be(self) -> bool:
        return not self.differing and not self.vectors_lost


async def compare(host: Host) -> Comparison:
    """What a rebuild would find, without changing anything. :raises MempersistError: for a damaged object."""
    return Comparison(
        await digest(host.ports.catalog), await scratch.digest_of(host.ports.objects), await vectors_lost(host)
    )


async def rebuild(host: Host, progress: Callable[[int], None]) -> RebuildReport:
    """Fold the objects into the catalog and queue what the index does not have. Removes no object.

    Where the vectors are lost, the index is taken to hold nothing.
    """
    if await vectors_lost(host):
        await _forget_index(host)
    return await rebuild_catalog(host.ports, progress=progress)


async def _forget_index(host: Host) -> None:
    """Drop the derived rows, a conversation at a time: full-text rows go with their chunks by trigger."""
    catalog = host.ports.catalog
    while rows := await catalog.query(
        "SELECT conversation_id FROM index_state WHERE account_id = ? LIMIT 50", (OWNER,)
    ):
        for row in rows:
            conversation = (OWNER, row["conversation_id"])
            await catalog.batch(
                [
                    Statement("DELETE FROM chunks WHERE account_id = ? AND conversation_id = ?", conversation),
                    Statement("DELETE FROM index_state WHERE account_id = ? AND conversation_id = ?", conversation),
                ]
            )


async def count_conversations(host: Host) -> int:
    """How many conversations the store has, dead ones included."""
    count = 0
    cursor: str | None = None
    while True:
        page = await host.ports.objects.list(keys.CONVERSATIONS, cursor=cursor, delimiter="/")
        count += len(page.prefixes)
        cursor = page.cursor
        if cursor is None:
            return count
