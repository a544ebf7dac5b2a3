"""What the channels hand to the ranking, and the conditions that every candidate has to meet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from mempersist.archive.read import place
from mempersist.catalog.conversations import TagMode, tag_filter
from mempersist.ports import AccountId, Ports, Row, SqlValue

Channel = Literal["lexical", "semantic", "recent_canonical"]
POOL: Final = 100
"""Candidates that a channel hands over: as many as the vector index gives."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Where a search looks: one account's live conversations in one index generation, perhaps fewer."""

    account: AccountId
    generation: str
    namespace: str | None = None
    tags: tuple[str, ...] = ()
    tag_mode: TagMode = "all"

    def conversations(self) -> tuple[str, list[SqlValue]]:
        """An SQL condition on ``conversations AS c`` and its parameters."""
        condition, params = tag_filter(self.account, self.tags, self.tag_mode)
        condition = f"c.account_id = ? AND c.deleted_at IS NULL{condition}"
        if self.namespace is not None:
            return f"{condition} AND c.namespace = ?", [self.account, *params, self.namespace]
        return condition, [self.account, *params]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A chunk and what one channel thinks of it, in that channel's own measure: more is better."""

    chunk_id: str
    conversation_id: str
    revision_id: str
    title: str
    body: str
    timestamp: str | None
    namespace: str
    score: float


COLUMNS: Final = (
    "k.chunk_id, k.conversation_id, c.revision_id, c.title, k.body, k.sources_json,"
    " coalesce(k.created_at, c.updated_at) AS timestamp, c.namespace, s.status"
)
# CROSS JOIN keeps the order: without statistics the planner would rather start from all of an account's
# conversations than from the few candidates.
JOINS: Final = (
    " CROSS JOIN conversations AS c ON c.conversation_id = k.conversation_id"
    " CROSS JOIN index_state AS s ON s.conversation_id = k.conversation_id AND s.generation = k.generation"
)


def candidate(row: Row, score: float) -> Candidate:
    return Candidate(
        row["chunk_id"],
        row["conversation_id"],
        row["revision_id"],
        row["title"],
        row["body"],
        row["timestamp"],
        row["namespace"],
        score,
    )


async def without_superseded(ports: Ports, scope: Scope, rows: Sequence[Row]) -> list[Row]:
    """``rows`` less those whose text a newer revision, not indexed yet, has written again or no longer has."""
    waiting = [row for row in rows if row["status"] in {"queued", "failed"}]
    if not waiting:
        return list(rows)
    sources = {row["chunk_id"]: json.loads(row["sources_json"]) for row in waiting}
    wanted = [[row["conversation_id"], source[0]] for row in waiting for source in sources[row["chunk_id"]]]
    found = await ports.catalog.query(
        "SELECT m.conversation_id, m.source_node_id, m.segment_sha256, m.byte_offset FROM json_each(?) AS wanted"
        " CROSS JOIN messages AS m ON m.conversation_id = wanted.value ->> 0 AND m.source_node_id = wanted.value ->> 1"
        " WHERE m.account_id = ?",
        (json.dumps(wanted), scope.account),
    )
    places = {
        (row["conversation_id"], row["source_node_id"]): place(row["segment_sha256"], row["byte_offset"])
        for row in found
    }
    superseded = {
        row["chunk_id"]
        for row in waiting
        if any(places.get((row["conversation_id"], source[0])) != source[4] for source in sources[row["chunk_id"]])
    }
    return [row for row in rows if row["chunk_id"] not in superseded]
