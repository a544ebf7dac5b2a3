"""How deep JSON text is nested, told without parsing it.

The parser recurses in C. On CPython too deep a text raises RecursionError; in WebAssembly it overflows the engine's own
stack, and the whole isolate dies. So every text that somebody else made is looked at before it is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final, Literal

from mempersist.limits import MAX_JSON_DEPTH

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_CONTAINER: Final = re.compile(r"\s*[\[{]")
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _STEPS)


def nested_deeper(text: str, limit: int = MAX_JSON_DEPTH) -> bool:
    """Whether the value that ``text`` begins with has more than ``limit`` levels; see :func:`excess`."""
    return excess(text, levels=limit, containers=len(text)) is not None


def excess(text: str, *, start: int = 0, levels: int, containers: int) -> Literal["levels", "containers"] | None:
    """What the value that begins at ``start`` has more of than is allowed; what follows it does not count.

    The text may end anywhere, and need not be JSON at all.

    :param containers: objects and lists in the value, itself included.
    """
    at_most = text.count("[", start) + text.count("{", start)
    if at_most <= min(levels, containers) or not _CONTAINER.match(text, start):
        return None
    brackets = _STRING.sub("", text[start:]).encode("ascii", "ignore").translate(None, _OTHERS)
    end = len(brackets)
    for place, depth in enumerate(accumulate(map(_STEPS.__getitem__, brackets))):
        if depth > levels:
            return "levels"
        if depth <= 0:
            end = place
            break
    opened = brackets.count(b"[", 0, end) + brackets.count(b"{", 0, end)
    return "containers" if opened > containers else None


def loads(text: str, *, strict: bool = True, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """``json.loads`` for text of others. :raises ValueError: for what is no JSON or nested too deep."""
    if nested_deeper(text):
        raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")
    return json.loads(text, strict=strict, parse_constant=parse_constant)
