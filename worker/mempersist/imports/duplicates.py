"""Whether the same bytes were imported before, so that doing it again would change nothing."""

from __future__ import annotations

from mempersist.ports import AccountId, Ports


async def earlier_import(ports: Ports, account: AccountId, import_id: str, sha256: str) -> str | None:
    """The newest finished import of the same bytes, or None if importing them may change something.

    After a deletion it may: what was deleted can be brought back.
    """
    rows = await ports.catalog.query(
        "SELECT import_id FROM imports AS i WHERE account_id = ?1 AND sha256 = ?2 AND import_id <> ?3"
        " AND status IN ('complete', 'complete_with_errors') AND NOT EXISTS (SELECT 1 FROM conversations AS c"
        " WHERE c.account_id = ?1 AND c.source_type = i.source_type AND c.deleted_at >= i.created_at)"
        " ORDER BY completed_at DESC, import_id LIMIT 1",
        (account, sha256, import_id),
    )
    return rows[0]["import_id"] if rows else None
