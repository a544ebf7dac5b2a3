"""The vector indexes that the contract suites run against: a new adapter is one more line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from mempersist.ports import MetadataValue, VectorFilter, VectorIndex, VectorRecord
from mempersist_ops.stores.embedded.vectors import SqliteVectorIndex
from mempersist_ops.stores.memory.vectors import MemoryVectorIndex
from tests.rigs.emulator import RemoteVectorIndex
from tests.rigs.worker.ports import new_vectors
from tests.rigs.worker.process import running

INDEXED = ("kind", "owner", "size")


class ClosableVectorIndex(VectorIndex, Protocol):
    def close(self) -> None: ...


VECTOR_INDEXES: dict[str, Callable[[Path, int], ClosableVectorIndex]] = {
    "memory": lambda _, dimensions: MemoryVectorIndex(dimensions, indexed=INDEXED),
    "embedded": lambda directory, dimensions: SqliteVectorIndex(
        directory / "vectors.sqlite3", dimensions, indexed=INDEXED
    ),
    "remote": lambda directory, dimensions: RemoteVectorIndex(directory, dimensions, INDEXED),
    "worker": lambda _, dimensions: new_vectors(running(), dimensions, INDEXED),
}


def record(vector_id: str, values: Sequence[float], **metadata: MetadataValue) -> VectorRecord:
    """A record of the owner ``me`` unless ``metadata`` names another."""
    return VectorRecord(vector_id, values, {"owner": "me", **metadata})


async def found(
    index: VectorIndex, vector: Sequence[float], where: VectorFilter | None = None, *, top_k: int = 100
) -> list[str]:
    """Ids of the matches, best first; those of the owner ``me`` when no filter is given."""
    return [match.id for match in await index.query(vector, top_k=top_k, where=where or {"owner": "me"})]
