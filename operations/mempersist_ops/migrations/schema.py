"""Whether a database has the schema that its applied migrations make.

A ledger can say "applied" over tables that were dropped, restored from a partial copy or changed by hand. Only the
schema itself tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mempersist.ports import Catalog, CatalogError, Statement
from mempersist_ops.migrations.files import MigrationError, read_directory
from mempersist_ops.migrations.ledger import LEDGER_STATEMENTS, applied_rows
from mempersist_ops.sql_text import normalise
from mempersist_ops.stores.memory.catalog import MemoryCatalog

# SQLite's own tables, D1's, and the ledger of Cloudflare's command line.
_FOREIGN_PREFIXES = ("sqlite_", "_cf_")
_FOREIGN_NAMES = frozenset({"d1_migrations"})
_FTS5_SHADOWS = ("_data", "_idx", "_content", "_docsize", "_config")


@dataclass(frozen=True, slots=True)
class SchemaProblem:
    """A table, index, trigger or view that is not as the migrations make it."""

    kind: Literal["missing", "different", "unexpected"]
    type: str
    name: str

    def __str__(self) -> str:
        explanation = {
            "missing": "is missing",
            "different": "is not what the migrations make",
            "unexpected": "is in the database but in no applied migration",
        }
        return f"{self.type} {self.name} {explanation[self.kind]}"


async def schema_problems(catalog: Catalog, directory: Path) -> tuple[SchemaProblem, ...]:
    """Compare the live schema with what the migrations that the ledger names make in a scratch database.

    Layout and comments do not count. Reads only.

    :raises MigrationError: when the directory cannot be read, or a file of it fails in the scratch database.
    """
    files = read_directory(directory)
    rows = await applied_rows(catalog)
    scratch = MemoryCatalog()
    try:
        if rows:
            await scratch.batch([Statement(sql) for sql in LEDGER_STATEMENTS])
        for file in files:
            if file.version in rows:
                try:
                    await scratch.batch([Statement(sql) for sql in file.statements])
                except CatalogError as error:
                    raise MigrationError(f"{file.name} fails in an empty database: {error}") from error
        expected = await _schema(scratch)
    finally:
        scratch.close()
    live = await _schema(catalog)
    return tuple(_compare(expected, live))


Schema = Mapping[tuple[str, str], str]
"""Normalised SQL by type and name."""


async def _schema(catalog: Catalog) -> Schema:
    rows = await catalog.query("SELECT type, name, sql FROM sqlite_master")
    found = {
        (str(row["type"]), str(row["name"])): normalise(row["sql"] or "")
        for row in rows
        if not row["name"].startswith(_FOREIGN_PREFIXES) and row["name"] not in _FOREIGN_NAMES
    }
    shadows = {
        ("table", name + suffix)
        for (kind, name), sql in found.items()
        if kind == "table" and sql.upper().startswith("CREATE VIRTUAL TABLE")
        for suffix in _FTS5_SHADOWS
    }
    # How FTS5 declares its own tables is the SQLite version's business.
    return {key: "" if key in shadows else sql for key, sql in found.items()}


def _compare(expected: Schema, live: Schema) -> Iterable[SchemaProblem]:
    for key in sorted({*expected, *live}):
        if key not in live:
            yield SchemaProblem("missing", *key)
        elif key not in expected:
            yield SchemaProblem("unexpected", *key)
        elif expected[key] != live[key]:
            yield SchemaProblem("different", *key)
