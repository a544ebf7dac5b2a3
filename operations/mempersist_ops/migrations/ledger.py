"""The ledger of applied migrations, which lies in the database itself, and applying what is pending.

Each migration and its ledger row are one batch, so a migration is applied wholly and once, or not at all. The lock only
keeps a second operator from wasting work: the batch itself fails when the lock was lost or the row exists.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from mempersist import timestamps
from mempersist.ports import Catalog, CatalogError, Clock, Statement
from mempersist_ops.migrations.files import MigrationError, MigrationFile, directory_digest, read_directory
from mempersist_ops.sql_text import split_statements

LEDGER_TABLE = "schema_migrations"
LOCK_TABLE = "schema_migration_lock"
LOCK_SECONDS = 60
"""How long a lock outlives an operator who vanished. It is renewed with every migration."""

LEDGER_STATEMENTS = split_statements(f"""
CREATE TABLE IF NOT EXISTS {LEDGER_TABLE} (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  checksum TEXT NOT NULL,
  applied_at TEXT NOT NULL,
  applied_by TEXT NOT NULL
) STRICT;
CREATE TABLE IF NOT EXISTS {LOCK_TABLE} (
  lock_id INTEGER PRIMARY KEY CHECK (lock_id = 1),
  owner TEXT NOT NULL,
  expires_at TEXT NOT NULL
) STRICT;
""")

MigrationStatus = Literal["pending", "applied", "modified", "missing", "out_of_order"]

_WAYS_OUT = {
    "modified": "was changed after it was applied; restore the file and put the change into a new migration",
    "missing": "was applied but its file is gone; restore the file, or run the release that has it",
    "out_of_order": "is not applied though a later one is; give it the next free number",
}


@dataclass(frozen=True, slots=True)
class MigrationState:
    """One migration, as file, as ledger row, or both.

    :param status: ``pending`` waits to be applied; ``modified``, ``missing`` and ``out_of_order`` block applying.
    :param checksum: of the file; None when it is missing.
    :param applied_checksum: of the file when it was applied; None when it was not.
    """

    version: int
    name: str
    status: MigrationStatus
    checksum: str | None
    applied_checksum: str | None
    applied_at: str | None


@dataclass(frozen=True, slots=True)
class MigrationPlan:
    """How a database stands to a directory.

    :param digest: of the directory, what an approval to apply it names.
    """

    states: tuple[MigrationState, ...]
    digest: str

    @property
    def pending(self) -> tuple[MigrationState, ...]:
        return tuple(state for state in self.states if state.status == "pending")

    @property
    def problems(self) -> tuple[str, ...]:
        """A sentence for each migration that blocks applying, with the way out."""
        return tuple(f"{state.name} {_WAYS_OUT[state.status]}" for state in self.states if state.status in _WAYS_OUT)


async def plan(catalog: Catalog, directory: Path) -> MigrationPlan:
    """Compare ``directory`` with the ledger. Writes nothing.

    :raises MigrationError: when the directory cannot be read.
    """
    return _plan(read_directory(directory), await applied_rows(catalog))


async def apply(
    catalog: Catalog, directory: Path, clock: Clock, *, owner: str | None = None
) -> tuple[MigrationFile, ...]:
    """Apply every pending migration in order and return those that this call applied; an up-to-date database is left
    untouched.

    :param owner: who applies, for the ledger and the lock; a random name by default. Calls of one owner do not lock
        each other out: processes of one machine may start together, and each migration is still applied once.
    :raises MigrationError: when a migration is modified, missing or out of order, when another operator holds the
        lock, or when a migration fails. What was applied before the failing one stays applied; of that, nothing is.
    """
    files = read_directory(directory)
    if not _checked(files, await applied_rows(catalog)):
        return ()
    owner = owner or f"operator-{secrets.token_hex(8)}"
    await catalog.batch([Statement(sql) for sql in LEDGER_STATEMENTS])
    await catalog.batch([_take_lock(clock, owner)])
    await _require_lock(catalog, owner)
    try:
        # Another operator may have applied them before the lock was free.
        pending = _checked(files, await applied_rows(catalog))
        return tuple([file for file in pending if await _apply_one(catalog, file, clock, owner)])
    finally:
        with contextlib.suppress(CatalogError):  # the lock then lapses by itself
            await catalog.query(f"DELETE FROM {LOCK_TABLE} WHERE owner = ?", (owner,))


async def applied_rows(catalog: Catalog) -> dict[int, Mapping[str, Any]]:
    """The ledger by version; empty for a database that has none."""
    ledger = await catalog.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (LEDGER_TABLE,))
    if not ledger:
        return {}
    rows = await catalog.query(f"SELECT version, name, checksum, applied_at FROM {LEDGER_TABLE}")
    return {int(row["version"]): row for row in rows}


def _plan(files: Sequence[MigrationFile], rows: Mapping[int, Mapping[str, Any]]) -> MigrationPlan:
    newest = max(rows, default=0)
    versions = {file.version for file in files}
    states = [_state(file, rows.get(file.version), newest) for file in files]
    states += [
        MigrationState(version, row["name"], "missing", None, row["checksum"], row["applied_at"])
        for version, row in rows.items()
        if version not in versions
    ]
    return MigrationPlan(tuple(sorted(states, key=lambda state: state.version)), directory_digest(files))


def _state(file: MigrationFile, row: Mapping[str, Any] | None, newest: int) -> MigrationState:
    if row is None:
        waiting: MigrationStatus = "pending" if file.version > newest else "out_of_order"
        return MigrationState(file.version, file.name, waiting, file.checksum, None, None)
    unchanged = (file.name, file.checksum) == (row["name"], row["checksum"])
    status: MigrationStatus = "applied" if unchanged else "modified"
    return MigrationState(file.version, file.name, status, file.checksum, row["checksum"], row["applied_at"])


def _checked(files: Sequence[MigrationFile], rows: Mapping[int, Mapping[str, Any]]) -> tuple[MigrationFile, ...]:
    """The files to apply. :raises MigrationError: when something blocks applying."""
    found = _plan(files, rows)
    if found.problems:
        raise MigrationError("; ".join(found.problems))
    pending = {state.version for state in found.pending}
    return tuple(file for file in files if file.version in pending)


def _take_lock(clock: Clock, owner: str) -> Statement:
    """Takes the lock, or renews it, unless another owner holds one that has not lapsed."""
    now = clock.now_ms()
    return Statement(
        f"INSERT INTO {LOCK_TABLE} (lock_id, owner, expires_at) VALUES (1, ?1, ?2)"
        " ON CONFLICT (lock_id) DO UPDATE SET owner = excluded.owner, expires_at = excluded.expires_at"
        f" WHERE {LOCK_TABLE}.expires_at <= ?3 OR {LOCK_TABLE}.owner = ?1",
        (owner, timestamps.from_ms(now + 1000 * LOCK_SECONDS), timestamps.from_ms(now)),
    )


async def _require_lock(catalog: Catalog, owner: str) -> None:
    for row in await catalog.query(f"SELECT owner, expires_at FROM {LOCK_TABLE}"):
        if row["owner"] != owner:
            raise MigrationError(
                f"another operator, {row['owner']}, is applying migrations; wait until that is done, or until its lock"
                f" lapses at {row['expires_at']}, and try again"
            )


async def _apply_one(catalog: Catalog, file: MigrationFile, clock: Clock, owner: str) -> bool:
    """Apply one migration; false when another call of the same owner was first."""
    # Without the lock the name is null, which the ledger refuses, and with it the whole batch. The entry comes last so
    # that an error's "statement 3 of 9" counts from the file's first.
    entry = Statement(
        f"INSERT INTO {LEDGER_TABLE} (version, name, checksum, applied_at, applied_by)"
        f" VALUES (?1, (SELECT ?2 FROM {LOCK_TABLE} WHERE owner = ?5), ?3, ?4, ?5)",
        (file.version, file.name, file.checksum, timestamps.from_ms(clock.now_ms()), owner),
    )
    try:
        await catalog.batch([*map(Statement, file.statements), _take_lock(clock, owner), entry])
    except CatalogError as error:
        row = (await applied_rows(catalog)).get(file.version)
        if row is not None and row["checksum"] == file.checksum:
            return False
        await _require_lock(catalog, owner)
        raise MigrationError(f"{file.name} failed and nothing of it was applied: {error}") from error
    return True
