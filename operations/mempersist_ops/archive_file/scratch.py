"""Folding objects into a catalog that is thrown away: the digest that says whether two archives are the same."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from mempersist.catalog.digest import CatalogDigest, digest
from mempersist.errors import Code, MempersistError
from mempersist.ports import (
    EmbeddingModel,
    IndexUnavailable,
    ObjectStore,
    Ports,
    QueueName,
    Vector,
    VectorFilter,
    VectorIndexInfo,
    VectorMatch,
    VectorRecord,
)
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist_ops import migrations
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.system import SystemClock, SystemIds

_MODEL: Final = EmbeddingModel("none", 1)


async def digest_of(objects: ObjectStore) -> CatalogDigest:
    """The digest of the catalog that ``objects`` fold to.

    :raises MempersistError: CANONICAL_STORAGE that names the first object which cannot be folded.
    """
    with tempfile.TemporaryDirectory(prefix="mempersist-") as folder:
        catalog = SqliteCatalog(Path(folder) / "catalog.sqlite3", synchronous="NORMAL")
        try:
            await migrations.apply(catalog, migrations.find_directory(), SystemClock())
            ports = Ports(
                objects, catalog, _NoVectors(), _NoQueue(), _NoEmbedder(), clock=SystemClock(), ids=SystemIds()
            )
            report = await rebuild_catalog(ports)
            if report.damaged:
                first = report.damaged[0]
                raise MempersistError(Code.CANONICAL_STORAGE, f"object {first.key} is damaged: {first.problem}")
            return await digest(catalog)
        finally:
            catalog.close()


class _NoQueue:
    """Takes every message and forgets it: there is nobody to index a scratch catalog."""

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        del queue, bodies, delay_seconds


class _NoEmbedder:
    """Names a model, which a fold writes down, and never runs."""

    @property
    def model(self) -> EmbeddingModel:
        return _MODEL

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        del texts, kind
        raise IndexUnavailable


class _NoVectors:
    """No index at all; a fold needs none."""

    async def upsert(self, records: Sequence[VectorRecord]) -> None:
        del records
        raise IndexUnavailable

    async def delete(self, ids: Sequence[str]) -> None:
        del ids
        raise IndexUnavailable

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        del vector, top_k, where, return_metadata
        raise IndexUnavailable

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]:
        del ids
        raise IndexUnavailable

    async def describe(self) -> VectorIndexInfo:
        raise IndexUnavailable
