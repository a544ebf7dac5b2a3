"""The fold of account logs into rows, used by live writes and by the rebuild alike."""

from __future__ import annotations

from mempersist.archive.model import AccountEntry
from mempersist.ports import Statement


def statements(entry: AccountEntry, entry_hash: str) -> list[Statement]:
    """Rows of one account log entry; folding an entry again changes nothing."""
    values = entry.values
    moved = Statement(
        "UPDATE accounts SET log_seq = ?1, log_hash = ?2 WHERE account_id = ?3 AND log_seq < ?1",
        (entry.seq, entry_hash, entry.account_id),
    )
    if entry.operation == "create":
        created = Statement(
            "INSERT INTO accounts (account_id, email, display_name, default_namespace, created_at, log_seq, log_hash)"
            " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_id) DO NOTHING",
            (
                entry.account_id,
                values.get("email"),
                values.get("displayName"),
                values["defaultNamespace"],
                entry.at,
                entry.seq,
                entry_hash,
            ),
        )
        return [created, _namespace(entry, values["defaultNamespace"])]
    if entry.operation == "namespace":
        return [_namespace(entry, values["namespace"]), moved]
    if entry.operation == "profile":
        renamed = Statement(
            "UPDATE accounts SET display_name = ?1 WHERE account_id = ?2 AND log_seq < ?3",
            (values.get("displayName"), entry.account_id, entry.seq),
        )
        return [renamed, moved]
    return [Statement("DELETE FROM accounts WHERE account_id = ?", (entry.account_id,))]


def _namespace(entry: AccountEntry, namespace: str) -> Statement:
    return Statement(
        "INSERT INTO namespaces (account_id, namespace, created_at) VALUES (?, ?, ?)"
        " ON CONFLICT (account_id, namespace) DO NOTHING",
        (entry.account_id, namespace, entry.at),
    )
