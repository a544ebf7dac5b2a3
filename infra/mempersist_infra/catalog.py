"""The catalog: a D1 database, with its schema."""

from __future__ import annotations

import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Component, Context
from mempersist_infra.providers.d1_migrations import D1Migrations, listed


class Catalog(Component):
    """The database. It can be rebuilt from the archive, but for who is signed in."""

    database: cloudflare.D1Database
    migrations: D1Migrations

    def __init__(self, context: Context) -> None:
        super().__init__("Catalog", context)
        context, settings = context.within(self), context.settings
        self.database = cloudflare.D1Database(
            "catalog-database",
            account_id=context.account,
            name=context.names.database,
            jurisdiction=settings.jurisdiction if settings.jurisdiction != "default" else None,
            primary_location_hint=settings.location,
            read_replication={"mode": settings.read_replication},
            # Neither is read back, so that without this a database that was imported would be replaced.
            opts=context.options(ignore=("primaryLocationHint", "jurisdiction"), keeps_data=True),
        )
        self.migrations = D1Migrations(
            "catalog-migrations",
            account=context.account,
            database_id=self.database.uuid,
            database_name=context.names.database,
            migrations=listed(),
            opts=context.options(),
        )
