"""The catalogs that the contract suites run against: a new adapter is one more line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from mempersist.ports import Catalog, Statement
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from tests.rigs.emulator import RemoteCatalog
from tests.rigs.worker.ports import RigCatalog, new_catalog
from tests.rigs.worker.process import running


class ClosableCatalog(Catalog, Protocol):
    def close(self) -> None: ...


CATALOGS: dict[str, Callable[[Path], ClosableCatalog]] = {
    "memory": lambda _: MemoryCatalog(),
    "embedded": lambda directory: SqliteCatalog(directory / "catalog.sqlite3"),
    "remote": RemoteCatalog,
    "worker": lambda _: new_catalog(running()),
}


def is_local(catalog: Catalog) -> bool:
    """Whether SQLite runs behind the port itself: D1 does not say which statement of a batch failed, and Miniflare's D1
    does not enforce some documented limits of production."""
    return not isinstance(catalog, RigCatalog | RemoteCatalog)


def at(catalog: Catalog, statement: int, count: int) -> str:
    """The pattern of how an error names the statement of a batch, where the database tells."""
    return f"^statement {statement} of {count}: " if is_local(catalog) else r"^\b"


async def run(catalog: Catalog, *statements: str) -> None:
    """Run statements without parameters as one batch."""
    await catalog.batch([Statement(sql) for sql in statements])


async def value(catalog: Catalog, sql: str, *params: Any) -> Any:
    """The one value that ``sql`` selects."""
    (row,) = await catalog.query(sql, params)
    (found,) = row.values()
    return found
