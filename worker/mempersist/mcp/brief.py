"""Schemas as ``tools/list`` shows them: the same ones, less what a client can do without.

All definitions go into a model's context with every conversation, so that each byte is paid for again and again. The
full schemas are what calls are checked against, what answers conform to and what the HTTP API publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from mempersist.archive.model import JsonObject

Schema = Mapping[str, Any]

SELF_EVIDENT: Final = frozenset(
    {"after", "before", "budget", "content", "conversation_id", "limit", "offset", "options", "query", "tag_mode"}
)
FAMILIAR: Final = frozenset({"branch", "namespace", "query", "revision_id", "tags"})
"""Arguments that mean the same in every tool."""
_OBVIOUS: Final = (("additionalProperties", False), ("minLength", 1), ("default", False))


def arguments(schema: Schema) -> JsonObject:
    """An input schema with the bounds that are enforced. Left out are what goes without saying (that a text is not
    empty, that a switch is off), descriptions that add little to a name, above all inside of other arguments, and,
    inside of those, all but the type of an argument that is the same there as around them.
    """
    return {**_inside(schema, {}), "additionalProperties": False}


def _inside(schema: Schema, around: Mapping[str, Schema]) -> JsonObject:
    """:param around: the arguments that enclosing objects have."""
    shown = {keyword: value for keyword, value in schema.items() if (keyword, value) not in _OBVIOUS}
    properties = schema.get("properties", {})
    if properties:
        shown["properties"] = {name: _argument(name, inner, around, properties) for name, inner in properties.items()}
    if "items" in schema:
        shown["items"] = _inside(schema["items"], around)
    return shown


def _argument(name: str, schema: Schema, around: Mapping[str, Schema], beside: Mapping[str, Schema]) -> JsonObject:
    if name in around and _form(schema) == _form(around[name]):
        return _outline(schema)
    shown = _inside(schema, {**around, **beside})
    plain = name in FAMILIAR or schema["type"] in ("boolean", "integer") or "enum" in schema
    if name in SELF_EVIDENT or (around and plain):
        shown.pop("description", None)
    return shown


def _form(schema: Schema) -> JsonObject:
    """What makes two arguments of one name the same: all of a scalar but its words, that a list has objects."""
    if schema["type"] == "array" and schema["items"]["type"] == "object":
        return _outline(schema)
    return {keyword: value for keyword, value in schema.items() if keyword != "description"}


def answer(schema: Schema) -> JsonObject:
    """An output schema: the lists and objects that an answer has. What is inside of objects, and the single values
    beside them, an answer shows by itself.
    """
    properties = schema.get("properties", {})
    shown = {name: _outline(inner) for name, inner in properties.items() if inner["type"] in ("array", "object")}
    return {"type": "object", "properties": shown}


def _outline(schema: Schema) -> JsonObject:
    shown = {"type": schema["type"]}
    return {**shown, "items": _outline(schema["items"])} if "items" in schema else shown
