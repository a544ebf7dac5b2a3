"""What clients are told about the tools: plain schemas, honest hints, the same for everybody, small enough."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp_types.methods import validate_server_result

from mempersist import limits
from mempersist.accounts.principal import READ, WRITE
from mempersist.mcp import budget
from mempersist.mcp.fields import PATTERN_IN_WORDS
from mempersist.mcp.protocol import INSTRUCTIONS, SERVER_INFO
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool, definition
from tests.rigs.mcp import LEGACY, MODERN, client

NAMES = [
    "memory_search",
    "memory_get_context",
    "memory_get_conversation",
    "memory_get_conversations",
    "memory_list_conversations",
    "memory_list_revisions",
    "memory_resolve_conversations",
    "memory_build_context",
    "memory_list_namespaces",
    "memory_stats",
    "memory_store",
    "memory_append",
    "memory_replace",
    "memory_restore_revision",
    "memory_copy_conversations",
    "memory_update_tags",
    "memory_delete_conversations",
    "memory_empty_namespace",
    "memory_import_status",
    "memory_get_capabilities",
    "search",
    "fetch",
]
WRITES = set(NAMES[NAMES.index("memory_store") : NAMES.index("memory_import_status")])
DESTRUCTIVE = WRITES - {"memory_store", "memory_append", "memory_copy_conversations"}
COMBINATORS = {"oneOf", "anyOf", "allOf", "not", "if", "then", "else", "$ref", "$dynamicRef", "$defs", "const"}
each_tool = pytest.mark.parametrize("tool", TOOLS, ids=[tool.name for tool in TOOLS])


def positions(schema: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every place of a schema where a schema stands."""
    yield path, schema
    if not isinstance(schema, dict):
        return
    for name, inner in schema.get("properties", {}).items():
        yield from positions(inner, f"{path}.{name}")
    for keyword in ("items", "additionalProperties"):
        if keyword in schema and schema[keyword] is not False:
            yield from positions(schema[keyword], f"{path}[{keyword}]")


def test_the_tools_and_their_order() -> None:
    assert [tool.name for tool in TOOLS] == NAMES


def test_all_definitions_together_take_less_than_six_thousand_tokens() -> None:
    assert budget.size([definition(tool) for tool in TOOLS]) / 4 < 6_000


@each_tool
def test_a_tools_schemas_are_valid_json_schema(tool: Tool) -> None:
    for schema in (tool.input_schema, tool.output_schema):
        jsonschema.Draft202012Validator.check_schema(schema)


@each_tool
def test_arguments_are_plain_typed_and_described(tool: Tool) -> None:
    assert tool.input_schema["type"] == "object"
    for path, schema in positions(tool.input_schema):
        assert isinstance(schema, dict), path
        assert not COMBINATORS & set(schema), path
        assert isinstance(schema["type"], str), path
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False, path
            assert set(schema.get("required", ())) <= set(schema["properties"]), path
        if schema["type"] == "array":
            assert isinstance(schema["items"]["type"], str), path
        is_inner_level = ".follow[items].follow" in path  # says nothing that the outer level has not said
        if "[items]" not in path.rpartition(".")[2] and path and not is_inner_level:
            assert schema["description"], path
        if "pattern" in schema:
            assert schema["pattern"] in PATTERN_IN_WORDS, path
            assert re.fullmatch(r"\^.*\$", schema["pattern"]), path
        if "default" in schema:
            jsonschema.validate(schema["default"], schema)


@each_tool
def test_every_argument_is_bounded(tool: Tool) -> None:
    for path, schema in positions(tool.input_schema):
        if schema["type"] == "string":
            assert {"maxLength", "pattern", "enum"} & set(schema), path
        if schema["type"] == "integer":
            assert {"minimum", "maximum"} <= set(schema), path
        if schema["type"] == "array":
            assert "maxItems" in schema, path


@each_tool
def test_answers_are_closed_objects_without_combinators(tool: Tool) -> None:
    assert tool.output_schema["type"] == "object"
    for path, schema in positions(tool.output_schema):
        assert isinstance(schema, dict), path
        assert not COMBINATORS & set(schema), path
        assert "type" in schema, path
        if "properties" in schema:
            assert schema["additionalProperties"] is False, path


@each_tool
def test_every_hint_is_given(tool: Tool) -> None:
    writes = tool.name in WRITES
    assert definition(tool)["annotations"] == {
        "readOnlyHint": not writes,
        "destructiveHint": tool.name in DESTRUCTIVE,
        "idempotentHint": tool.name not in {"memory_store", "memory_empty_namespace"},
        "openWorldHint": False,
    }
    assert tool.scope == (WRITE if writes else READ)
    schemes = definition(tool).get("_meta", {}).get("securitySchemes")
    assert schemes == ([{"type": "oauth2", "scopes": [WRITE]}] if writes else None)


@each_tool
def test_listed_schemas_take_what_the_full_ones_take(tool: Tool) -> None:
    listed, full = definition(tool)["inputSchema"], tool.input_schema
    assert set(listed["properties"]) == set(full["properties"])
    assert listed.get("required") == full.get("required")
    assert listed["additionalProperties"] is False
    told = dict(positions(listed))
    for path, schema in positions(full):
        if path not in told:
            assert ".follow[items].follow" in path
            continue
        for keyword, value in told[path].items():
            assert keyword in {"properties", "items"} or schema[keyword] == value, path


@each_tool
def test_listed_answers_are_typed_and_their_lists_have_items(tool: Tool) -> None:
    listed = definition(tool)["outputSchema"]
    jsonschema.Draft202012Validator.check_schema(listed)
    assert listed["type"] == "object"
    for path, schema in positions(listed):
        assert schema["type"] != "array" or schema["items"]["type"], path
        assert "properties" not in schema or not path, path


@each_tool
def test_names_and_texts_fit_every_client(tool: Tool) -> None:
    assert re.fullmatch(r"[a-z0-9_]{1,64}", tool.name)
    assert len(tool.name) + len(str(SERVER_INFO["name"])) <= 60
    assert 0 < len(tool.title) <= 60
    assert 0 < len(tool.description) <= 1024


@pytest.mark.parametrize("text", [INSTRUCTIONS, *(tool.description for tool in TOOLS)])
def test_texts_describe_and_never_instruct(text: str) -> None:
    assert not re.search(r"\b(always|never|must|should|do not|don't|please|make sure|important)\b", text, re.IGNORECASE)


def test_bounds_are_the_limits_that_are_enforced() -> None:
    arguments = {tool.name: tool.input_schema["properties"] for tool in TOOLS}
    assert arguments["memory_search"]["query"]["maxLength"] == limits.MAX_SEARCH_QUERY_CHARS == 2000
    assert arguments["memory_search"]["limit"]["maximum"] == limits.MAX_SEARCH_RESULTS == 20
    assert arguments["memory_search"]["limit"]["default"] == limits.DEFAULT_SEARCH_RESULTS == 8
    assert arguments["memory_get_context"]["before"]["maximum"] == limits.MAX_CONTEXT_MESSAGES == 10
    assert arguments["memory_get_context"]["after"]["default"] == limits.DEFAULT_CONTEXT_MESSAGES == 2
    assert arguments["memory_get_conversation"]["limit"]["maximum"] == limits.MAX_PAGE_MESSAGES == 100
    assert arguments["memory_list_conversations"]["limit"]["maximum"] == limits.MAX_LIST_ITEMS == 100
    assert arguments["memory_list_conversations"]["cursor"]["maxLength"] == limits.MAX_CURSOR_BYTES
    assert arguments["memory_store"]["messages"]["maxItems"] == limits.MAX_STORE_MESSAGES == 1000
    assert arguments["memory_append"]["messages"]["maxItems"] == limits.MAX_APPEND_MESSAGES == 100
    assert arguments["memory_replace"]["messages"]["maxItems"] == limits.MAX_STORE_MESSAGES
    assert arguments["memory_copy_conversations"]["requests"]["maxItems"] == limits.MAX_COPY_REQUESTS == 20
    assert arguments["memory_delete_conversations"]["conversation_ids"]["maxItems"] == 100
    for name in ("memory_store", "memory_append", "memory_replace"):
        message = arguments[name]["messages"]["items"]["properties"]
        assert message["content"]["maxLength"] == limits.MAX_MESSAGE_CONTENT_CHARS
        assert message["role"]["maxLength"] == limits.MAX_ROLE_CHARS
    for tags in (
        arguments["memory_store"]["tags"],
        arguments["memory_append"]["tags"],
        arguments["memory_update_tags"]["add"],
        arguments["memory_update_tags"]["remove"],
        *(
            arguments["memory_copy_conversations"]["requests"]["items"]["properties"]["tags"]["properties"][name]
            for name in ("add", "remove")
        ),
    ):
        assert tags["maxItems"] == limits.MAX_TAGS
        assert tags["items"]["maxLength"] == limits.MAX_TAG_CHARS
    for name in WRITES:
        assert arguments[name]["idempotency_key"]["maxLength"] == limits.MAX_IDEMPOTENCY_KEY_CHARS


@pytest.mark.parametrize("version", [*LEGACY, MODERN])
async def test_lists_conform_to_the_specification_of_each_era(version: str) -> None:
    at = await client()
    if version == MODERN:
        answers = {method: (await at.modern(method))["result"] for method in ("tools/list", "server/discover")}
    else:
        answers = {
            "tools/list": (await at.legacy("tools/list", version=version))["result"],
            "initialize": (await at.legacy("initialize", {"protocolVersion": version}))["result"],
            "ping": (await at.legacy("ping", version=version))["result"],
        }
    for method, result in answers.items():
        validate_server_result(method, version, json.loads(json.dumps(result)))
