"""The pieces that tool schemas are made of. Every bound is the constant that enforces it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mempersist import limits
from mempersist.archive.model import JsonObject

UUID_PATTERN: Final = "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
HASH_PATTERN: Final = "^[0-9a-f]{64}$"
ID_PATTERN: Final = "^([0-9a-f]{64}|[0-9a-f-]{36})$"
DOCUMENT_PATTERN: Final = f"{ID_PATTERN[:-1]}(:([0-9]{{1,10}}|[0-9a-f]{{64}}))?$"
PATTERN_IN_WORDS: Final[Mapping[str, str]] = {
    UUID_PATTERN: "a UUID in lower case",
    HASH_PATTERN: "64 lowercase hexadecimal digits",
    ID_PATTERN: "a UUID or 64 hexadecimal digits in lower case",
    DOCUMENT_PATTERN: "an id that search gave",
}

MAX_OFFSET: Final = 2**31 - 1
MAX_TIMESTAMP_CHARS: Final = 64

# ------------------------------------------------------------------ building blocks


def text(description: str, **keywords: Any) -> JsonObject:
    return {"type": "string", "description": description, **keywords}


def integer(description: str, least: int, most: int, default: int | None = None) -> JsonObject:
    schema: JsonObject = {"type": "integer", "description": description, "minimum": least, "maximum": most}
    return schema if default is None else {**schema, "default": default}


def choice(description: str, values: Sequence[str], default: str) -> JsonObject:
    return {"type": "string", "description": description, "enum": list(values), "default": default}


def flag(description: str) -> JsonObject:
    return {"type": "boolean", "description": description, "default": False}


def listing(description: str, items: JsonObject, **keywords: Any) -> JsonObject:
    return {"type": "array", "description": description, "items": items, **keywords}


def arguments(required: Sequence[str] = (), /, **properties: JsonObject) -> JsonObject:
    """A closed object: the input schema of a tool, or an object inside one."""
    schema: JsonObject = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": list(required)} if required else schema


# ------------------------------------------------------------------ arguments of several tools


def conversation_id() -> JsonObject:
    return text("Which conversation.", pattern=ID_PATTERN)


def revision_id(description: str) -> JsonObject:
    return text(description, pattern=HASH_PATTERN)


def namespace(description: str) -> JsonObject:
    return text(description, minLength=1, maxLength=limits.MAX_NAMESPACE_CHARS)


def tags(description: str) -> JsonObject:
    tag = {"type": "string", "minLength": 1, "maxLength": limits.MAX_TAG_CHARS}
    return listing(description, tag, maxItems=limits.MAX_TAGS)


def tag_mode() -> JsonObject:
    return choice("With all of the tags, or any.", ("all", "any"), "all")


def message_format() -> JsonObject:
    return choice(
        "compact: role, times and text only.",
        ("canonical", "compact"),
        "canonical",
    )


def verify() -> JsonObject:
    return flag("Read it back to compare.")


def idempotency_key() -> JsonObject:
    return text(
        "Makes a retry safe.",
        minLength=1,
        maxLength=limits.MAX_IDEMPOTENCY_KEY_CHARS,
    )


def messages(most: int) -> JsonObject:
    message = arguments(
        ("role", "content"),
        role=text("user, assistant, …", minLength=1, maxLength=limits.MAX_ROLE_CHARS),
        content=text("Kept exactly.", maxLength=limits.MAX_MESSAGE_CONTENT_CHARS),
        timestamp=text("ISO 8601.", maxLength=MAX_TIMESTAMP_CHARS),
    )
    return listing("In order.", message, minItems=1, maxItems=most)


# ------------------------------------------------------------------ results


TEXT: Final[JsonObject] = {"type": "string"}
COUNT: Final[JsonObject] = {"type": "integer"}
TRUTH: Final[JsonObject] = {"type": "boolean"}
TEXT_OR_NULL: Final[JsonObject] = {"type": ["string", "null"]}
COUNT_OR_NULL: Final[JsonObject] = {"type": ["integer", "null"]}
TEXTS: Final[JsonObject] = {"type": "array", "items": TEXT}


def result(properties: Mapping[str, JsonObject], optional: Sequence[str] = ()) -> JsonObject:
    """A closed object of a tool's answer: every property is there but those named ``optional``."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def results(items: JsonObject) -> JsonObject:
    return {"type": "array", "items": items}
