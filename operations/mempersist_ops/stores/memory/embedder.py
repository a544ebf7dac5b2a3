"""A test double for the embedder: words hashed into a few dimensions. It knows nothing of meaning."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Sequence
from typing import Literal

from mempersist.ports import EmbeddingModel, Vector


class HashEmbedder:
    """Deterministic; texts that share words are closer than texts that do not."""

    def __init__(self, dimensions: int = 64) -> None:
        self._model = EmbeddingModel(f"hash-{dimensions}", dimensions)

    @property
    def model(self) -> EmbeddingModel:
        return self._model

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        del kind
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> Vector:
        values = array("f", bytes(4 * self._model.dimensions))
        for word in text.casefold().split():
            digest = hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest()
            number = int.from_bytes(digest, "big")
            values[number % len(values)] += 1.0 if number >> 63 else -1.0
        length = math.sqrt(sum(value * value for value in values))
        return array("f", (value / length for value in values)) if length else values
