"""A digest over every projected table: two catalogs are equal exactly when their digests are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from mempersist import canonical
from mempersist.ports import Catalog, Row, SqlValue

PROJECTED: Final[dict[str, tuple[str, ...]]] = {
    "accounts": ("account_id",),
    "namespaces": ("account_id", "namespace"),
    "conversations": ("conversation_id",),
    "conversation_tags": ("conversation_id", "tag"),
    "revisions": ("conversation_id", "revision_id"),
    "messages": ("conversation_id", "source_node_id"),
    "idempotency_keys": ("account_id", "idempotency_key"),
    "assets": ("account_id", "asset_id", "sha256"),
    "imports": ("import_id",),
}
"""The tables that come back row for row from the archive, with their keys."""

_PAGE_ROWS = 2000


@dataclass(frozen=True, slots=True)
class TableDigest:
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class CatalogDigest:
    """``total`` covers every table's name, row count and digest."""

    total: str
    tables: dict[str, TableDigest]


async def digest(catalog: Catalog) -> CatalogDigest:
    """Read every projected table in key order, a page at a time. Writes meanwhile give a digest of no one moment."""
    tables = {table: await _table(catalog, table, key) for table, key in PROJECTED.items()}
    total = canonical.identity(
        "catalog", *(f"{table}:{part.rows}:{part.sha256}" for table, part in sorted(tables.items()))
    )
    return CatalogDigest(total, tables)


async def _table(catalog: Catalog, table: str, key: Sequence[str]) -> TableDigest:
    hasher, count = sha256(), 0
    columns = ", ".join(key)
    last: tuple[SqlValue, ...] | None = None
    while True:
        after = f" WHERE ({columns}) > ({', '.join('?' for _ in key)})" if last is not None else ""
        rows: tuple[Row, ...] = await catalog.query(
            f"SELECT * FROM {table}{after} ORDER BY {columns} LIMIT {_PAGE_ROWS}", last or ()
        )
        for row in rows:
            hasher.update(canonical.dumps(dict(row)) + b"\n")
        count += len(rows)
        if len(rows) < _PAGE_ROWS:
            return TableDigest(count, hasher.hexdigest())
        last = tuple(rows[-1][column] for column in key)
