"""The OpenAPI document is the API: every route is in it, with the schemas that calls are checked against."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from mempersist.errors import HTTP_STATUS
from mempersist.mcp.registry import TOOLS
from mempersist.web import openapi
from mempersist.web.router import Route
from mempersist.web.routes import ROUTES
from mempersist.web.tools import parameter_of
from tests.rigs.http import door

DOCUMENT = openapi.document(ROUTES, "https://memory.example")
TOOL_ROUTES = [route for route in ROUTES if route.tool is not None]
NO_ROUTE = {"memory_copy_conversations", "search", "fetch"}
"""Copies are made over MCP only; the other two are other forms of memory_search and memory_get_conversation."""
each_tool_route = pytest.mark.parametrize("route", TOOL_ROUTES, ids=lambda route: f"{route.method} {route.pattern}")


def operation(route: Route) -> dict[str, Any]:
    method = "post" if route.method == "*" else route.method.lower()
    found: dict[str, Any] = DOCUMENT["paths"][openapi.template(route.pattern)][method]
    return found


def references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if isinstance(value.get("$ref"), str) else []
        return own + [found for inner in value.values() for found in references(inner)]
    return [found for inner in value for found in references(inner)] if isinstance(value, list) else []


def test_the_document_has_every_route_that_is_no_page_and_no_other() -> None:
    routes = [route for route in ROUTES if route.pattern != "/mcp/" and not route.page]
    assert sum(map(len, DOCUMENT["paths"].values())) == len(routes)
    names = [operation(route)["operationId"] for route in routes]
    assert len(set(names)) == len(names)


def test_every_tool_has_a_route() -> None:
    assert {tool.name for tool in TOOLS} - {route.tool.name for route in TOOL_ROUTES if route.tool} == NO_ROUTE


@each_tool_route
def test_what_a_route_takes_is_what_its_tool_takes(route: Route) -> None:
    assert route.tool is not None
    described = operation(route)
    taken: dict[str, Any] = {}
    required: set[str] = set()
    for parameter in described.get("parameters", ()):
        names = {parameter_of(name): name for name in route.tool.input_schema["properties"]}
        name = route.path_argument if parameter["in"] == "path" else names[parameter["name"]]
        assert isinstance(name, str)
        taken[name] = parameter["schema"]
        required |= {name} if parameter["required"] else set()
    if "requestBody" in described:
        body = described["requestBody"]["content"]["application/json"]["schema"]
        assert body["additionalProperties"] is False
        taken |= body["properties"]
        required |= set(body["required"])
    assert taken == route.tool.input_schema["properties"]
    assert required == set(route.tool.input_schema.get("required", ()))


@each_tool_route
def test_what_a_route_answers_is_what_its_tool_answers(route: Route) -> None:
    assert route.tool is not None
    schema = operation(route)["responses"][str(route.status)]["content"]["application/json"]["schema"]
    name = schema["$ref"].removeprefix("#/components/schemas/")
    assert DOCUMENT["components"]["schemas"][name] == route.tool.output_schema
    assert (operation(route)["summary"], operation(route)["description"]) == (
        route.tool.title,
        route.tool.description,
    )


def test_every_status_of_an_error_is_listed_with_its_codes() -> None:
    responses = DOCUMENT["components"]["responses"]
    for code, status in HTTP_STATUS.items():
        assert code.value in responses[str(status)]["description"]
    for route in TOOL_ROUTES:
        assert {"400", "401", "403", "404", "409", "413", "500", "503"} <= set(operation(route)["responses"])


def test_references_lead_somewhere() -> None:
    for reference in references(DOCUMENT):
        value = DOCUMENT
        for name in reference.removeprefix("#/").split("/"):
            value = value[name]


def test_schemas_are_valid_json_schema() -> None:
    for schema in DOCUMENT["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)


def test_what_needs_a_token_says_so() -> None:
    for route in ROUTES:
        if route.pattern != "/mcp/" and not route.page:
            public = operation(route).get("security") == []
            assert public is not route.pattern.startswith(("/api/", "/mcp")), route.pattern


async def test_anybody_gets_the_document() -> None:
    async with door(token=None) as at:
        answer = await at.client.get("/openapi.json")
    assert answer.status_code == 200
    served = answer.json()
    assert served.pop("servers") != []
    assert served == {name: value for name, value in DOCUMENT.items() if name != "servers"}
