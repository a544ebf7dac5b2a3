"""Reading values that may be of any type: what is not as expected counts as absent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mempersist import nesting

Object = Mapping[str, Any]
NOTHING: Object = {}


def text_of(value: Object, key: str) -> str:
    """The string at ``key``, or "" for anything else."""
    found = value.get(key)
    return found if isinstance(found, str) else ""


def object_of(value: Object, key: str) -> Object:
    found = value.get(key)
    return found if isinstance(found, dict) else NOTHING


def objects_of(value: Object, key: str) -> list[Object]:
    """The objects in the list at ``key``."""
    found = value.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def lines(*texts: str) -> str:
    """The texts that are not blank, each on lines of its own."""
    return "\n".join(text for text in texts if text and not text.isspace())


def object_in(text: Any) -> Object | None:
    """The object that ``text`` is, or that it is the JSON of."""
    if isinstance(text, dict):
        return text
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        found = nesting.loads(text, strict=False)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
