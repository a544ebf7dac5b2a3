"""The three channels: full text, vectors, and what was written just now."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mempersist import timestamps
from mempersist.archive.read import load_current
from mempersist.errors import MempersistError
from mempersist.index.chunking import Chunk, chunk_conversation
from mempersist.index.terms import Term, expression
from mempersist.limits import (
    RECENT_MAX_AGE_SECONDS,
    RECENT_MAX_CONVERSATIONS,
    RECENT_MAX_MESSAGES,
    VECTOR_INDEXED_STRING_BYTES,
)
from mempersist.ports import Ports
from mempersist.search.candidates import COLUMNS, JOINS, POOL, Candidate, Scope, candidate, without_superseded
from mempersist.search.matching import Matcher
from mempersist.text import utf8_length, utf8_safe

_TITLE_WEIGHT: Final = 3.0
_RECENT_MAX_NODES: Final = 2 * RECENT_MAX_MESSAGES


async def lexical(ports: Ports, scope: Scope, wanted: Sequence[Term]) -> list[Candidate]:
    """The best by bm25, the title weighing three times the body. :raises CatalogError:"""
    condition, params = scope.conversations()
    rows = await ports.catalog.query(
        f"SELECT {COLUMNS}, f.rank AS score FROM chunks_fts AS f"
        f" CROSS JOIN chunks AS k ON k.chunk_rowid = f.rowid{JOINS}"
        f" WHERE f.chunks_fts MATCH ? AND f.rank MATCH 'bm25({_TITLE_WEIGHT}, 1.0, 1.0)'"
        f" AND k.generation = ? AND {condition} ORDER BY f.rank LIMIT {POOL}",
        (expression(tuple(wanted)), scope.generation, *params),
    )
    kept = await without_superseded(ports, scope, rows)
    return [candidate(row, -row["score"]) for row in kept]


async def semantic(ports: Ports, scope: Scope, query: str) -> list[Candidate]:
    """The nearest by cosine. :raises IndexUnavailable: / :raises CatalogError:"""
    (vector,) = await ports.embedder.embed([query], kind="query")
    where: dict[str, Any] = {"account": scope.account, "generation": scope.generation}
    # The vector index knows a name by its first bytes only; a longer one is left to the rows' own condition.
    if scope.namespace is not None and utf8_length(scope.namespace) <= VECTOR_INDEXED_STRING_BYTES:
        where["namespace"] = scope.namespace
    matches = await ports.vectors.query(vector, top_k=POOL, where=where)
    scores = {match.id: match.score for match in matches}
    condition, params = scope.conversations()
    rows = await ports.catalog.query(
        f"SELECT {COLUMNS}, k.vector_id FROM json_each(?) AS near"
        f" CROSS JOIN chunks AS k ON k.vector_id = near.value{JOINS}"
        f" WHERE k.generation = ? AND {condition}",
        (json.dumps(list(scores)), scope.generation, *params),
    )
    kept = await without_superseded(ports, scope, rows)
    return [candidate(row, scores[row["vector_id"]]) for row in kept]


@dataclass(frozen=True, slots=True)
class RecentChunk:
    """A chunk of a conversation that the index has not reached."""

    candidate: Candidate
    chunk: Chunk


async def recent_chunks(ports: Ports, scope: Scope) -> list[RecentChunk]:
    """Chunks of the conversations written last and not indexed yet, the newest messages of each.

    What was written on purpose comes before what an import brought, so that a large import cannot crowd it out.

    :raises MempersistError: CANONICAL_STORAGE if one cannot be read. :raises CatalogError:
    """
    condition, params = scope.conversations()
    oldest = timestamps.from_ms(ports.clock.now_ms() - RECENT_MAX_AGE_SECONDS * 1000)
    rows = await ports.catalog.query(
        "SELECT c.conversation_id, c.namespace, c.updated_at FROM index_state AS s"
        " CROSS JOIN conversations AS c ON c.conversation_id = s.conversation_id"
        " CROSS JOIN revisions AS r ON r.conversation_id = c.conversation_id AND r.revision_id = c.revision_id"
        " WHERE s.account_id = ? AND s.generation = ? AND s.status <> 'indexed' AND s.queued_at >= ?"
        f" AND c.node_count <= ? AND {condition}"
        " ORDER BY r.operation = 'import', s.status = 'failed', s.queued_at DESC, c.conversation_id LIMIT ?",
        (scope.account, scope.generation, oldest, _RECENT_MAX_NODES, *params, RECENT_MAX_CONVERSATIONS),
    )
    found: list[RecentChunk] = []
    messages = 0
    for row in rows:
        if messages >= RECENT_MAX_MESSAGES:
            break
        loaded = await load_current(ports, scope.account, row["conversation_id"])
        if loaded is None:
            continue
        chunks = chunk_conversation(row["conversation_id"], scope.generation, loaded.nodes, loaded.active)
        for chunk in reversed(chunks):
            messages += len(chunk.sources)
            if messages > RECENT_MAX_MESSAGES:
                break
            found.append(
                RecentChunk(
                    Candidate(
                        chunk.id,
                        row["conversation_id"],
                        loaded.view.revision_id,
                        loaded.view.title,
                        utf8_safe(chunk.body),
                        chunk.created_at or row["updated_at"],
                        row["namespace"],
                        0.0,
                    ),
                    chunk,
                )
            )
    return found


async def recent(ports: Ports, scope: Scope, matcher: Matcher) -> tuple[list[Candidate], bool]:
    """Just-written chunks that match, scored 0 to 1 by how much of the query they hold; and whether all was read.

    :raises CatalogError:
    """
    try:
        chunks = await recent_chunks(ports, scope)
    except MempersistError:
        return [], False
    scored = ((item.candidate, matcher.coverage(f"{item.candidate.title}\n{item.candidate.body}")) for item in chunks)
    return [_with_score(item, score) for item, score in scored if score > 0], True


def _with_score(item: Candidate, score: float) -> Candidate:
    return Candidate(
        item.chunk_id,
        item.conversation_id,
        item.revision_id,
        item.title,
        item.body,
        item.timestamp,
        item.namespace,
        score,
    )
