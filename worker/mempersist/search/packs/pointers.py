"""Pointers in the text of messages: a field that names another conversation by its id.

A field such as ``current_scene`` or ``active_arc.owner`` is a line ``field: value`` or a property of a JSON object,
its name in any case. The last mention counts, even where it clears the field or makes no sense.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_ID: Final = re.compile(r"[0-9a-f]{64}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_BULLETS: Final = "-*+> \t"
_MARKUP: Final = "*_` \t\r"
_MOST_OBJECTS: Final = 100
_decoder: Final = json.JSONDecoder()


def mention(text: str, field: str) -> str | None:
    """The value that ``text`` last gives ``field``, as written; empty for JSON's null. None without a mention."""
    wanted = _name(field)
    found = [*_in_lines(text, wanted), *_in_objects(text, wanted)]
    return max(found, key=lambda item: item[0])[1] if found else None


def target(value: str) -> str | None:
    """The conversation id that a mention gives; None for a cleared or invalid one."""
    name = value.strip(_MARKUP + "\"'").lower()
    return name if _ID.fullmatch(name) else None


def _name(written: str) -> str:
    return written.lstrip(_BULLETS).strip(_MARKUP).lower()


def _in_lines(text: str, wanted: str) -> Iterator[tuple[int, str]]:
    place = 0
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if colon and _name(name) == wanted:
            yield place, value
        place += len(line) + 1


def _in_objects(text: str, wanted: str) -> Iterator[tuple[int, str]]:
    """JSON objects anywhere in the text, of which a limited number is tried."""
    place = text.find("{")
    for _ in range(_MOST_OBJECTS):
        if place < 0:
            return
        try:
            value, end = _decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            end = place + 1
        else:
            inside = _property(value, wanted)
            if inside is not None:
                yield place, inside
        place = text.find("{", end)


def _property(value: Any, wanted: str) -> str | None:
    """The property of this name: a dotted one is a path, or a name with dots in it."""
    if not isinstance(value, dict):
        return None
    last: str | None = None
    for name, item in value.items():
        key = _name(str(name))
        if key == wanted:
            last = item if isinstance(item, str) else ""
        elif wanted.startswith(f"{key}."):
            inside = _property(item, wanted[len(key) + 1 :])
            last = last if inside is None else inside
    return last
