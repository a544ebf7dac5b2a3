"""Numbered schema migrations: what is applied, what is pending, and whether the schema is what the files make."""

from mempersist_ops.migrations.files import (
    MigrationError,
    MigrationFile,
    directory_digest,
    find_directory,
    read_directory,
)
from mempersist_ops.migrations.ledger import (
    LOCK_SECONDS,
    MigrationPlan,
    MigrationState,
    MigrationStatus,
    apply,
    plan,
)
from mempersist_ops.migrations.schema import SchemaProblem, schema_problems

__all__ = [
    "LOCK_SECONDS",
    "MigrationError",
    "MigrationFile",
    "MigrationPlan",
    "MigrationState",
    "MigrationStatus",
    "SchemaProblem",
    "apply",
    "directory_digest",
    "find_directory",
    "plan",
    "read_directory",
    "schema_problems",
]
