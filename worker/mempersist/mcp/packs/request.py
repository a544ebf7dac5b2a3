"""What a caller of ``memory_build_context`` asks for: its schema, and its arguments as the search has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from mempersist import limits, names
from mempersist.archive.model import JsonObject
from mempersist.catalog.titles import TitleQuery
from mempersist.errors import validation
from mempersist.mcp import fields
from mempersist.search.packs.model import Extent, Follow, Required, Retrieve

MAX_TASK_CHARS: Final = 1000
MAX_REQUIRED: Final = 20
MAX_RETRIEVE: Final = 8
MAX_FOLLOW: Final = 10
MAX_FOLLOWED: Final = 20
FOLLOW_LEVELS: Final = 3
MAX_TAIL: Final = 100
DEFAULT_TAIL: Final = 20
MAX_FIELD_CHARS: Final = 100
MAX_PRIORITY: Final = 100
DEFAULT_CONTEXT: Final = 1


def required_of(call: JsonObject) -> list[Required]:
    """:raises MempersistError: VALIDATION for a selector that is none, or more than 20 pointers in all."""
    found = [_required(item, call, f"required[{index}]") for index, item in enumerate(call["required"])]
    pointers = sum(_count(item.follow) for item in found)
    if pointers > MAX_FOLLOWED:
        raise validation("required", f"names {pointers} pointers to follow; at most {MAX_FOLLOWED} are allowed in all")
    return found


def _count(follow: Sequence[Follow]) -> int:
    return sum(1 + _count(item.follow) for item in follow)


def _required(item: JsonObject, call: JsonObject, path: str) -> Required:
    selector = item["selector"]
    by_id = selector.get("conversation_id")
    if (by_id is None) == (selector.get("title") is None):
        raise validation(f"{path}.selector", "needs exactly one of conversation_id and title")
    if by_id is not None and (selector.get("namespace") is not None or selector.get("tags")):
        raise validation(f"{path}.selector", "namespace and tags narrow a title; an id needs none")
    chosen: str | TitleQuery = by_id or TitleQuery(
        selector["title"],
        namespace_of(selector, call, f"{path}.selector"),
        names.tags(selector.get("tags") or (), f"{path}.selector.tags"),
        selector["tag_mode"],
    )
    return Required(chosen, item["priority"], _extent(item), _follow(item, path))


def _follow(item: JsonObject, path: str) -> tuple[Follow, ...]:
    found = []
    for index, given in enumerate(item.get("follow") or ()):
        place = f"{path}.follow[{index}]"
        if not given["field"].strip() or ":" in given["field"]:
            raise validation(f"{place}.field", "must name a field, without a colon")
        inner = _follow(given, place)
        found.append(Follow(given["field"], given["required"], given["priority"], _extent(given), inner))
    return tuple(found)


def _extent(item: JsonObject) -> Extent:
    return Extent(item["mode"], item["tail_messages"], item["branch"])


def retrieve_of(call: JsonObject) -> list[Retrieve]:
    return [
        Retrieve(
            item["query"],
            namespace_of(item, call, f"retrieve[{index}]"),
            names.tags(item.get("tags") or (), f"retrieve[{index}].tags"),
            item["tag_mode"],
            item["limit"],
            item["context_before"],
            item["context_after"],
            item["priority"],
        )
        for index, item in enumerate(call.get("retrieve") or ())
    ]


def namespace_of(item: JsonObject, call: JsonObject, path: str) -> str | None:
    """The namespace of a part of the request, which the whole one's bounds. :raises MempersistError: VALIDATION"""
    whole = None if call.get("namespace") is None else names.namespace(call["namespace"])
    if item.get("namespace") is None:
        return whole
    own = names.namespace(item["namespace"], f"{path}.namespace")
    if whole is not None and own != whole:
        raise validation(f"{path}.namespace", "is another one than the pack's own namespace; leave one of them out")
    return own


# ------------------------------------------------------------------ schema


def _switch(description: str) -> JsonObject:
    return {**fields.flag(description), "default": True}


def _common() -> dict[str, Any]:
    return {
        "mode": fields.choice("All messages, or the last.", ("full", "tail"), "full"),
        "tail_messages": fields.integer("How many.", 1, MAX_TAIL, DEFAULT_TAIL),
        "branch": fields.choice("As elsewhere.", ("active", "all"), "active"),
        "priority": _priority(),
    }


def _priority() -> JsonObject:
    return fields.integer("Higher first.", -MAX_PRIORITY, MAX_PRIORITY, MAX_PRIORITY)


def _follow_schema(levels: int) -> JsonObject:
    """Pointers, whose inner levels say nothing that the outer one has not said."""
    inner = {"follow": _undescribed(_follow_schema(levels - 1))} if levels > 1 else {}
    pointer = fields.arguments(
        ("field",),
        field=fields.text("Name or dotted path.", minLength=1, maxLength=MAX_FIELD_CHARS),
        required=_switch("Fail without it."),
        **_common(),
        **inner,
    )
    return fields.listing("Pointers from there; 3 levels.", pointer, maxItems=MAX_FOLLOW)


def _undescribed(schema: JsonObject) -> JsonObject:
    bare = {name: value for name, value in schema.items() if name != "description"}
    if "items" in bare:
        bare["items"] = _undescribed(bare["items"])
    if "properties" in bare:
        bare["properties"] = {name: _undescribed(inner) for name, inner in bare["properties"].items()}
    return bare


def _described(description: str, schema: JsonObject) -> JsonObject:
    return {**schema, "description": description}


_SELECTOR: Final = fields.arguments(
    conversation_id=fields.conversation_id(),
    title=fields.text("Or its exact title.", minLength=1, maxLength=limits.MAX_TITLE_CHARS),
    namespace=fields.namespace("Narrows a title."),
    tags=fields.tags("Narrow a title."),
    tag_mode=fields.tag_mode(),
)
_RETRIEVE: Final = fields.arguments(
    ("query",),
    query=fields.text("What to look for.", minLength=1, maxLength=limits.MAX_SEARCH_QUERY_CHARS),
    namespace=fields.namespace("Only this one."),
    tags=fields.tags("Only with these."),
    tag_mode=fields.tag_mode(),
    limit=fields.integer("Most hits.", 1, limits.MAX_SEARCH_RESULTS, limits.DEFAULT_SEARCH_RESULTS),
    context_before=fields.integer("Messages before.", 0, limits.MAX_CONTEXT_MESSAGES, DEFAULT_CONTEXT),
    context_after=fields.integer("Messages after.", 0, limits.MAX_CONTEXT_MESSAGES, DEFAULT_CONTEXT),
    priority=_priority(),
)
_REQUIRED: Final = fields.arguments(
    ("selector",),
    selector=_described("Which conversation.", _SELECTOR),
    **_common(),
    follow=_follow_schema(FOLLOW_LEVELS),
)
_BUDGET: Final = fields.arguments(
    ("max_estimated_tokens", "max_serialized_bytes"),
    max_estimated_tokens=fields.integer("Of all texts.", 1, fields.MAX_OFFSET),
    max_serialized_bytes=fields.integer("Of the answer.", 1, limits.MAX_BATCH_BYTES),
)
_OPTIONS: Final = fields.arguments(
    deduplicate=_switch("Each message once."),
    include_provenance=_switch("Why each is there."),
    include_compiled_text=_switch("All as text too."),
)
SCHEMA: Final[JsonObject] = fields.arguments(
    ("task", "required", "budget"),
    task=fields.text("A label; not searched.", minLength=1, maxLength=MAX_TASK_CHARS),
    namespace=fields.namespace("Bounds the whole pack."),
    required=fields.listing("What belongs into it.", _REQUIRED, minItems=1, maxItems=MAX_REQUIRED),
    retrieve=fields.listing("Searches for more.", _RETRIEVE, maxItems=MAX_RETRIEVE),
    budget=_described("Upper bounds.", _BUDGET),
    options=_described("Switches.", _OPTIONS),
)
