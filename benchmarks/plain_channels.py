"""Retrieval with nothing around it: FTS5 over plain texts, and cosine over their vectors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mempersist.index.stopwords import STOP_WORDS
from mempersist.ports import Embedder, Vector

_TOKENIZER = "unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
_BATCH = 128

Order = list[int]
"""Places of texts, best first."""


class FullText:
    """FTS5 with the catalog's tokenizer: any word of the query that is no stop word, ordered by bm25."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._database = sqlite3.connect(":memory:")
        self._database.execute(f'CREATE VIRTUAL TABLE texts USING fts5 (body, tokenize = "{_TOKENIZER}")')
        self._database.executemany("INSERT INTO texts (rowid, body) VALUES (?, ?)", enumerate(texts))

    def search(self, query: str) -> Order:
        words = list(dict.fromkeys(re.findall(r"\w+", query.lower())))
        telling = [word for word in words if word not in STOP_WORDS] or words
        expression = " OR ".join(f'"{word}"' for word in telling)
        rows = self._database.execute("SELECT rowid FROM texts WHERE texts MATCH ? ORDER BY rank, rowid", (expression,))
        return [place for (place,) in rows]


class Vectors:
    """The embedder's vectors, all compared."""

    def __init__(self, embedder: Embedder, vectors: npt.NDArray[np.float32]) -> None:
        self._embedder = embedder
        self._vectors = vectors

    @staticmethod
    async def of(embedder: Embedder, texts: Sequence[str]) -> Vectors:
        found: list[Vector] = []
        for start in range(0, len(texts), _BATCH):
            found += await embedder.embed(texts[start : start + _BATCH], kind="passage")
        return Vectors(embedder, np.array(found, dtype=np.float32))

    async def search(self, query: str) -> Order:
        (vector,) = await self._embedder.embed([query], kind="query")
        order: Order = np.argsort(-(self._vectors @ np.array(vector, dtype=np.float32)), kind="stable").tolist()
        return order
