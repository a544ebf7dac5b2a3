"""How long a search takes as an archive grows, beside a bare full-text query and an exact vector lookup.

    python benchmarks/search.py                      # 10,000, 100,000 and 1,000,000 chunks, published under results
    python benchmarks/search.py --chunks 10000       # only printed

The archive is made up: words drawn from a Zipf distribution, ten chunks a conversation, unit vectors at random. The
bare parts ask the same files in the same run: the same MATCH expression with bm25 and a limit through ``sqlite3``, and
the query's embedding with an exact lookup of the nearest hundred.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import numpy as np
from benchmarks.common import Row, peak_mib, publish, table

from mempersist.archive import accounts
from mempersist.archive.model import OWNER
from mempersist.catalog import bulk
from mempersist.index.generation import ensure_generation, generation_of
from mempersist.index.terms import expression, terms
from mempersist.ports import Ports, VectorRecord
from mempersist.search.query import search
from mempersist.system import SystemClock, SystemIds
from mempersist_ops import migrations
from mempersist_ops.embedding.static import load_default
from mempersist_ops.stores.embedded.catalog import SqliteCatalog
from mempersist_ops.stores.embedded.vectors import SqliteVectorIndex
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from mempersist_ops.stores.memory.queue import MemoryQueue

SIZES = (10_000, 100_000, 1_000_000)
QUERIES = 60
_VOCABULARY = 60_000
_PER_CONVERSATION = 10
_BATCH = 1000
_AT = "2026-01-01T00:00:00.000Z"


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Made-up words, the frequent ones short, drawn as natural language draws them."""
    return [f"{'abcdefghijklmnopqrstuvwxyz'[n % 26]}{n:x}q" for n in np.minimum(rng.zipf(1.2, count), _VOCABULARY)]


async def fill(ports: Ports, chunks: int) -> None:
    """Write ``chunks`` chunks straight into the catalog and the vector index."""
    rng = np.random.default_rng(7)
    generation = generation_of(ports).id
    for start in range(0, chunks, _BATCH):
        numbers = range(start, min(start + _BATCH, chunks))
        conversations = sorted({number // _PER_CONVERSATION for number in numbers})
        await ports.catalog.batch(
            [
                *bulk.insert(
                    "conversations",
                    ("conversation_id", "account_id", "namespace", "title", "source_type", "updated_at", "stored_at",
                     "head_seq", "head_hash", "revision_id", "node_count", "message_count"),
                    ([f"c{n}", OWNER, "personal", f"About c{n}", "chatgpt", _AT, _AT, 0, "h", "r", 10, 10]
                     for n in conversations),
                ),
                *bulk.insert(
                    "index_state",
                    ("conversation_id", "generation", "account_id", "head_seq", "status", "queued_at"),
                    ([f"c{n}", generation, OWNER, 0, "indexed", _AT] for n in conversations),
                ),
                *bulk.insert(
                    "chunks",
                    ("chunk_id", "vector_id", "account_id", "conversation_id", "generation", "branch_key", "ordinal",
                     "title", "body", "grams", "token_estimate", "created_at", "sources_json", "embedded"),
                    ([f"k{n}", f"v{n}", OWNER, f"c{n // _PER_CONVERSATION}", generation, "active",
                      n % _PER_CONVERSATION, f"About c{n // _PER_CONVERSATION}",
                      " ".join(words(rng, int(rng.integers(30, 130)))), "", 100, _AT, "[]", 1] for n in numbers),
                ),
            ]
        )  # fmt: skip
        vectors = rng.standard_normal((len(numbers), ports.embedder.model.dimensions), dtype=np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        metadata = {"account": OWNER, "generation": generation, "namespace": "personal"}
        await ports.vectors.upsert(
            [
                VectorRecord(f"v{number}", array("f", vector.tobytes()), metadata)
                for number, vector in zip(numbers, vectors, strict=True)
            ]
        )


def questions() -> list[str]:
    """Queries of one to five words, from rare to very common."""
    rng, draw = np.random.default_rng(11), random.Random(11)
    return [" ".join(words(rng, draw.randint(1, 5))) for _ in range(QUERIES)]


async def bare_text(connection: sqlite3.Connection, query: str) -> None:
    connection.execute(
        "SELECT rowid, bm25(chunks_fts, 3.0, 1.0, 1.0) AS score FROM chunks_fts WHERE chunks_fts MATCH ?"
        " ORDER BY score LIMIT 100",
        (expression(terms(query)),),
    ).fetchall()


async def bare_vectors(ports: Ports, query: str) -> None:
    (vector,) = await ports.embedder.embed([query], kind="query")
    await ports.vectors.query(vector, top_k=100, where={"account": OWNER, "generation": generation_of(ports).id})


async def measure(chunks: int) -> Row:
    with tempfile.TemporaryDirectory() as directory:
        embedder, clock = load_default(), SystemClock()
        catalog = SqliteCatalog(Path(directory) / "catalog.sqlite3", synchronous="NORMAL")
        vectors = SqliteVectorIndex(Path(directory) / "vectors.sqlite3", embedder.model.dimensions)
        await migrations.apply(catalog, migrations.find_directory(), clock, owner="benchmark")
        ports = Ports(MemoryObjectStore(), catalog, vectors, MemoryQueue(clock), embedder, clock, SystemIds())
        await accounts.ensure_owner(ports)
        await ensure_generation(ports)
        began = time.perf_counter()
        await fill(ports, chunks)
        built = time.perf_counter() - began
        connection = sqlite3.connect(Path(directory) / "catalog.sqlite3")
        connection.execute("PRAGMA cache_size = -32768")
        took: dict[str, list[float]] = {"search": [], "text": [], "vectors": []}
        for turn in range(2):  # the first turn warms what a running server has warm
            took = {name: [] for name in took}
            for query in questions():
                for name, work in (
                    ("search", lambda q=query: search(ports, OWNER, query=q, limit=8)),
                    ("text", lambda q=query: bare_text(connection, q)),
                    ("vectors", lambda q=query: bare_vectors(ports, q)),
                ):
                    start = time.perf_counter()
                    await work()  # type: ignore[no-untyped-call]
                    took[name].append((time.perf_counter() - start) * 1000)
            del turn
        connection.close()
        vectors.close()
        catalog.close()
    both = [text + vector for text, vector in zip(took["text"], took["vectors"], strict=True)]
    return {
        "chunks": chunks,
        "search p50 ms": at(took["search"], 0.5),
        "search p95 ms": at(took["search"], 0.95),
        "text p50 ms": at(took["text"], 0.5),
        "vectors p50 ms": at(took["vectors"], 0.5),
        "both p50 ms": at(both, 0.5),
        "both p95 ms": at(both, 0.95),
        "p50 times the parts": round(at(took["search"], 0.5) / at(both, 0.5), 2),
        "p95 times the parts": round(at(took["search"], 0.95) / at(both, 0.95), 2),
        "build s": built,
        "peak MiB": peak_mib(),
    }


def at(values: list[float], quantile: float) -> float:
    return sorted(values)[int(quantile * (len(values) - 1))]


def rows(sizes: list[int]) -> Iterator[Row]:
    for size in sizes:
        row = asyncio.run(measure(size))
        print(json.dumps(row), flush=True)
        yield row


def main(arguments: Any = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chunks", type=int, action="append", help="only this size, and only printed; may be repeated")
    chosen = parser.parse_args(arguments).chunks
    measured = list(rows(chosen or list(SIZES)))
    if chosen:
        print(table([{key: _short(value) for key, value in row.items()} for row in measured]))
        return
    publish(
        "search",
        "Search as an archive grows",
        {"60 queries of one to five words, warm": [{k: _short(v) for k, v in row.items()} for row in measured]},
        notes=[
            "Both: the bare full-text query and the exact vector lookup with the query's embedding, one after another."
        ],
    )


def _short(value: Any) -> Any:
    return f"{value:.2f}" if isinstance(value, float) and value < 10 else value


if __name__ == "__main__":
    main()
