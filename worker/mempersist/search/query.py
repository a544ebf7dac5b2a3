"""``search``: the channels side by side, one ranking, and an honest word about what was out of reach."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from mempersist import names
from mempersist.catalog.bulk import json_parameters
from mempersist.catalog.conversations import TagMode, require_namespace
from mempersist.errors import Code, MempersistError
from mempersist.index.generation import active_generation
from mempersist.index.terms import terms
from mempersist.ports import AccountId, CatalogError, IndexUnavailable, Ports
from mempersist.search import channels, fusion
from mempersist.search.candidates import Candidate, Scope
from mempersist.search.fusion import Ranked
from mempersist.search.matching import Matcher

T = TypeVar("T")

_PER_CONVERSATION: Final = 5
_LEAST_SIMILARITY: Final = 0.2
"""Cosine below which nearness alone is chance, for any of the models; a chunk that text found is not held to it."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One found chunk. ``score`` is 0 to 1 and means something only within its result."""

    conversation_id: str
    revision_id: str
    chunk_id: str
    title: str
    snippet: str
    timestamp: str | None
    namespace: str
    tags: tuple[str, ...]
    score: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SearchResult:
    """``unavailable`` names channels that could not answer: ``fts``, ``semantic``, ``recent_canonical``."""

    results: tuple[Hit, ...]
    degraded: bool
    unavailable: tuple[str, ...]


async def search(
    ports: Ports,
    account: AccountId,
    *,
    query: str,
    limit: int,
    namespace: str | None = None,
    tags: Sequence[str] = (),
    tag_mode: TagMode = "all",
) -> SearchResult:
    """The chunks of the account's live conversations that fit ``query`` best, at most five of a conversation.

    Any text is a query; one without a letter or digit finds nothing.

    :raises MempersistError: AUTHENTICATION for a namespace that the account does not own; VALIDATION for bad tags;
        RETRYABLE_INFRASTRUCTURE when no channel could answer.
    """
    if namespace is not None:
        await require_namespace(ports, account, namespace)
    wanted = terms(query)
    if not wanted:
        return SearchResult((), degraded=False, unavailable=())
    scope = Scope(account, await active_generation(ports), namespace, names.tags(tags), tag_mode)
    matcher = Matcher.of(wanted)
    lexical, semantic, recent = await asyncio.gather(
        _or_none(channels.lexical(ports, scope, wanted)),
        _or_none(channels.semantic(ports, scope, query)),
        _or_none(channels.recent(ports, scope, matcher)),
    )
    unavailable = [
        name
        for name, missing in (
            ("fts", lexical is None),
            ("semantic", semantic is None),
            ("recent_canonical", recent is None or not recent[1]),
        )
        if missing
    ]
    if lexical is None and semantic is None and recent is None:
        raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "search is out of reach just now; try again")
    found = _telling(fusion.fuse(lexical or [], semantic or [], recent[0] if recent else []), semantic or [])
    page = _page(found, limit)
    live_tags = await _tags(ports, account, [item.candidate.conversation_id for item in page])
    return SearchResult(
        tuple(_hit(item, matcher, live_tags.get(item.candidate.conversation_id, ())) for item in page),
        bool(unavailable),
        tuple(unavailable),
    )


async def _or_none(channel: Coroutine[Any, Any, T]) -> T | None:
    try:
        return await channel
    except (CatalogError, IndexUnavailable):
        return None


def _telling(ranked: Sequence[Ranked], semantic: Sequence[Candidate]) -> list[Ranked]:
    similarity = {item.chunk_id: item.score for item in semantic}
    return [
        item
        for item in ranked
        if item.sources != ("semantic",) or similarity[item.candidate.chunk_id] >= _LEAST_SIMILARITY
    ]


def _page(ranked: Sequence[Ranked], limit: int) -> list[Ranked]:
    seen: Counter[str] = Counter()
    page: list[Ranked] = []
    for item in ranked:
        if seen[item.candidate.conversation_id] < _PER_CONVERSATION:
            seen[item.candidate.conversation_id] += 1
            page.append(item)
            if len(page) == limit:
                break
    return page


def _hit(item: Ranked, matcher: Matcher, tags: tuple[str, ...]) -> Hit:
    found = item.candidate
    return Hit(
        conversation_id=found.conversation_id,
        revision_id=found.revision_id,
        chunk_id=found.chunk_id,
        title=found.title,
        snippet=matcher.snippet(found.body),
        timestamp=found.timestamp,
        namespace=found.namespace,
        tags=tags,
        score=fusion.squashed(item.score),
        sources=item.sources,
    )


async def _tags(ports: Ports, account: AccountId, conversation_ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    tags: dict[str, tuple[str, ...]] = {}
    for parameter in json_parameters(dict.fromkeys(conversation_ids)):
        rows = await ports.catalog.query(
            "SELECT conversation_id, tag FROM conversation_tags"
            " WHERE account_id = ? AND conversation_id IN (SELECT value FROM json_each(?)) ORDER BY position",
            (account, parameter),
        )
        for row in rows:
            tags[row["conversation_id"]] = (*tags.get(row["conversation_id"], ()), row["tag"])
    return tags
