"""Where in its conversation a found passage stands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist.errors import MempersistError
from mempersist.index.generation import active_generation
from mempersist.ports import AccountId, CatalogError, Ports
from mempersist.search.candidates import Scope
from mempersist.search.channels import recent_chunks
from mempersist.search.query import Hit

_FAR: Final = 200
"""Messages that are looked at to tell how much stands before a passage."""


@dataclass(frozen=True, slots=True)
class Place:
    """``offset`` of the passage's first message in the active listing, None if it is on another branch.

    :param bytes_before: stored bytes of the messages before it and of itself; those of the first 200 if it is behind.
    """

    offset: int | None
    bytes_before: int


async def places_of(ports: Ports, account: AccountId, hits: Sequence[Hit]) -> dict[str, Place]:
    """The place of each hit, by chunk id. One that was overtaken meanwhile has none."""
    first_nodes = await _first_nodes(ports, account, hits)
    rows = await ports.catalog.query(
        "SELECT wanted.value ->> 0 AS chunk_id, m.sequence, (SELECT sum(before.byte_length) FROM"
        " (SELECT b.byte_length FROM messages AS b WHERE b.conversation_id = m.conversation_id"
        f" AND b.sequence <= m.sequence ORDER BY b.sequence LIMIT {_FAR}) AS before) AS bytes_before"
        " FROM json_each(?) AS wanted CROSS JOIN messages AS m"
        " ON m.conversation_id = wanted.value ->> 1 AND m.source_node_id = wanted.value ->> 2 WHERE m.account_id = ?",
        (json.dumps([[hit.chunk_id, hit.conversation_id, first_nodes.get(hit.chunk_id)] for hit in hits]), account),
    )
    return {row["chunk_id"]: Place(row["sequence"], row["bytes_before"] or 0) for row in rows}


async def _first_nodes(ports: Ports, account: AccountId, hits: Sequence[Hit]) -> dict[str, str]:
    rows = await ports.catalog.query(
        "SELECT chunk_id, sources_json FROM chunks"
        " WHERE account_id = ? AND chunk_id IN (SELECT value FROM json_each(?))",
        (account, json.dumps([hit.chunk_id for hit in hits])),
    )
    found = {row["chunk_id"]: json.loads(row["sources_json"])[0][0] for row in rows}
    if len(found) < len(hits):
        try:
            recent = await recent_chunks(ports, Scope(account, await active_generation(ports)))
        except (MempersistError, CatalogError):
            recent = []
        found |= {item.chunk.id: item.chunk.sources[0].source_node_id for item in recent if item.chunk.id not in found}
    return found
