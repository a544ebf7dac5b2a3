"""How fast the default embedder is, and what it needs.

    python benchmarks/embedding.py

Short texts have about 30 pieces, as a chat message; long ones about 1,000, as the longest chunk. Texts are drawn from a
vocabulary by Zipf's law, so that rare words come, too; the same texts are given to the tokenizer alone, and the sums
are shown beside what numpy needs to gather and add the same rows. Loading is measured in a process of its own.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.common import median_seconds, peak_mib, publish, seconds

from mempersist_ops.embedding.static import StaticEmbedder, load_default

_BATCH = 64
_LOADING = """
import resource, sys, time
sys.path[:0] = {path!r}
import numpy
from benchmarks.common import peak_mib
from mempersist_ops.embedding import static
before, began = peak_mib(), time.perf_counter()
static.load_default()
print([1000 * (time.perf_counter() - began), peak_mib() - before, peak_mib()])
"""


def texts(embedder: StaticEmbedder, count: int, words: int, *, seed: int = 1) -> list[str]:
    """``count`` texts of ``words`` whole words and some marks."""
    rng = random.Random(seed)
    known = [piece for piece in embedder.tokenizer.pieces if piece.isascii() and piece.isalpha() and len(piece) > 1]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, len(known) + 1)))

    def sentence(length: int) -> str:
        return " ".join(rng.choices(known, cum_weights=weights, k=length)).capitalize() + "."

    return [" ".join(sentence(min(9, words - start)) for start in range(0, words, 9)) for _ in range(count)]


def embed(embedder: StaticEmbedder, given: Sequence[str], *, anew: bool = False) -> None:
    """:param anew: forget the words seen before."""
    if anew:
        embedder.tokenizer.cache.clear()

    async def run() -> None:
        for start in range(0, len(given), _BATCH):
            await embedder.embed(given[start : start + _BATCH], kind="passage")

    asyncio.run(run())


def add_rows(embedder: StaticEmbedder, numbers: Sequence[Sequence[int]]) -> None:
    """The bare sums: the same rows, gathered and added by numpy, text by text."""
    vectors = embedder.vectors
    for each in numbers:
        np.add.reduce(vectors[each], axis=0, dtype=np.float32)


def tokenize(embedder: StaticEmbedder, given: Sequence[str], *, anew: bool) -> list[list[int]]:
    if anew:
        embedder.tokenizer.cache.clear()
    return [embedder.tokenizer.numbers(text) for text in given]


def speed(embedder: StaticEmbedder, name: str, given: Sequence[str], *, anew: bool = False) -> dict[str, Any]:
    numbers = tokenize(embedder, given, anew=anew)
    tokens = median_seconds(lambda: tokenize(embedder, given, anew=anew))
    whole = median_seconds(lambda: embed(embedder, given, anew=anew))
    sums = median_seconds(lambda: add_rows(embedder, numbers))
    return {
        "texts": name,
        "pieces each": sum(map(len, numbers)) / len(numbers),
        "embedded/s": len(given) / whole,
        "tokenized/s": len(given) / tokens,
        "bare sums/s": len(given) / sums,
        "times the parts": whole / (tokens + sums),
    }


def main() -> None:
    embedder = load_default()
    rows = [
        speed(embedder, "short", texts(embedder, 4096, 28)),
        speed(embedder, "long", texts(embedder, 512, 900)),
        speed(embedder, "Chinese, unspaced", ["我们昨天讨论了数据库的索引和查询计划，结果比预期快很多。" * 8] * 256),
        speed(embedder, "every word new", [f"x{number}y q{number}z" for number in range(100_000, 104_096)], anew=True),
    ]
    before = peak_mib()
    large = "A line about the harvest, the weather and 42 sheep.\n" * 20_000
    one = seconds(lambda: embed(embedder, [large]))
    path = [str(Path(__file__).resolve().parent.parent), *sys.path]
    runs = [
        json.loads(subprocess.check_output([sys.executable, "-c", _LOADING.format(path=path)], text=True))
        for _ in range(5)
    ]
    load, added, resident = sorted(runs)[2]
    memory = [
        {"what": "load, ms", "value": load},
        {"what": "resident after loading, MiB", "value": resident},
        {"what": "of it the model, MiB", "value": added},
        {"what": "one text of 1 MB, ms", "value": 1000 * one},
        {"what": "more resident for it, MiB", "value": peak_mib() - before},
    ]
    publish("embedding", f"The default embedder, {embedder.model.name}", {"Speed, one core": rows, "Memory": memory})


if __name__ == "__main__":
    main()
