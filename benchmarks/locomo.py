"""Does search find what answers a question? Retrieval on LoCoMo, beside plain FTS5 and plain vectors.

    python benchmarks/locomo.py --data locomo10.json

LoCoMo's ten long dialogues come with questions and the turns that answer them. Its data may not be sold, so it is not
kept here; the path of ``locomo10.json`` is given. Categories 1 to 4 count; category 5 asks for what was never said.

*Turn level*: every turn is a conversation of its own, so that a result is a turn; the part of a question's turns among
the first ten results is averaged over the questions. *Session level*: every session is a conversation, chunked as any
other; a question's sessions among the first five of the results' conversations. Each dialogue is a namespace, and a
question is asked in its dialogue's. The archive is imported by the product itself, into a temporary directory.

Halves are the dialogues of even and of odd number, for telling a gain from chance: the standard error of a mean over
all 1,500 questions is about 1.2 points.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __package__ in (None, ""):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.common import publish
from benchmarks.locomo_data import Dialogue, Turn, dialogues
from benchmarks.plain_channels import FullText, Vectors

from mempersist.archive.model import OWNER
from mempersist.index.generation import active_generation
from mempersist.index.terms import terms
from mempersist.limits import MAX_SEARCH_RESULTS
from mempersist.search import channels
from mempersist.search.candidates import Scope
from mempersist.search.query import search
from mempersist_ops.embedding.static import load_default
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.importing import import_file
from mempersist_ops.host.runtime import Host, opened

Search = Callable[[Dialogue, str], Awaitable[list[str]]]
"""Names of what was found in a dialogue for a question, best first, each once."""


@dataclass(frozen=True, slots=True)
class Level:
    """``unit`` names the part of a dialogue that a turn lies in, and that a search has to find."""

    name: str
    depth: int
    unit: Callable[[Turn], str]


TURNS = Level("turn", 10, lambda turn: turn.name)
SESSIONS = Level("session", 5, lambda turn: f"session-{turn.session}")


# ------------------------------------------------------------------ the archive


def export(dialogue: Dialogue, level: Level) -> list[dict[str, Any]]:
    """The dialogue as a chat export with one conversation per unit."""
    parts = dialogue.split(level.unit)
    return [conversation(f"{dialogue.name}/{name}", turns) for name, turns in parts.items()]


def conversation(source_id: str, turns: Sequence[Turn]) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    parent = None
    for turn in turns:
        content = {"content_type": "text", "parts": [turn.text]}
        message = {"id": turn.name, "author": {"role": turn.role}, "content": content, "create_time": None}
        mapping[turn.name] = {"id": turn.name, "message": message, "parent": parent, "children": []}
        if parent is not None:
            mapping[parent]["children"].append(turn.name)
        parent = turn.name
    title = turns[0].date
    return {"id": source_id, "conversation_id": source_id, "title": title, "mapping": mapping, "current_node": parent}


async def fill(host: Host, given: Sequence[Dialogue], level: Level, directory: Path) -> dict[str, str]:
    """Import ``given``, each into its namespace; the units' names by conversation id."""
    for dialogue in given:
        path = directory / f"{dialogue.name}.json"
        path.write_text(json.dumps(export(dialogue, level)), encoding="utf-8")
        receipt = await import_file(host, path, dialogue.name, force=False, progress=lambda *_: None)
        assert receipt.status == "complete", receipt
    rows = await host.ports.catalog.query("SELECT conversation_id, source_id FROM conversations")
    return {row["conversation_id"]: row["source_id"].split("/", 1)[1] for row in rows}


# ------------------------------------------------------------------ searches


def once(names: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(names))


async def plain_searches(given: Sequence[Dialogue], level: Level) -> dict[str, Search]:
    """FTS5 and vectors over single turns, a unit standing where its best turn stands; and over whole units."""
    searches = await plain_searches_over(given, level, TURNS, "turns")
    if level is SESSIONS:
        searches |= await plain_searches_over(given, level, SESSIONS, "whole sessions")
    return searches


async def plain_searches_over(
    given: Sequence[Dialogue], level: Level, documents: Level, what: str
) -> dict[str, Search]:
    embedder = load_default()
    units: dict[str, list[str]] = {}
    full_text: dict[str, FullText] = {}
    vectors: dict[str, Vectors] = {}
    for dialogue in given:
        parts = dialogue.split(documents.unit)
        texts = ["\n".join(turn.text for turn in turns) for turns in parts.values()]
        units[dialogue.name] = [level.unit(turns[0]) for turns in parts.values()]
        full_text[dialogue.name] = FullText(texts)
        vectors[dialogue.name] = await Vectors.of(embedder, texts)

    async def by_text(dialogue: Dialogue, question: str) -> list[str]:
        return once(units[dialogue.name][place] for place in full_text[dialogue.name].search(question))

    async def by_meaning(dialogue: Dialogue, question: str) -> list[str]:
        return once(units[dialogue.name][place] for place in await vectors[dialogue.name].search(question))

    return {f"plain FTS5 over {what}": by_text, f"plain vectors over {what}": by_meaning}


def product_searches(host: Host, units: dict[str, str]) -> dict[str, Search]:
    """The product's search, and each of its two channels alone."""

    async def scope(dialogue: Dialogue) -> Scope:
        return Scope(OWNER, await active_generation(host.ports), dialogue.name)

    async def whole(dialogue: Dialogue, question: str) -> list[str]:
        found = await search(host.ports, OWNER, query=question, limit=MAX_SEARCH_RESULTS, namespace=dialogue.name)
        assert not found.degraded
        return once(units[hit.conversation_id] for hit in found.results)

    async def lexical(dialogue: Dialogue, question: str) -> list[str]:
        found = await channels.lexical(host.ports, await scope(dialogue), terms(question))
        return once(units[item.conversation_id] for item in found)

    async def semantic(dialogue: Dialogue, question: str) -> list[str]:
        found = await channels.semantic(host.ports, await scope(dialogue), question)
        ordered = sorted(found, key=lambda item: (-item.score, item.chunk_id))
        return once(units[item.conversation_id] for item in ordered)

    return {"text channel alone": lexical, "vector channel alone": semantic, "search": whole}


# ------------------------------------------------------------------ scores


async def score(given: Sequence[Dialogue], level: Level, name: str, find: Search) -> dict[str, Any]:
    """Mean recall in percent at ``level.depth``, and at half of it and for each half of the dialogues."""
    wide: list[tuple[int, float]] = []
    narrow: list[float] = []
    for place, dialogue in enumerate(given):
        for question in dialogue.questions:
            wanted = {level.unit(turn) for turn in question.evidence}
            found = await find(dialogue, question.text)
            wide.append((place % 2, share(wanted, found[: level.depth])))
            narrow.append(share(wanted, found[: level.depth // 2]))
    halves = [mean([value for half, value in wide if half == wanted]) for wanted in (0, 1)]
    return {
        "ranking": name,
        f"R@{level.depth // 2}": mean(narrow),
        f"R@{level.depth}": mean([value for _, value in wide]),
        "even half": halves[0],
        "odd half": halves[1],
        "questions": len(wide),
    }


def share(wanted: set[str], found: Sequence[str]) -> float:
    return len(wanted.intersection(found)) / len(wanted)


def mean(values: Sequence[float]) -> float:
    return 100 * sum(values) / len(values) if values else 0.0


async def measure(given: Sequence[Dialogue], level: Level, *, plain_only: bool) -> list[dict[str, Any]]:
    rows = [await score(given, level, name, find) for name, find in (await plain_searches(given, level)).items()]
    if plain_only:
        return rows
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "data").mkdir()
        async with opened(DataDirectory(directory / "data")) as host:
            units = await fill(host, given, level, directory)
            rows += [await score(given, level, name, find) for name, find in product_searches(host, units).items()]
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Retrieval on LoCoMo, beside plain FTS5 and plain vectors.")
    parser.add_argument("--data", type=Path, required=True, help="path of locomo10.json")
    parser.add_argument("--plain-only", action="store_true", help="leave the product's search out")
    arguments = parser.parse_args()
    given = dialogues(arguments.data)
    tables = {
        f"{level.name.capitalize()} level, recall in %": asyncio.run(
            measure(given, level, plain_only=arguments.plain_only)
        )
        for level in (TURNS, SESSIONS)
    }
    publish("locomo", "Retrieval on LoCoMo, categories 1 to 4", tables, notes=[f"Model: {load_default().model.name}."])


if __name__ == "__main__":
    main()
