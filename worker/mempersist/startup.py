"""What a host does once before it serves: the owner and the index generation are there, and nothing was lost."""

from __future__ import annotations

from mempersist.archive import accounts, keys
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.index.generation import ensure_generation
from mempersist.ports import CatalogError, Ports


async def begin(ports: Ports, schema: str | None = None) -> None:
    """Safe to do at every start, and by several at once.

    :param schema: name of the newest migration that the program was written for, where the host does not apply them.
    :raises MempersistError: RETRYABLE_INFRASTRUCTURE while that migration is not applied; CANONICAL_STORAGE if the
        archive has an owner and the catalog does not know of one: an empty catalog beside a full archive would look
        like an empty archive.
    :raises CatalogError: / :raises StorageError: / :raises UnreadableObject:
    """
    if schema is not None:
        await _require_schema(ports, schema)
    owner = await ports.catalog.query("SELECT 1 FROM accounts WHERE account_id = ?", (OWNER,))
    if not owner and await ports.objects.head(keys.account_log(OWNER, 0)) is not None:
        raise MempersistError(
            Code.CANONICAL_STORAGE,
            "the catalog is lost or empty beside an archive; run `mempersist rebuild-catalog --yes`, which makes it"
            " anew from the archive's objects",
        )
    await accounts.ensure_owner(ports)
    await ensure_generation(ports)


async def _require_schema(ports: Ports, schema: str) -> None:
    try:
        applied = await ports.catalog.query("SELECT 1 FROM schema_migrations WHERE name = ?", (schema,))
    except CatalogError as error:
        if "no such table" not in str(error):
            raise
        applied = ()
    if not applied:
        raise MempersistError(
            Code.RETRYABLE_INFRASTRUCTURE, f"the catalog lacks the migration {schema}; apply the migrations to it"
        )
