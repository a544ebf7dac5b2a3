"""An import end to end, beside its parts alone on the same bytes in the same run.

    python benchmarks/import_export.py             # 1 GB, published under benchmarks/results
    python benchmarks/import_export.py --size 50M  # only printed

The import runs in a process of its own, whose peak resident memory is what the kernel says of it. It ends when the last
vector is written. Then each part does, as barely as Python and SQLite allow, what the import did of it:

- *hashing*: SHA-256 of the upload and of every segment;
- *parsing*: every conversation through ``json``;
- *writing*: files of the same sizes at the same paths, synced and renamed by as many threads; the same rows into equal
  SQLite tables;
- *full text*: the same chunks into the same FTS5 table;
- *embedding*: the same chunks through the same model; *vectors*: the same blobs into SQLite.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import Row, peak_mib, publish, seconds, table
from benchmarks.generate_export import parse_size, write_json, write_zip

from mempersist_ops.embedding.static import load_default
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.importing import import_file
from mempersist_ops.host.runtime import opened

_WRITERS = 12
_BLOCK = 1024 * 1024
_TURN = 25


async def import_once(path: Path, root: Path) -> dict[str, Any]:
    """Import ``path`` into the empty data directory ``root``."""
    async with opened(DataDirectory(root)) as host:
        began = time.perf_counter()
        receipt = await import_file(host, path, None, force=False, progress=lambda *_: None)
        elapsed = time.perf_counter() - began
    return {
        "seconds": elapsed,
        "peak_mib": peak_mib(),
        "status": receipt.status,
        "conversations": receipt.counts.conversations.imported,
        "messages": receipt.counts.messages.imported,
    }


# ------------------------------------------------------------------ the parts alone


def hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def hash_segments(segments: list[Path]) -> list[str]:
    return [hashlib.sha256(segment.read_bytes()).hexdigest() for segment in segments]


def parse(path: Path) -> int:
    """Parse each conversation of a JSON array, holding a window of the file; how many there were."""
    decoder = json.JSONDecoder()
    count = 0
    text, at = "", 0
    with path.open(encoding="utf-8") as file:
        file.read(1)
        while True:
            try:
                _, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                block = file.read(_BLOCK)
                if not block:
                    return count
                text, at = text[at:] + block, 0
            else:
                count += 1
                at += 2  # the generator writes a comma and a space


def write_files(files: list[tuple[Path, int]], root: Path) -> None:
    """Files of these sizes at these paths, each as durable as an object is: written aside, synced, renamed, and every
    directory synced that got a new name."""
    (root / "tmp").mkdir(parents=True)
    data = os.urandom(_BLOCK)

    def make(directory: Path) -> None:
        if not directory.is_dir():
            make(directory.parent)
            directory.mkdir(exist_ok=True)
            sync(directory.parent)

    def sync(directory: Path) -> None:
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def write(number: int, path: Path, size: int) -> None:
        temporary = root / "tmp" / str(number)
        with temporary.open("wb", buffering=0) as file:
            for start in range(0, size, _BLOCK):
                file.write(data[: min(_BLOCK, size - start)])
            os.fsync(file.fileno())
        target = root / path
        make(target.parent)
        temporary.rename(target)
        sync(target.parent)

    with ThreadPoolExecutor(_WRITERS) as pool:
        for done in [pool.submit(write, number, *file) for number, file in enumerate(files)]:
            done.result()


def copy_rows(source: Path, target: Path, tables: list[str]) -> None:
    """The rows of ``tables`` into equal tables of a new database, a turn's share in a transaction."""
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    reading = sqlite3.connect(source)
    for name in tables:
        for (schema,) in reading.execute(
            "SELECT sql FROM sqlite_schema WHERE tbl_name = ? AND type IN ('table', 'index') AND sql IS NOT NULL"
            " ORDER BY type DESC",
            (name,),
        ):
            database.execute(schema)
        columns = len(reading.execute(f"SELECT * FROM {name} LIMIT 0").description)
        insert = f"INSERT INTO {name} VALUES ({', '.join('?' * columns)})"
        cursor = reading.execute(f"SELECT * FROM {name}")
        while rows := cursor.fetchmany(_TURN * 12 if name == "messages" else _TURN):
            database.execute("BEGIN IMMEDIATE")
            database.executemany(insert, rows)
            database.execute("COMMIT")
    reading.close()
    database.close()


def insert_full_text(source: Path, target: Path) -> None:
    """The chunks and their full-text rows, as the migration defines both, into a new database."""
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    reading = sqlite3.connect(source)
    for name in ("chunks", "chunks_fts", "chunks_fts_insert"):
        database.execute(reading.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).fetchone()[0])
    columns = len(reading.execute("SELECT * FROM chunks LIMIT 0").description)
    insert = f"INSERT INTO chunks VALUES ({', '.join('?' * columns)})"
    cursor = reading.execute("SELECT * FROM chunks")
    while rows := cursor.fetchmany(_TURN * 12):
        database.execute("BEGIN IMMEDIATE")
        database.executemany(insert, rows)
        database.execute("COMMIT")
    reading.close()
    database.close()


def bodies(catalog: Path) -> Iterator[list[str]]:
    reading = sqlite3.connect(catalog)
    cursor = reading.execute("SELECT body FROM chunks")
    while rows := cursor.fetchmany(128):
        yield [body for (body,) in rows]
    reading.close()


def embed(catalog: Path) -> int:
    embedder = load_default()

    async def run() -> int:
        return sum([len(await embedder.embed(texts, kind="passage")) for texts in bodies(catalog)])

    return asyncio.run(run())


def write_vectors(count: int, dimensions: int, target: Path) -> None:
    database = sqlite3.connect(target, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE vectors (id TEXT PRIMARY KEY, vector BLOB, metadata TEXT)")
    metadata = json.dumps(
        {"account": "owner", "namespace": "personal", "generation": "x" * 40, "conversation": "0" * 64}
    )
    for start in range(0, count, 300):
        names = range(start, min(start + 300, count))
        rows = [
            (hashlib.sha256(str(name).encode()).hexdigest(), os.urandom(4 * dimensions), metadata) for name in names
        ]
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)
        database.execute("COMMIT")
    database.close()


def measure_parts(path: Path, size: int, root: Path, scratch: Path) -> dict[str, float]:
    """Seconds of each part alone, on what the import into ``root`` left there."""
    objects = [file for file in (root / "objects").rglob("*") if file.is_file()]
    segments = [file for file in objects if file.suffix == ".jsonl"]
    files = [(file.relative_to(root), file.stat().st_size) for file in objects]
    catalog = root / "catalog.sqlite3"
    database = sqlite3.connect(catalog)
    chunks = database.execute("SELECT count(*) FROM chunks").fetchone()[0]
    database.close()
    tables = ["conversations", "revisions", "messages", "index_state"]
    parse_path = path if path.suffix == ".json" else scratch / "plain.json"
    if not parse_path.exists():
        write_json(parse_path, size)
    return {
        "hashing": seconds(lambda: (hash_file(path), hash_segments(segments))),
        "parsing": seconds(lambda: parse(parse_path)),
        "writing files": seconds(lambda: write_files(files, scratch / "files")),
        "writing rows": seconds(lambda: copy_rows(catalog, scratch / "rows.sqlite3", tables)),
        "full text": seconds(lambda: insert_full_text(catalog, scratch / "fts.sqlite3")),
        "embedding": seconds(lambda: embed(catalog)),
        "vectors": seconds(lambda: write_vectors(chunks, load_default().model.dimensions, scratch / "vectors.sqlite3")),
    }


# ------------------------------------------------------------------ the run


def run(size: int, kind: str, directory: Path) -> dict[str, list[Row]]:
    """Import and parts as tables."""
    export = directory / f"export.{kind}"
    (write_zip if kind == "zip" else write_json)(export, size)
    root, scratch = directory / "data", directory / "scratch"
    root.mkdir()
    scratch.mkdir()
    command = [sys.executable, __file__, "--import-into", str(root), str(export)]
    imported = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    parts = measure_parts(export, size, root, scratch)
    total = sum(parts.values())
    summary: Row = {
        "export": f"{export.stat().st_size / 1e6:.0f} MB {kind}",
        "conversations": imported["conversations"],
        "messages": imported["messages"],
        "seconds": imported["seconds"],
        "MB/s": size / imported["seconds"] / 1e6,
        "peak MiB": imported["peak_mib"],
        "parts alone, s": total,
        "times the parts": f"{imported['seconds'] / total:.2f}",
    }
    return {"The import": [summary], "Its parts alone": [{"part": part, "seconds": s} for part, s in parts.items()]}


def main() -> None:
    parser = argparse.ArgumentParser(description="Import a generated export, beside its parts alone.")
    parser.add_argument("--size", help="of the conversations' JSON; K, M and G are powers of 1000")
    parser.add_argument("--kind", choices=("json", "zip"), default="json")
    parser.add_argument("--directory", type=Path, help="where to work; a temporary directory if absent")
    parser.add_argument("--import-into", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("export", type=Path, nargs="?", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.import_into:
        print(json.dumps(asyncio.run(import_once(arguments.export, arguments.import_into))))
        return
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        tables = run(parse_size(arguments.size or "1G"), arguments.kind, Path(directory))
    if arguments.size is None:
        publish("import_export", "Importing an export, beside its parts alone", tables, notes=(_WHAT,))
    else:
        print("\n\n".join(table(rows) for rows in tables.values()))


_WHAT = (
    "The import reads, hashes, stores, projects and indexes; it ends when the last vector is written. Each part alone"
    " does the same work on the same bytes with nothing around it."
)


if __name__ == "__main__":
    main()
