"""The messages around a found chunk."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist.archive import graph
from mempersist.archive.read import MessageView, read_nodes, read_page
from mempersist.errors import MempersistError, not_found
from mempersist.index.chunking import ACTIVE, ALTERNATE, Source
from mempersist.index.generation import active_generation
from mempersist.ports import AccountId, CatalogError, Ports
from mempersist.search.candidates import Scope, without_superseded
from mempersist.search.channels import recent_chunks

_HIDDEN_ALLOWANCE: Final = 20
"""How many nodes that are not shown a branch may hold between the messages of a window."""


@dataclass(frozen=True, slots=True)
class MatchedRange:
    """Characters ``char_start`` .. ``char_end`` of a node's text."""

    source_node_id: str
    char_start: int
    char_end: int


@dataclass(frozen=True, slots=True)
class Context:
    chunk_id: str
    conversation_id: str
    revision_id: str
    messages: tuple[MessageView, ...]
    matched_ranges: tuple[MatchedRange, ...]


@dataclass(frozen=True, slots=True)
class _Found:
    conversation_id: str
    branch_key: str
    sources: tuple[Source, ...]


async def get_context(ports: Ports, account: AccountId, *, chunk_id: str, before: int, after: int) -> Context:
    """The chunk's messages with ``before`` and ``after`` more of the same branch.

    :raises MempersistError: NOT_FOUND for a chunk that is missing, superseded, deleted or another account's.
    """
    found = await _indexed(ports, account, chunk_id) or await _just_written(ports, account, chunk_id)
    if found is None:
        raise not_found("chunk")
    try:
        if found.branch_key == ACTIVE:
            messages, revision_id = await _active(ports, account, found, before, after)
        else:
            messages, revision_id = await _alternate(ports, account, found, before, after)
    except MempersistError as error:
        raise error if error.status != not_found("").status else not_found("chunk") from None
    ranges = tuple(MatchedRange(item.source_node_id, item.start, item.end) for item in found.sources)
    return Context(chunk_id, found.conversation_id, revision_id, messages, ranges)


async def _indexed(ports: Ports, account: AccountId, chunk_id: str) -> _Found | None:
    scope = Scope(account, await active_generation(ports))
    rows = await ports.catalog.query(
        "SELECT k.chunk_id, k.conversation_id, k.branch_key, k.sources_json, s.status FROM chunks AS k"
        " CROSS JOIN conversations AS c ON c.conversation_id = k.conversation_id AND c.deleted_at IS NULL"
        " CROSS JOIN index_state AS s ON s.conversation_id = k.conversation_id AND s.generation = k.generation"
        " WHERE k.account_id = ? AND k.chunk_id = ? AND k.generation = ?",
        (account, chunk_id, scope.generation),
    )
    for row in await without_superseded(ports, scope, rows):
        sources = tuple(Source(*source[:4]) for source in json.loads(row["sources_json"]))
        return _Found(row["conversation_id"], row["branch_key"], sources)
    return None


async def _just_written(ports: Ports, account: AccountId, chunk_id: str) -> _Found | None:
    try:
        recent = await recent_chunks(ports, Scope(account, await active_generation(ports)))
    except (MempersistError, CatalogError):
        return None
    for item in recent:
        if item.chunk.id == chunk_id:
            return _Found(item.candidate.conversation_id, item.chunk.branch_key, item.chunk.sources)
    return None


async def _active(
    ports: Ports, account: AccountId, found: _Found, before: int, after: int
) -> tuple[tuple[MessageView, ...], str]:
    """A slice of the active timeline. The rows say where the messages stand now."""
    rows = await ports.catalog.query(
        "SELECT min(sequence) AS first, max(sequence) AS last FROM messages WHERE account_id = ?"
        " AND conversation_id = ? AND source_node_id IN (SELECT value FROM json_each(?))",
        (account, found.conversation_id, json.dumps([source.source_node_id for source in found.sources])),
    )
    first, last = rows[0]["first"], rows[0]["last"]
    if first is None:
        raise not_found("chunk")
    start = max(0, first - before)
    page = await read_page(ports, account, found.conversation_id, offset=start, limit=last + after - start + 1)
    return page.messages, page.conversation.revision_id


async def _alternate(
    ports: Ports, account: AccountId, found: _Found, before: int, after: int
) -> tuple[tuple[MessageView, ...], str]:
    """A slice of the path from the root to the branch's leaf; no sibling branch is ever mixed in."""
    rows = await ports.catalog.query(
        "SELECT m.source_node_id, m.parent_source_node_id, c.revision_id FROM messages AS m"
        " CROSS JOIN conversations AS c ON c.conversation_id = m.conversation_id"
        " WHERE m.account_id = ? AND m.conversation_id = ?",
        (account, found.conversation_id),
    )
    parents = {row["source_node_id"]: row["parent_source_node_id"] for row in rows}
    path, _ = graph.walk_up(parents, found.branch_key.removeprefix(ALTERNATE))
    wanted = {source.source_node_id for source in found.sources}
    places = [index for index, node_id in enumerate(path) if node_id in wanted]
    if not places:
        raise not_found("chunk")
    low = max(0, places[0] - before - _HIDDEN_ALLOWANCE)
    high = places[-1] + after + _HIDDEN_ALLOWANCE + 1
    nodes = await read_nodes(ports, account, found.conversation_id, path[low:high])
    shown = [MessageView(low + index, node) for index, node in enumerate(nodes) if node.is_message]
    return _window(shown, wanted, before, after), rows[0]["revision_id"]


def _window(shown: Sequence[MessageView], wanted: set[str], before: int, after: int) -> tuple[MessageView, ...]:
    places = [index for index, message in enumerate(shown) if message.node.source_node_id in wanted]
    return tuple(shown[max(0, places[0] - before) : places[-1] + after + 1])
