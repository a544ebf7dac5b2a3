"""Answers as bytes: how they are written, how large they are, and how much of a list fits."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from mempersist.text import printable

_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def encode(value: Any) -> bytes:
    """Compact JSON in UTF-8; a lone surrogate, which UTF-8 cannot hold, goes out as its JSON escape."""
    return _encoder.encode(value).encode("utf-8", "backslashreplace")


def size(value: Any) -> int:
    """Bytes of ``value`` as :func:`encode` writes it."""
    return len(encode(value))


def clean(value: Any) -> Any:
    """A copy of ``value`` with every text in it printable: no control characters but tab and newlines, no lone
    surrogates. Content may be nested deeper than Python functions can be, so this does not recurse."""
    if isinstance(value, str):
        return printable(value)
    top = [value]
    waiting: list[Any] = [top]
    while waiting:
        container = waiting.pop()
        for key, item in list(container.items() if isinstance(container, dict) else enumerate(container)):
            if isinstance(item, str):
                container[key] = printable(item)
            elif isinstance(item, dict):
                container[key] = {printable(name): inner for name, inner in item.items()}
                waiting.append(container[key])
            elif isinstance(item, list | tuple):
                container[key] = list(item)
                waiting.append(container[key])
    return top[0]


def how_many_fit(items: Iterable[Any], room: int) -> int:
    """How many leading items a JSON list can hold if they and their commas may have ``room`` bytes."""
    used = count = 0
    for item in items:
        used += size(item) + (1 if count else 0)
        if used > room:
            break
        count += 1
    return count
