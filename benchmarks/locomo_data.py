"""LoCoMo's file, as far as retrieval needs it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COUNTED_CATEGORIES = {1, 2, 3, 4}
_TURN_NAME = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")


@dataclass(frozen=True, slots=True)
class Turn:
    """``text`` begins with the speaker's name; ``role`` makes the two speakers the two sides of a chat."""

    name: str
    session: int
    date: str
    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    evidence: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Dialogue:
    name: str
    turns: tuple[Turn, ...]
    questions: tuple[Question, ...]

    def split(self, unit: Callable[[Turn], str]) -> dict[str, list[Turn]]:
        """The turns by what ``unit`` says of each, in order."""
        parts: dict[str, list[Turn]] = {}
        for turn in self.turns:
            parts.setdefault(unit(turn), []).append(turn)
        return parts


def dialogues(path: Path) -> list[Dialogue]:
    """The dialogues in ``path``, with the questions that have a turn as evidence."""
    return [_dialogue(sample) for sample in json.loads(path.read_bytes())]


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    turns = tuple(_turns(sample["conversation"]))
    by_name = {turn.name: turn for turn in turns}
    questions = []
    for entry in sample["qa"]:
        names = dict.fromkeys(name for line in entry.get("evidence", ()) for name in _TURN_NAME.findall(line))
        evidence = tuple(by_name[name] for name in names if name in by_name)
        if entry["category"] in _COUNTED_CATEGORIES and evidence:
            questions.append(Question(entry["question"], evidence))
    return Dialogue(sample["sample_id"], turns, tuple(questions))


def _turns(conversation: dict[str, Any]) -> Iterator[Turn]:
    sessions = {int(found[1]): key for key in conversation if (found := _SESSION.fullmatch(key))}
    for number, key in sorted(sessions.items()):
        for entry in conversation[key]:
            role = "user" if entry["speaker"] == conversation["speaker_a"] else "assistant"
            text = f"{entry['speaker']}: {entry['text']}"
            yield Turn(entry["dia_id"], number, conversation[f"{key}_date_time"], role, text)
