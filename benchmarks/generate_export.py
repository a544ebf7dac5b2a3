"""A synthetic ChatGPT export of any size: the same bytes for the same size and seed, streamed to disk.

Its proportions follow real exports: short questions and long answers, a few long conversations among many short ones,
a little more than half of the bytes text, some code, some of it in other scripts, every fifth conversation with an
edited prompt. Words are drawn by Zipf's law, so that the full-text index meets rare and common terms.

    python benchmarks/generate_export.py export.json --size 50M
    python benchmarks/generate_export.py export.zip --size 1G
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

EPOCH = 1_700_000_000
SHARD_BYTES = 64 * 1024 * 1024
_SYLLABLES = "ba be bo da de di fa fo ga ge ka ki ko la le li lo ma me mi na ne no pa pe ra re ri ro sa se si so ta te ti to va ve".split()  # noqa: E501, SIM905
_OTHER_SCRIPTS = (
    "今日は図書館で古い地図を見つけて、昔の町の様子を調べました。",
    "我们昨天讨论了数据库的索引和查询计划，结果比预期快很多。",
    "कल हमने बगीचे में नए पौधे लगाए और उन्हें पानी दिया।",
    "Die Prüfung der Übertragung dauerte länger, weil größere Blöcke später ankamen.",
    "Kami akan memperbaiki jadwal pertemuan supaya semua orang bisa hadir.",
    "Вчера мы обсуждали маршрут поездки и погоду в горах.",
    "مرحبا، كيف يمكنني تحسين هذا النص قبل إرساله؟",
)
_CODE = (
    "```python\ndef total(rows: list[int]) -> int:\n    return sum(row for row in rows if row > 0)\n```",
    "```sql\nSELECT name, count(*) FROM visits WHERE day >= '2026-01-01' GROUP BY name ORDER BY 2 DESC;\n```",
    "```sh\ngrep -rn 'timeout_ms=' src/ | sort -u > report.txt\n```",
)


def sentences(rng: random.Random, count: int = 20_000, vocabulary: int = 40_000) -> list[str]:
    """A pool of sentences over a vocabulary whose word frequencies follow Zipf's law."""
    words = ["".join(rng.choice(_SYLLABLES) for _ in range(rng.randint(1, 4))) for _ in range(vocabulary)]
    weights = list(itertools.accumulate(1 / rank for rank in range(1, vocabulary + 1)))
    pool = []
    for _ in range(count):
        picked = rng.choices(words, cum_weights=weights, k=rng.randint(5, 22))
        pool.append(" ".join(picked).capitalize() + ".")
    return pool


class ExportGenerator:
    """Draws conversations one after another from ``seed``."""

    def __init__(self, seed: int = 1) -> None:
        self._rng = random.Random(seed)
        self._pool = sentences(self._rng)
        self._number = 0

    def conversation(self) -> dict[str, Any]:
        """The next conversation."""
        rng, number = self._rng, self._number
        self._number += 1
        created = EPOCH + number * 600 + rng.random()
        turns = max(1, min(200, round(rng.lognormvariate(1.3, 0.9))))
        source_id = self._id()
        root = self._id()
        mapping: dict[str, Any] = {root: {"id": root, "message": None, "parent": None, "children": []}}
        parent, at = root, created
        for turn in range(turns):
            for role in ("user", "assistant"):
                at += rng.uniform(2, 90)
                parent = self._node(mapping, parent, role, at)
            if turn == 0 and number % 5 == 0:
                self._node(mapping, root, "user", at)
        return {
            "title": self._text(1)[:60],
            "create_time": created,
            "update_time": at,
            "mapping": mapping,
            "moderation_results": [],
            "current_node": parent,
            "plugin_ids": None,
            "conversation_id": source_id,
            "conversation_template_id": None,
            "gizmo_id": None,
            "is_archived": False,
            "safe_urls": [],
            "default_model_slug": "gpt-4o",
            "id": source_id,
        }

    def _node(self, mapping: dict[str, Any], parent: str, role: str, at: float) -> str:
        name = self._id()
        assistant = role == "assistant"
        mapping[parent]["children"].append(name)
        mapping[name] = {
            "id": name,
            "message": {
                "id": name,
                "author": {"role": role, "name": None, "metadata": {}},
                "create_time": at,
                "update_time": None,
                "content": {"content_type": "text", "parts": [self._message(assistant)]},
                "status": "finished_successfully",
                "end_turn": True if assistant else None,
                "weight": 1.0,
                "metadata": {
                    "citations": [],
                    "content_references": [],
                    "gizmo_id": None,
                    "message_type": None,
                    "model_slug": "gpt-4o" if assistant else None,
                    "default_model_slug": "gpt-4o",
                    "parent_id": parent,
                    "request_id": self._id(),
                    "timestamp_": "absolute",
                },
                "recipient": "all",
                "channel": None,
            },
            "parent": parent,
            "children": [],
        }
        return name

    def _message(self, assistant: bool) -> str:
        rng = self._rng
        length = max(1, min(120, round(rng.lognormvariate(2.9 if assistant else 1.1, 0.8))))
        text = self._text(length)
        draw = rng.random()
        if draw < 0.12:
            text += " " + rng.choice(_OTHER_SCRIPTS)
        elif draw < 0.22:
            text += "\n\n" + rng.choice(_CODE)
        return text

    def _text(self, count: int) -> str:
        return " ".join(self._rng.choice(self._pool) for _ in range(count))

    def _id(self) -> str:
        digits = f"{self._rng.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def pieces(size: int, generator: ExportGenerator) -> Iterator[bytes]:
    """A JSON array of conversations, at least ``size`` bytes long, conversation by conversation."""
    written = 0
    opening = b"["
    while written < size:
        piece = opening + json.dumps(generator.conversation()).encode()
        opening = b", "
        written += len(piece)
        yield piece
    yield b"]"


def write_json(path: Path, size: int, seed: int = 1) -> None:
    with path.open("wb") as file:
        file.writelines(pieces(size, ExportGenerator(seed)))


def write_zip(path: Path, size: int, seed: int = 1) -> None:
    """As the newer exports are: shards of conversations, deflated; ``size`` counts their inflated bytes."""
    generator = ExportGenerator(seed)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for number in range(-(-size // SHARD_BYTES)):
            info = zipfile.ZipInfo(f"conversations-{number:03d}.json", (2026, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w") as member:
                for piece in pieces(min(SHARD_BYTES, size - number * SHARD_BYTES), generator):
                    member.write(piece)


def parse_size(text: str) -> int:
    """``50M`` or ``1G`` in bytes, in powers of 1000."""
    units = {"K": 1000, "M": 1000**2, "G": 1000**3}
    return int(float(text[:-1]) * units[text[-1].upper()]) if text[-1].upper() in units else int(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write a synthetic ChatGPT export.")
    parser.add_argument("path", type=Path, help="ends in .json or .zip")
    parser.add_argument("--size", default="50M")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    write = write_zip if arguments.path.suffix == ".zip" else write_json
    write(arguments.path, parse_size(arguments.size), arguments.seed)
    print(f"{arguments.path}: {arguments.path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
