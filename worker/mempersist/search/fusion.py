"""One order from several channels.

Each channel's scores are put on a common scale, as multiples of their own spread, and added with fixed weights, full
text weighing more. The text channel's sample is padded with zeros up to the pool's size: a chunk that does not match
scores 0, and without the padding the single chunk that holds a rare word would count as average. The weights are not
fitted to one archive: on both halves of the benchmark set anything from 0.3 to 0.45 for meaning does about as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist.search.candidates import POOL, Candidate, Channel

_SEMANTIC_WEIGHT: Final = 0.4
_LEXICAL_WEIGHT: Final = 1 - _SEMANTIC_WEIGHT


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its place on the common scale and the channels that found it."""

    candidate: Candidate
    score: float
    sources: tuple[Channel, ...]


def fuse(lexical: Sequence[Candidate], semantic: Sequence[Candidate], recent: Sequence[Candidate]) -> list[Ranked]:
    """All candidates, best first; equal ones by chunk id, whatever order the channels gave."""
    text = {item.chunk_id: item.score for item in lexical}
    # A just-written chunk has no bm25 yet: it counts as the best text match, in so far as it holds the query.
    best = max(text.values(), default=1.0)
    for item in recent:
        text[item.chunk_id] = max(text.get(item.chunk_id, 0.0), item.score * best)
    meaning = {item.chunk_id: item.score for item in semantic}
    text_scale = _Scale.of([*text.values(), *[0.0] * (POOL - len(text))] if text else [])
    meaning_scale = _Scale.of(list(meaning.values()))
    candidates = {item.chunk_id: item for item in (*recent, *semantic, *lexical)}
    found: list[tuple[Channel, set[str]]] = [
        ("lexical", {item.chunk_id for item in lexical}),
        ("semantic", set(meaning)),
        ("recent_canonical", {item.chunk_id for item in recent}),
    ]
    ranked = [
        Ranked(
            item,
            _LEXICAL_WEIGHT * text_scale.place(text.get(chunk_id))
            + _SEMANTIC_WEIGHT * meaning_scale.place(meaning.get(chunk_id)),
            tuple(channel for channel, ids in found if chunk_id in ids),
        )
        for chunk_id, item in candidates.items()
    ]
    return sorted(ranked, key=lambda item: (-item.score, item.candidate.chunk_id))


def squashed(score: float) -> float:
    """A score as a number between 0 and 1 with 6 decimals; the order stays."""
    return round(1 / (1 + math.exp(-score)), 6)


@dataclass(frozen=True, slots=True)
class _Scale:
    """A channel's mean, spread and lowest score."""

    mean: float
    spread: float
    lowest: float

    @staticmethod
    def of(scores: Sequence[float]) -> _Scale:
        if not scores:
            return _Scale(0.0, 0.0, 0.0)
        mean = math.fsum(scores) / len(scores)
        spread = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
        return _Scale(mean, spread, min(scores))

    def place(self, score: float | None) -> float:
        """``score`` in spreads from the mean; a chunk that the channel does not have is at its lowest."""
        if self.spread == 0:
            return 0.0
        return ((self.lowest if score is None else score) - self.mean) / self.spread
