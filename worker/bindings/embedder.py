"""Workers AI as the embedder."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, Final, Literal

from pyodide.ffi import JsException

from bindings.ffi import to_json_value
from mempersist.concurrency import gather
from mempersist.ports import EmbeddingModel, IndexUnavailable, Vector
from mempersist.text import utf8_safe

MODEL: Final = "@cf/baai/bge-m3"
BGE_M3: Final = EmbeddingModel("bge-m3", 1024)
_BATCH_TEXTS: Final = 32
_BATCHES_AT_ONCE: Final = 2
_MAX_CHARS: Final = 32_000
"""More than the model reads (8,192 tokens); what a longer text says further on is left to the lexical index."""


class WorkersAiEmbedder:
    """:class:`mempersist.ports.Embedder` over the AI binding, with BGE-M3: multilingual, 1024 numbers a text."""

    def __init__(self, ai: Any) -> None:
        self._ai = ai

    @property
    def model(self) -> EmbeddingModel:
        return BGE_M3

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        del kind  # the model embeds both alike
        said = [(place, utf8_safe(text[:_MAX_CHARS])) for place, text in enumerate(texts) if text.strip()]
        batches = [said[start : start + _BATCH_TEXTS] for start in range(0, len(said), _BATCH_TEXTS)]
        answers = await gather([self._run([text for _, text in batch]) for batch in batches], limit=_BATCHES_AT_ONCE)
        vectors: list[Vector] = [array("f", bytes(4 * BGE_M3.dimensions)) for _ in texts]
        for batch, answer in zip(batches, answers, strict=True):
            for (place, _), values in zip(batch, answer, strict=True):
                vectors[place] = values
        return vectors

    async def _run(self, texts: Sequence[str]) -> list[Vector]:
        try:
            answer = await self._ai.run(MODEL, to_json_value({"text": list(texts), "truncate_inputs": True}))
            rows = answer.data.to_py()
            if len(rows) != len(texts) or any(len(row) != BGE_M3.dimensions for row in rows):
                raise IndexUnavailable("Workers AI answered with vectors of another number or size")
            return [_unit(row) for row in rows]
        except JsException:
            raise IndexUnavailable("Workers AI did not answer") from None
        except (AttributeError, TypeError, ValueError, OverflowError):
            raise IndexUnavailable("Workers AI answered with something that is no list of vectors") from None


def _unit(row: Sequence[float]) -> Vector:
    length = math.sqrt(math.fsum(value * value for value in row))
    if not math.isfinite(length):
        raise IndexUnavailable("Workers AI answered with something that is no number")
    return array("f", [value / length for value in row] if length else row)
