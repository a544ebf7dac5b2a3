"""Chunks: what the index holds of a conversation.

Strategy ``chat-turn-v3``. A message is a chunk. Short neighbours share one, so that an answer stands beside its
question; a long message is split where its text has a seam. Each message is indexed once: on the active branch, or on
the first alternate branch that holds it. An append changes at most the last chunk, since chunks are formed from the
front and an id depends on nothing but what the chunk covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from mempersist import canonical
from mempersist.archive import graph
from mempersist.archive.model import Node
from mempersist.text import utf8_length

STRATEGY: Final = "chat-turn-v3"
ACTIVE: Final = "active"
ALTERNATE: Final = "alternate:"

_BYTES_PER_TOKEN = 3
_SHORT_TOKENS = 64
_GROUP_TOKENS = 320
_GROUP_MESSAGES = 6
_LONG_TOKENS = 1800
# Where a long message may be cut, best first. The text of a seam after its first newline begins the next part.
_SEAMS = ("\n\n#", "\n\n", "\n", " ")


@dataclass(frozen=True, slots=True)
class Source:
    """Characters ``start`` .. ``end`` of a node's text. ``sequence``: its place among the shown messages, if active."""

    source_node_id: str
    sequence: int | None
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """``ordinal`` counts within the branch. ``body`` has a line ``[role]`` before each message's text."""

    id: str
    branch_key: str
    ordinal: int
    body: str
    token_estimate: int
    created_at: str | None
    sources: tuple[Source, ...]


def estimate_tokens(text: str) -> int:
    """A third of the UTF-8 bytes, rounded up; at least 1."""
    return max(1, -(-utf8_length(text) // _BYTES_PER_TOKEN))


def chunk_conversation(
    conversation_id: str, generation: str, nodes: Sequence[Node], active: Sequence[str]
) -> tuple[Chunk, ...]:
    """All chunks of a revision. ``active`` is the path from the root to the current node."""
    by_id = {node.source_node_id: node for node in nodes}
    sequence = {
        node_id: index for index, node_id in enumerate(node_id for node_id in active if by_id[node_id].is_message)
    }
    taken = set(active)
    branches = [(ACTIVE, [by_id[node_id] for node_id in active])]
    for branch in graph.alternate_branches(graph.parents_of(nodes), active):
        own = [by_id[node_id] for node_id in branch.node_ids if node_id not in taken]
        taken.update(branch.node_ids)
        branches.append((f"{ALTERNATE}{branch.leaf}", own))
    return tuple(
        _chunk(conversation_id, generation, key, ordinal, pieces)
        for key, members in branches
        for ordinal, pieces in enumerate(_groups(members, sequence))
    )


@dataclass(frozen=True, slots=True)
class _Piece:
    node: Node
    source: Source

    @property
    def text(self) -> str:
        return self.node.text[self.source.start : self.source.end]


def _groups(nodes: Iterable[Node], sequence: dict[str, int]) -> Iterator[list[_Piece]]:
    group: list[_Piece] = []
    tokens = 0
    for node in nodes:
        if not node.is_message or not node.text.strip():
            continue
        place = sequence.get(node.source_node_id)
        size = estimate_tokens(node.text)
        full = len(group) == _GROUP_MESSAGES or tokens + size > _GROUP_TOKENS
        if group and (size > _SHORT_TOKENS or full):
            yield group
            group, tokens = [], 0
        if size <= _SHORT_TOKENS:
            group.append(_Piece(node, Source(node.source_node_id, place, 0, len(node.text))))
            tokens += size
            continue
        for start, end in split(node.text):
            yield [_Piece(node, Source(node.source_node_id, place, start, end))]
    if group:
        yield group


def split(text: str) -> Iterator[tuple[int, int]]:
    """Ranges that cover ``text`` without overlap, each of at most 1800 estimated tokens."""
    limit = _LONG_TOKENS * _BYTES_PER_TOKEN
    start = 0
    while start < len(text):
        end = _fitting(text, start, limit)
        if end < len(text):
            end = _seam(text, start, end)
        yield start, end
        start = end


def _fitting(text: str, start: int, limit: int) -> int:
    """The furthest end for which ``text[start:end]`` has at most ``limit`` UTF-8 bytes."""
    data = text[start : start + limit].encode("utf-8", "surrogatepass")
    if len(data) <= limit:
        return min(len(text), start + limit)
    while data[limit] & 0xC0 == 0x80:  # inside a character
        limit -= 1
    return start + len(data[:limit].decode("utf-8", "surrogatepass"))


def _seam(text: str, start: int, end: int) -> int:
    """The last seam in the second half of the window, the best kind first; the window's end without one."""
    middle = start + (end - start) // 2
    for seam in _SEAMS:
        found = text.rfind(seam, middle, end)
        if found > start:
            return found + len(seam.rstrip("#"))
    return end


def _chunk(conversation_id: str, generation: str, key: str, ordinal: int, pieces: Sequence[_Piece]) -> Chunk:
    body = "\n\n".join(f"[{piece.node.role}]\n{piece.text}" for piece in pieces)
    sources = tuple(piece.source for piece in pieces)
    ranges = ((source.source_node_id, source.start, source.end) for source in sources)
    return Chunk(
        id=canonical.chunk_id(STRATEGY, generation, conversation_id, key, ranges),
        branch_key=key,
        ordinal=ordinal,
        body=body,
        token_estimate=estimate_tokens(body),
        created_at=next((piece.node.created_at for piece in pieces if piece.node.created_at), None),
        sources=sources,
    )
