"""The catalog's schema: which migrations the database has.

The resource holds names and checksums; the SQL is read from the directory when it is applied, and refused if it is not
what was approved. Before anything is applied, the database's Time Travel bookmark is taken and kept: it leads back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import pulumi
from pulumi.dynamic import (
    CheckFailure,
    CheckResult,
    CreateResult,
    DiffResult,
    ReadResult,
    Resource,
    ResourceProvider,
    UpdateResult,
)
from pulumi.runtime import rpc

from mempersist.system import SystemClock
from mempersist_infra.providers.calls import ProviderError, calling, changed
from mempersist_ops import migrations
from mempersist_ops.stores.remote.catalog import D1RestCatalog
from mempersist_ops.stores.remote.rest import RestClient

_REPLACING: Final = ("account", "database_id")


def listed() -> list[dict[str, str]]:
    """The migrations in this project's directory, in order."""
    return [
        {"name": file.name, "sha256": file.checksum} for file in migrations.read_directory(migrations.find_directory())
    ]


async def migrate(client: RestClient, database: str, approved: Sequence[Mapping[str, str]]) -> str:
    """Apply what is pending; gives the bookmark from before.

    :raises ProviderError: if the files are not those that were approved, or one cannot be applied.
    """
    if [dict(each) for each in approved] != listed():
        raise ProviderError("the migrations are not those of the preview; run the preview again")
    found = await client.call("GET", f"/d1/database/{database}/time_travel/bookmark", repeatable=True)
    bookmark = found.get("bookmark") if isinstance(found, dict) else None
    if not isinstance(bookmark, str):
        raise ProviderError("Cloudflare named no Time Travel bookmark, so there is no way back yet; try again")
    try:
        await migrations.apply(D1RestCatalog(client, database), migrations.find_directory(), SystemClock())
    except migrations.MigrationError as error:
        raise ProviderError(f"{error}; the database as it was before has the bookmark {bookmark}") from None
    return bookmark


async def applied(client: RestClient, database: str) -> list[dict[str, str]]:
    """What the database's own ledger says, in order."""
    plan = await migrations.plan(D1RestCatalog(client, database), migrations.find_directory())
    return [
        {"name": state.name, "sha256": state.applied_checksum}
        for state in plan.states
        if state.applied_checksum is not None
    ]


class D1MigrationsProvider(ResourceProvider):
    """Migrations are only ever added. A deletion does nothing: the schema goes with its database."""

    serialize_as_secret_always = False

    def check(self, _olds: dict[str, Any], news: dict[str, Any]) -> CheckResult:
        before, after = _olds.get("migrations") or [], news.get("migrations") or []
        same_database = _olds.get("database_id") == news.get("database_id")
        if same_database and rpc.UNKNOWN not in (before, after) and after[: len(before)] != before:
            reason = "a migration that was applied has changed or is gone; restore the file, and add a new one instead"
            return CheckResult(news, [CheckFailure("migrations", reason)])
        return CheckResult(news, [])

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced, altered = changed(_olds, _news, _REPLACING), changed(_olds, _news, ("migrations",))
        return DiffResult(changes=bool(replaced or altered), replaces=replaced, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(str(props["database_id"]), {**props, "bookmark": _migrate(props)})

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        return UpdateResult({**_news, "bookmark": _migrate(_news)})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        found = calling(str(props["account"]), lambda client: applied(client, id_))
        return ReadResult(id_, {**props, "migrations": found}) if found else ReadResult(None, {})


def _migrate(props: Mapping[str, Any]) -> str:
    database, approved = str(props["database_id"]), props["migrations"]
    return calling(str(props["account"]), lambda client: migrate(client, database, approved))


class D1Migrations(Resource, module="mempersist", name="D1Migrations"):
    """The migrations of a database. ``bookmark`` leads back to before the last of them was applied."""

    bookmark: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        account: str,
        database_id: pulumi.Input[str],
        database_name: str,
        migrations: Sequence[Mapping[str, str]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "account": account,
            "database_id": database_id,
            "database_name": database_name,
            "migrations": [dict(each) for each in migrations],
            "bookmark": None,
        }
        super().__init__(D1MigrationsProvider(), name, props, opts)
