"""Tool arguments checked against the plain subset of JSON Schema that the tools' schemas are written in.

Beyond JSON Schema, one rule for all tools: an optional ``null`` is an absent argument, at every depth; a whole number
or a boolean may come as text where it is exact (``"12"``, ``"true"``; not ``"12px"``, ``"1.0"``, ``"TRUE"``); a
``default`` in the schema fills in for an absent argument. Nothing is clamped, truncated or dropped.

Keywords: ``type`` (one name), ``properties``, ``required``, ``additionalProperties: false``, ``enum``, ``minimum``,
``maximum``, ``minLength``, ``maxLength``, ``pattern`` (anchored at both ends), ``items``, ``minItems``, ``maxItems``,
``uniqueItems``, ``default``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from mempersist.archive.model import JsonObject
from mempersist.errors import validation
from mempersist.mcp.fields import PATTERN_IN_WORDS
from mempersist.text import printable

Schema = Mapping[str, Any]

_WHOLE_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
_BOOLEANS: Final = {"true": True, "false": False}
_MAX_EXACT_FLOAT: Final = 2**53
_MAX_SHOWN_CHARS: Final = 39


def arguments(schema: Schema, value: Any) -> JsonObject:
    """The arguments of a call, checked, with exact texts turned into what they stand for and defaults filled in.

    :raises MempersistError: VALIDATION, naming the argument's path, its bound and the way out.
    """
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise validation("arguments", f"must be an object, not {_shown(value)}")
    return _object(schema, value, "")


def _check(schema: Schema, value: Any, path: str) -> Any:
    return _CHECKS[schema["type"]](schema, value, path)


def _object(schema: Schema, value: Any, path: str) -> JsonObject:
    if not isinstance(value, dict):
        raise validation(path, f"must be an object, not {_shown(value)}")
    properties: Mapping[str, Schema] = schema.get("properties", {})
    required = schema.get("required", ())
    if schema.get("additionalProperties") is False:
        for name in value:
            if name not in properties:
                known = ", ".join(properties) or "none"
                raise validation(_join(path, _clipped(name)), f"is not an argument here; these are: {known}")
    checked: JsonObject = {}
    for name, item_schema in properties.items():
        item = value.get(name)
        if item is not None:
            checked[name] = _check(item_schema, item, _join(path, name))
        elif name in required:
            raise validation(_join(path, name), "is required; null counts as absent")
        elif "default" in item_schema:
            checked[name] = item_schema["default"]
    return checked


def _array(schema: Schema, value: Any, path: str) -> list[Any]:
    if not isinstance(value, list):
        raise validation(path, f"must be a list, not {_shown(value)}")
    least, most = schema.get("minItems", 0), schema.get("maxItems")
    if len(value) < least:
        raise validation(path, f"has {len(value)} items; at least {least} are needed")
    if most is not None and len(value) > most:
        raise validation(path, f"has {len(value)} items; at most {most} are allowed, use several calls for more")
    checked = [_item(schema["items"], item, f"{path}[{index}]") for index, item in enumerate(value)]
    if schema.get("uniqueItems"):
        _unique(checked, path)
    return checked


def _item(schema: Schema, value: Any, path: str) -> Any:
    if value is None:
        raise validation(path, "is null; leave the item out instead")
    return _check(schema, value, path)


def _unique(items: list[Any], path: str) -> None:
    seen: dict[str, int] = {}
    for index, item in enumerate(items):
        first = seen.setdefault(json.dumps(item, sort_keys=True), index)
        if first != index:
            raise validation(f"{path}[{index}]", f"repeats {path}[{first}]; name each only once")


def _string(schema: Schema, value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise validation(path, f"must be text, not {_shown(value)}")
    least, most = schema.get("minLength", 0), schema.get("maxLength")
    if len(value) < least:
        raise validation(path, f"has {len(value)} characters; at least {least} are needed")
    if most is not None and len(value) > most:
        raise validation(path, f"has {len(value)} characters; at most {most} are allowed, shorten or split it")
    _among(schema, value, path)
    pattern = schema.get("pattern")
    if pattern is not None and not re.fullmatch(pattern[1:-1], value):
        raise validation(
            path, f"must be {PATTERN_IN_WORDS.get(pattern, 'of the form ' + pattern)}, not {_shown(value)}"
        )
    return value


def _integer(schema: Schema, value: Any, path: str) -> int:
    number = _whole(value)
    if number is None:
        raise validation(path, f"must be a whole number, not {_shown(value)}")
    least, most = schema.get("minimum"), schema.get("maximum")
    if (least is not None and number < least) or (most is not None and number > most):
        raise validation(path, f"must be {_range(least, most)}, not {_shown(number)}")
    _among(schema, number, path)
    return number


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) <= _MAX_EXACT_FLOAT:
        return int(value)
    if isinstance(value, str) and _WHOLE_NUMBER.fullmatch(value):
        return int(value)
    return None


def _range(least: int | None, most: int | None) -> str:
    if least is None or most is None:
        return f"at least {least}" if most is None else f"at most {most}"
    return f"from {least} to {most}"


def _boolean(_: Schema, value: Any, path: str) -> bool:
    truth = _BOOLEANS.get(value) if isinstance(value, str) else value
    if not isinstance(truth, bool):
        raise validation(path, f"must be true or false, not {_shown(value)}")
    return truth


def _among(schema: Schema, value: Any, path: str) -> None:
    allowed = schema.get("enum")
    if allowed is not None and value not in allowed:
        raise validation(path, f"must be one of {', '.join(map(str, allowed))}; it is {_shown(value)}")


_CHECKS: Final[Mapping[str, Callable[[Schema, Any, str], Any]]] = {
    "object": _object,
    "array": _array,
    "string": _string,
    "integer": _integer,
    "boolean": _boolean,
}


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _clipped(name: str) -> str:
    return printable(name)[:_MAX_SHOWN_CHARS] or "(empty name)"


def _shown(value: Any) -> str:
    """A value in a few words: short scalars as they are, everything else by what it is."""
    if isinstance(value, str):
        return f"'{printable(value)}'" if len(value) <= _MAX_SHOWN_CHARS else f"text of {len(value)} characters"
    if isinstance(value, bool | float):
        return json.dumps(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**_MAX_SHOWN_CHARS else "a very large number"
    if value is None:
        return "null"
    return "a list" if isinstance(value, list) else "an object"
