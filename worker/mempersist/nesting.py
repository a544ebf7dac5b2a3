"""How deep JSON text is nested, told without parsing it.

The parser recurses in C. On CPython too deep a text raises RecursionError; in WebAssembly it overflows the engine's own
stack, and the whole isolate dies. So every text that somebody else made is looked at before it is parsed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import accumulate
from typing import Any, Final

from mempersist.limits import MAX_JSON_DEPTH

_STRING: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)
_CONTAINER: Final = re.compile(r"\s*[\[{]")
_STEPS: Final = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_OTHERS: Final = bytes(byte for byte in range(256) if byte not in _STEPS)


def nested_deeper(text: str, limit: int = MAX_JSON_DEPTH, start: int = 0) -> bool:
    """Whether the value that begins at ``start`` has more than ``limit`` levels; what follows it does not count.

    The text may end anywhere, and need not be JSON at all.
    """
    if text.count("[", start) + text.count("{", start) <= limit or not _CONTAINER.match(text, start):
        return False
    brackets = _STRING.sub("", text[start:]).encode("ascii", "ignore").translate(None, _OTHERS)
    for depth in accumulate(map(_STEPS.__getitem__, brackets)):
        if depth > limit:
            return True
        if depth <= 0:
            return False
    return False


def loads(text: str, *, strict: bool = True, parse_constant: Callable[[str], Any] | None = None) -> Any:
    """``json.loads`` for text of others. :raises ValueError: for what is no JSON or nested too deep."""
    if nested_deeper(text):
        raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels")
    return json.loads(text, strict=strict, parse_constant=parse_constant)
