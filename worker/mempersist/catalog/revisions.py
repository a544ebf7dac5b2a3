"""The history of a conversation, as the catalog knows it; no canonical object is read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mempersist import cursors
from mempersist.errors import not_found
from mempersist.ports import AccountId, Ports, SqlValue

_KIND = "revisions"
_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision. ``created_at``: when it was committed first."""

    id: str
    created_at: str
    node_count: int
    content_hash: str


@dataclass(frozen=True, slots=True)
class History:
    """A page of revisions, the latest first. ``current_revision_id`` is the one that was current at the first page."""

    current_revision_id: str
    revisions: tuple[RevisionRow, ...]
    next_cursor: str | None


async def list_revisions(
    ports: Ports, account: AccountId, conversation_id: str, *, limit: int, cursor: str | None = None
) -> History:
    """A page in the order of commits, the last one first. What is committed during a walk does not appear in it.

    :raises MempersistError: NOT_FOUND; VALIDATION for a bad cursor or another conversation's.
    """
    current = await _current(ports, account, conversation_id)
    condition, params = "", list[SqlValue]()
    if cursor is not None:
        of, pinned, before = cursors.decode(_KIND, cursor, (str, str, int))
        if of != conversation_id or not _HASH.fullmatch(str(pinned)) or not 0 <= int(before) < 2**63:
            raise cursors.invalid()
        current = str(pinned)
        condition, params = " AND first_seq < ?", [before]
    rows = await ports.catalog.query(
        "SELECT revision_id, created_at, node_count, content_hash, first_seq FROM revisions"
        f" WHERE account_id = ? AND conversation_id = ?{condition} ORDER BY first_seq DESC LIMIT ?",
        (account, conversation_id, *params, limit + 1),
    )
    page = rows[:limit]
    following = None
    if len(rows) > limit:
        following = cursors.encode(_KIND, (conversation_id, current, page[-1]["first_seq"]))
    return History(
        current,
        tuple(
            RevisionRow(row["revision_id"], row["created_at"], row["node_count"], row["content_hash"]) for row in page
        ),
        following,
    )


async def _current(ports: Ports, account: AccountId, conversation_id: str) -> str:
    rows = await ports.catalog.query(
        "SELECT revision_id FROM conversations WHERE account_id = ? AND conversation_id = ? AND deleted_at IS NULL",
        (account, conversation_id),
    )
    if not rows:
        raise not_found("conversation")
    return str(rows[0]["revision_id"])
