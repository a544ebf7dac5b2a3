"""Which conversations and namespaces an account has, and how many."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from mempersist import cursors
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, Ports, Row, SqlValue

TagMode = Literal["all", "any"]


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """A conversation's live metadata."""

    id: str
    title: str
    namespace: str
    tags: tuple[str, ...]
    source_type: str
    source_id: str | None
    revision_id: str
    message_count: int
    created_at: str | None
    updated_at: str


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """``default``: writes that name no namespace go here."""

    namespace: str
    conversations: int
    messages: int
    default: bool


@dataclass(frozen=True, slots=True)
class Stats:
    """``pending`` and ``indexed`` count conversations in the active index generation."""

    namespaces: tuple[NamespaceRow, ...]
    conversations: int
    messages: int
    pending: int
    indexed: int


def tag_filter(account: AccountId, tags: Sequence[str], mode: TagMode) -> tuple[str, list[SqlValue]]:
    """An SQL condition on ``c.conversation_id`` and its parameters; empty for no tags."""
    if not tags:
        return "", []
    condition = (
        " AND (SELECT count(*) FROM conversation_tags AS t WHERE t.account_id = ?"
        " AND t.conversation_id = c.conversation_id AND t.tag IN (SELECT value FROM json_each(?))) >= ?"
    )
    return condition, [account, json.dumps(list(tags)), len(set(tags)) if mode == "all" else 1]


async def list_conversations(
    ports: Ports,
    account: AccountId,
    *,
    limit: int,
    cursor: str | None = None,
    namespace: str | None = None,
    tags: Sequence[str] = (),
    tag_mode: TagMode = "all",
) -> tuple[tuple[ConversationRow, ...], str | None]:
    """A page, last changed first, and the cursor of the next one.

    :raises MempersistError: VALIDATION for a bad cursor; AUTHENTICATION for a namespace the account does not own.
    """
    condition, params = tag_filter(account, tags, tag_mode)
    if namespace is not None:
        await require_namespace(ports, account, namespace)
        condition += " AND c.namespace = ?"
        params.append(namespace)
    if cursor is not None:
        updated_at, conversation_id = cursors.decode("conversations", cursor, (str, str))
        condition += " AND (c.updated_at < ? OR (c.updated_at = ? AND c.conversation_id > ?))"
        params += [updated_at, updated_at, conversation_id]
    rows = await ports.catalog.query(
        "SELECT c.conversation_id, c.title, c.namespace, c.source_type, c.source_id, c.revision_id, c.message_count,"
        " c.created_at, c.updated_at, (SELECT json_group_array(tag) FROM (SELECT t.tag FROM conversation_tags AS t"
        " WHERE t.conversation_id = c.conversation_id ORDER BY t.position)) AS tags"
        f" FROM conversations AS c WHERE c.account_id = ? AND c.deleted_at IS NULL{condition}"
        " ORDER BY c.updated_at DESC, c.conversation_id LIMIT ?",
        (account, *params, limit + 1),
    )
    page = tuple(_conversation(row) for row in rows[:limit])
    following = cursors.encode("conversations", (page[-1].updated_at, page[-1].id)) if len(rows) > limit else None
    return page, following


def _conversation(row: Row) -> ConversationRow:
    return ConversationRow(
        id=row["conversation_id"],
        title=row["title"],
        namespace=row["namespace"],
        tags=tuple(json.loads(row["tags"])),
        source_type=row["source_type"],
        source_id=row["source_id"],
        revision_id=row["revision_id"],
        message_count=row["message_count"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
    )


async def list_namespaces(ports: Ports, account: AccountId) -> tuple[NamespaceRow, ...]:
    """Every namespace the account owns, empty ones too, by name."""
    rows = await ports.catalog.query(
        "SELECT n.namespace, count(c.conversation_id) AS conversations, coalesce(sum(c.message_count), 0) AS messages,"
        " n.namespace = a.default_namespace AS is_default FROM namespaces AS n"
        " JOIN accounts AS a ON a.account_id = n.account_id LEFT JOIN conversations AS c"
        " ON c.account_id = n.account_id AND c.namespace = n.namespace AND c.deleted_at IS NULL"
        " WHERE n.account_id = ? GROUP BY n.namespace ORDER BY n.namespace",
        (account,),
    )
    return tuple(
        NamespaceRow(row["namespace"], row["conversations"], row["messages"], bool(row["is_default"])) for row in rows
    )


async def require_namespace(ports: Ports, account: AccountId, namespace: str) -> None:
    """:raises MempersistError: AUTHENTICATION (403) unless the account owns ``namespace``."""
    rows = await ports.catalog.query(
        "SELECT 1 FROM namespaces WHERE account_id = ? AND namespace = ?", (account, namespace)
    )
    if not rows:
        raise MempersistError(
            Code.AUTHENTICATION,
            "namespace: this account has none of that name; memory_list_namespaces tells which it has",
            status=403,
        )


async def stats(ports: Ports, account: AccountId) -> Stats:
    """Totals over the account's live conversations."""
    namespaces = await list_namespaces(ports, account)
    rows = await ports.catalog.query(
        "SELECT coalesce(sum(s.status <> 'indexed'), 0) AS pending, coalesce(sum(s.status = 'indexed'), 0) AS indexed"
        " FROM index_state AS s JOIN index_generations AS g ON g.generation = s.generation AND g.status = 'active'"
        " JOIN conversations AS c ON c.conversation_id = s.conversation_id AND c.deleted_at IS NULL"
        " WHERE s.account_id = ?",
        (account,),
    )
    return Stats(
        namespaces,
        sum(row.conversations for row in namespaces),
        sum(row.messages for row in namespaces),
        rows[0]["pending"],
        rows[0]["indexed"],
    )
