"""Folding objects into a catalog that is thrown away: the digest that says whether two archives are the same."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Final

from mempersist.catalog.digest import CatalogDigest, digest
from mempersist.errors import Code, MempersistError
from mempersist.ports import ObjectStore, Ports
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist_ops import migrations
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.memory.embedder import HashEmbedder
from mempersist_ops.stores.memory.queue import MemoryQueue
from mempersist_ops.stores.memory.system import ManualClock, SeededIds
from mempersist_ops.stores.memory.vectors import MemoryVectorIndex

# What the scratch catalog says of the index is thrown away with it, so the smallest index will do.
_DIMENSIONS: Final = 8


async def digest_of(objects: ObjectStore) -> CatalogDigest:
    """The digest of the catalog that ``objects`` fold to.

    :raises MempersistError: CANONICAL_STORAGE that names the first object which cannot be folded.
    """
    with tempfile.TemporaryDirectory(prefix="mempersist-") as folder:
        clock = ManualClock()
        catalog = SqliteCatalog(Path(folder) / "catalog.sqlite3", synchronous="NORMAL")
        try:
            await migrations.apply(catalog, migrations.find_directory(), clock)
            embedder = HashEmbedder(_DIMENSIONS)
            vectors = MemoryVectorIndex(_DIMENSIONS)
            ports = Ports(objects, catalog, vectors, MemoryQueue(clock), embedder, clock, SeededIds())
            report = await rebuild_catalog(ports)
            if report.damaged:
                first = report.damaged[0]
                raise MempersistError(Code.CANONICAL_STORAGE, f"object {first.key} is damaged: {first.problem}")
            return await digest(catalog)
        finally:
            catalog.close()
