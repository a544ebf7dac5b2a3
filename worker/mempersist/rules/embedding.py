"""How texts go to BGE-M3 on Workers AI and come back as vectors, whichever way it is reached."""

from __future__ import annotations

import math
from array import array
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from mempersist.concurrency import gather
from mempersist.ports import EmbeddingModel, IndexUnavailable, Vector
from mempersist.text import utf8_safe

MODEL: Final = "@cf/baai/bge-m3"
BGE_M3: Final = EmbeddingModel("bge-m3", 1024)
_BATCH_TEXTS: Final = 32
_BATCHES_AT_ONCE: Final = 2
_MAX_CHARS: Final = 32_000
"""More than the model reads (8,192 tokens); what a longer text says further on is left to the lexical index."""


async def embed(texts: Sequence[str], run: Callable[[dict[str, Any]], Awaitable[Any]]) -> Sequence[Vector]:
    """A vector of length 1 per text, all zeros for one without words, which is never sent.

    :param run: asks the model with these inputs and gives the ``data`` of its answer.
    :raises IndexUnavailable: for an answer that is no vectors, or what ``run`` raises.
    """
    said = [(place, utf8_safe(text[:_MAX_CHARS])) for place, text in enumerate(texts) if text.strip()]
    batches = [said[start : start + _BATCH_TEXTS] for start in range(0, len(said), _BATCH_TEXTS)]
    answers = await gather([_batch([text for _, text in batch], run) for batch in batches], limit=_BATCHES_AT_ONCE)
    vectors: list[Vector] = [array("f", bytes(4 * BGE_M3.dimensions)) for _ in texts]
    for batch, answer in zip(batches, answers, strict=True):
        for (place, _), values in zip(batch, answer, strict=True):
            vectors[place] = values
    return vectors


async def _batch(texts: list[str], run: Callable[[dict[str, Any]], Awaitable[Any]]) -> list[Vector]:
    rows = await run({"text": texts, "truncate_inputs": True})
    try:
        if len(rows) != len(texts) or any(len(row) != BGE_M3.dimensions for row in rows):
            raise IndexUnavailable("Workers AI answered with vectors of another number or size")
        return [_unit(row) for row in rows]
    except (TypeError, ValueError, OverflowError):
        raise IndexUnavailable("Workers AI answered with something that is no list of vectors") from None


def _unit(row: Sequence[float]) -> Vector:
    length = math.sqrt(math.fsum(value * value for value in row))
    if not math.isfinite(length):
        raise IndexUnavailable("Workers AI answered with something that is no number")
    return array("f", [value / length for value in row] if length else row)
