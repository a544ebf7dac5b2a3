"""The outbox: a write leaves an intent before its first object, and takes it away when the catalog has the outcome.

What stays behind was interrupted; the sweeper looks at the archive to see how far it came.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from mempersist.ports import AccountId, Catalog, Statement


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to these conversations, or with none to the account's own log."""

    intent_id: str
    account: AccountId
    conversation_ids: tuple[str, ...]


def begin(intent_id: str, account: AccountId, conversation_ids: Sequence[str], now: str) -> Statement:
    return Statement(
        "INSERT INTO intents (intent_id, account_id, conversation_ids_json, created_at) VALUES (?, ?, ?, ?)",
        (intent_id, account, json.dumps(list(conversation_ids)), now),
    )


def settled(intent_id: str) -> Statement:
    return Statement("DELETE FROM intents WHERE intent_id = ?", (intent_id,))


async def begun_before(catalog: Catalog, before: str, limit: int) -> list[Intent]:
    """Intents that were left behind, the oldest first."""
    rows = await catalog.query(
        "SELECT intent_id, account_id, conversation_ids_json FROM intents WHERE created_at <= ?"
        " ORDER BY created_at, intent_id LIMIT ?",
        (before, limit),
    )
    return [
        Intent(row["intent_id"], AccountId(row["account_id"]), tuple(json.loads(row["conversation_ids_json"])))
        for row in rows
    ]
