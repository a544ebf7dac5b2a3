"""Every bound of every tool, made from its schema: what is at the bound is taken, what is one beyond it is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from mempersist.errors import Code, MempersistError
from mempersist.mcp import fields, schema
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool, definition
from tests.rigs.mcp import Client, client, error_of

EVERY_HOST = True
Schema = Mapping[str, Any]
Path = tuple[str, ...]
UUID = "0123abcd-0123-4abc-8def-0123456789ab"
MATCHING = {
    fields.UUID_PATTERN: [UUID],
    fields.HASH_PATTERN: ["0" * 64, "abcdef0123456789" * 4],
    fields.ID_PATTERN: [UUID, "f" * 64],
    fields.DOCUMENT_PATTERN: [UUID, "f" * 64, f"{UUID}:0", f"{UUID}:{'9' * 10}", f"{UUID}:{'a' * 64}"],
}
NOT_MATCHING = {
    fields.UUID_PATTERN: [UUID[:-1], f"{UUID}0", UUID.upper(), f"{UUID}\n"],
    fields.HASH_PATTERN: ["0" * 63, "0" * 65, "G" * 64, "A" * 64],
    fields.ID_PATTERN: [UUID[:-1], f"{UUID}0", UUID.upper(), "f" * 63, "f" * 65, "f" * 64 + "\n"],
    fields.DOCUMENT_PATTERN: [f"{UUID}:", f"{UUID}:{'9' * 11}", f"{UUID}:{'a' * 63}", f"{UUID}:0:0", f":{UUID}"],
}
HINTS = {  # read-only, destructive, idempotent
    "memory_store": (False, False, False),
    "memory_append": (False, False, True),
    "memory_replace": (False, True, True),
    "memory_restore_revision": (False, True, True),
    "memory_copy_conversations": (False, False, True),
    "memory_update_tags": (False, True, True),
    "memory_delete_conversations": (False, True, True),
    "memory_empty_namespace": (False, True, False),
}
READING = (True, False, True)
OTHER_TYPES: Mapping[str, list[Any]] = {
    "string": [1, [], {}],
    "integer": ["1px", 1.5, "", []],
    "boolean": ["yes", 1],
    "array": ["x", {}],
    "object": ["x", []],
}
FORMED = {"cursor", "timestamp"}
"""Arguments with a form of their own, which no pattern tells."""
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)


@dataclass(frozen=True, slots=True)
class Case:
    """Arguments that differ from the least that a tool takes in one place, which a refusal has to name."""

    arguments: dict[str, Any]
    place: str


def least(of: Schema, number: int = 0) -> Any:
    """The smallest value that a schema takes; ``number`` tells one item of a list from another."""
    match of["type"]:
        case "object":
            return {name: least(of["properties"][name]) for name in of.get("required", ())}
        case "array":
            return [least(of["items"], index) for index in range(of.get("minItems", 0))]
        case "integer":
            return of["minimum"]
        case "boolean":
            return False
    if "enum" in of:
        return of["enum"][0]
    if "pattern" in of:
        return f"{number:064x}" if of["pattern"] == fields.ID_PATTERN else MATCHING[of["pattern"]][0]
    return "x" * max(1, of.get("minLength", 0))


def around(of: Schema, path: Path, value: Any) -> Any:
    """The least of a schema with ``value`` at ``path``, in which ``[]`` is the first item of a list."""
    if not path:
        return value
    if path[0] == "[]":
        return [around(of["items"], path[1:], value), *least(of)[1:]]
    return {**least(of), path[0]: around(of["properties"][path[0]], path[1:], value)}


def places(of: Schema, path: Path = ()) -> Iterator[tuple[Path, Schema]]:
    for name, inner in of.get("properties", {}).items():
        yield (*path, name), inner
        yield from places(inner, (*path, name))
    if "items" in of:
        yield (*path, "[]"), of["items"]
        yield from places(of["items"], (*path, "[]"))


def inside(of: Schema) -> Iterator[Any]:
    """Values at the bounds and one within."""
    if "enum" in of:
        yield from of["enum"]
    elif "pattern" in of:
        yield from MATCHING[of["pattern"]]
    elif of["type"] == "integer":
        low, high = of["minimum"], of["maximum"]
        yield from list[Any]([low, low + 1, high - 1, high, str(high)])
    elif of["type"] == "string":
        yield from ("x" * length for length in (of.get("minLength", 0), of["maxLength"] - 1, of["maxLength"]))
    elif of["type"] == "array":
        for length in {of.get("minItems", 0), of["maxItems"] - 1, of["maxItems"]}:
            yield [least(of["items"], index) for index in range(length)]
    elif of["type"] == "boolean":
        yield from (True, False, "true", "false")


def outside(of: Schema) -> Iterator[Any]:
    """Values one beyond the bounds, and of other types."""
    yield from OTHER_TYPES[of["type"]]
    if "enum" in of:
        yield from ("", "none of them", of["enum"][0].upper())
    elif "pattern" in of:
        yield from NOT_MATCHING[of["pattern"]]
    elif of["type"] == "integer":
        yield from (of["minimum"] - 1, of["maximum"] + 1)
    elif of["type"] == "string":
        yield "x" * (of["maxLength"] + 1)
        if of.get("minLength"):
            yield "x" * (of["minLength"] - 1)
    elif of["type"] == "array":
        yield [least(of["items"], index) for index in range(of["maxItems"] + 1)]
        if of.get("minItems"):
            yield [least(of["items"], index) for index in range(of["minItems"] - 1)]
        if of.get("uniqueItems"):
            yield [least(of["items"], 7)] * 2


def written(path: Path) -> str:
    return ".".join(path).replace(".[]", "[0]")


def taken(tool: Tool) -> Iterator[Case]:
    for path, of in places(tool.input_schema):
        for value in inside(of):
            yield Case(around(tool.input_schema, path, value), written(path))
        if path[-1] != "[]" and not is_required(tool, path):
            yield Case(around(tool.input_schema, path, None), written(path))


def refused(tool: Tool) -> Iterator[Case]:
    for path, of in places(tool.input_schema):
        for value in outside(of):
            yield Case(around(tool.input_schema, path, value), written(path))
        if path[-1] == "[]" or is_required(tool, path):
            yield Case(around(tool.input_schema, path, None), written(path))
    yield Case({**least(tool.input_schema), "surprise": 1}, "surprise")


def is_required(tool: Tool, path: Path) -> bool:
    of: Schema = tool.input_schema
    for name in path[:-1]:
        of = of["items"] if name == "[]" else of["properties"][name]
    return path[-1] in of.get("required", ())


@each_tool
def test_what_is_at_a_bound_is_taken(tool: Tool) -> None:
    for case in [Case(least(tool.input_schema), ""), *taken(tool)]:
        schema.arguments(tool.input_schema, case.arguments)


@each_tool
def test_what_is_beyond_a_bound_is_refused_by_name(tool: Tool) -> None:
    for case in refused(tool):
        with pytest.raises(MempersistError) as caught:
            schema.arguments(tool.input_schema, case.arguments)
        assert caught.value.code is Code.VALIDATION
        assert caught.value.details["field"].startswith(case.place)


@each_tool
async def test_no_call_gets_past_a_bound(tool: Tool) -> None:
    at = await client()
    for case in refused(tool):
        error = await at.refused(tool.name, **case.arguments)
        assert (error["code"], error["field"].startswith(case.place)) == ("VALIDATION", True)
    assert await nothing_is_stored(at)


async def nothing_is_stored(at: Client) -> bool:
    totals = (await at.answer("memory_stats"))["totals"]
    return bool(totals == {"conversations": 0, "messages": 0})


@each_tool
async def test_a_call_at_a_bound_is_refused_for_no_bound(tool: Tool) -> None:
    at = await client()
    for case in taken(tool):
        if case.place.rpartition(".")[2] in FORMED:
            continue
        result = await at.call(tool.name, **sensible(tool.name, case.arguments))
        if result["isError"]:
            assert error_of(result)["code"] in {"NOT_FOUND", "IMPORT_CONFLICT", "AUTHENTICATION"}, case.place


def sensible(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """With what a tool wants beyond its schema."""
    if not any(message["content"] for message in arguments.get("messages", [{"content": "x"}])):
        arguments["messages"].append({"role": "user", "content": "text"})
    if name == "memory_build_context":
        for item in arguments["required"]:
            if not {"conversation_id", "title"} & {key for key, value in item["selector"].items() if value}:
                item["selector"]["title"] = "Title"
    if name == "memory_get_conversations" and not arguments.get("requests"):
        arguments["requests"] = [{"conversation_id": UUID}]
    if name == "memory_update_tags" and not arguments.get("add"):
        arguments["add"] = ["tag"]
    if name == "memory_empty_namespace":
        longest = max(arguments["namespace"], arguments["confirm_namespace"], key=len)
        arguments["namespace"] = arguments["confirm_namespace"] = longest
    return arguments


@each_tool
def test_hints_are_those_of_the_contract(tool: Tool) -> None:
    hints = definition(tool)["annotations"]
    told = (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"])
    assert told == HINTS.get(tool.name, READING)
    assert hints["openWorldHint"] is False


def test_every_write_takes_an_idempotency_key() -> None:
    for tool in TOOLS:
        assert ("idempotency_key" in tool.input_schema["properties"]) is (tool.name in HINTS)
