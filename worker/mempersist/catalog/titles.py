"""Conversations by their exact title. Nothing is guessed: a title that several have is ambiguous."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist.catalog.conversations import TagMode, require_namespace, tag_filter
from mempersist.ports import AccountId, Ports, SqlValue
from mempersist.text import utf8_safe

MOST_MATCHES: Final = 50


@dataclass(frozen=True, slots=True)
class TitleQuery:
    """``title`` as stored: case, spaces and all. ``namespace`` and ``tags`` in their normal form."""

    title: str
    namespace: str | None = None
    tags: tuple[str, ...] = ()
    tag_mode: TagMode = "all"


@dataclass(frozen=True, slots=True)
class TitleMatch:
    conversation_id: str
    revision_id: str
    title: str
    namespace: str
    tags: tuple[str, ...]
    updated_at: str


async def find_by_title(
    ports: Ports, account: AccountId, query: TitleQuery, *, limit: int = MOST_MATCHES
) -> tuple[Sequence[TitleMatch], bool]:
    """The live conversations of exactly this title, by id, and whether there are more than ``limit``.

    :raises MempersistError: AUTHENTICATION for a namespace that the account does not own.
    """
    condition, params = tag_filter(account, query.tags, query.tag_mode)
    values: list[SqlValue] = [account, utf8_safe(query.title), *params]
    if query.namespace is not None:
        await require_namespace(ports, account, query.namespace)
        condition += " AND c.namespace = ?"
        values.append(query.namespace)
    rows = await ports.catalog.query(
        "SELECT c.conversation_id, c.revision_id, c.title, c.namespace, c.updated_at,"
        " (SELECT json_group_array(tag) FROM (SELECT t.tag FROM conversation_tags AS t"
        " WHERE t.conversation_id = c.conversation_id ORDER BY t.position)) AS tags FROM conversations AS c"
        f" WHERE c.account_id = ? AND c.title = ? AND c.deleted_at IS NULL AND c.revision_id IS NOT NULL{condition}"
        " ORDER BY c.conversation_id LIMIT ?",
        (*values, limit + 1),
    )
    matches = tuple(
        TitleMatch(
            row["conversation_id"],
            row["revision_id"],
            row["title"],
            row["namespace"],
            tuple(json.loads(row["tags"])),
            row["updated_at"],
        )
        for row in rows[:limit]
    )
    return matches, len(rows) > limit
