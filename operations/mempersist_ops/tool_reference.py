"""``docs/mcp.md``: the reference of the tools, written from the schemas that calls are checked against.

``python -m mempersist_ops.tool_reference FILE`` writes it; ``make docs`` does so in this repository.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from mempersist import limits
from mempersist.mcp.eras import VERSIONS
from mempersist.mcp.fields import PATTERN_IN_WORDS
from mempersist.mcp.protocol import SERVER_INFO
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool

Schema = Mapping[str, Any]

_HEAD: Final = f"""# MCP tools

Made by `make docs` from the schemas that calls are checked against; do not edit it by hand.

The endpoint is `/mcp`: stateless Streamable HTTP, server name `{SERVER_INFO["name"]}`, protocol versions
{", ".join(f"`{version}`" for version in VERSIONS)}. How to work with the tools is told in
[agents.md](agents.md), a larger example in [roleplay-workflow.md](roleplay-workflow.md), and the same calls over plain
HTTP in [http-api.md](http-api.md).

- **Arguments**: an optional `null` counts as absent. Whole numbers and booleans may come as text where it is exact.
  Nothing is clamped, cut or dropped: what does not fit is refused, and the refusal names the argument and the bound.
- **Answers** carry `structuredContent` and the same JSON as text, of at most {limits.MAX_TOOL_OUTPUT_BYTES} bytes. A
  field marked *sometimes* is there where it applies; all others always are.
- **Errors** are results with `isError: true` and one text, the JSON `{{"error": {{"code", "message", …}}}}`. What is
  missing, deleted or another account's is one and the same `NOT_FOUND`.
- `tools/list` shows these schemas in brief: a model reads it with every conversation.
"""


def text() -> str:
    """The whole file."""
    listed = "\n".join(f"- [`{tool.name}`](#{tool.name}): {tool.title}" for tool in TOOLS)
    return "\n".join([_HEAD, listed, "", *("\n".join(_tool(tool)) for tool in TOOLS)])


def _tool(tool: Tool) -> Iterator[str]:
    kind = "Reads." if tool.read_only else "Writes; destructive." if tool.destructive else "Writes."
    again = " Repeating a call has no further effect." if tool.idempotent and not tool.read_only else ""
    yield f"## {tool.name}\n"
    yield f"{tool.description}\n"
    yield (
        f"{kind}{again} Scope `{tool.scope}`. A request has at most {tool.max_request_bytes} bytes, an answer"
        f" {tool.max_response_bytes}.\n"
    )
    rows = list(_arguments(tool.input_schema))
    if rows:
        yield "| argument | type and bounds | |\n|---|---|---|"
        yield from rows
        yield ""
    yield "Answer:\n\n```"
    yield from _answer(tool.output_schema)
    yield "```\n"


# ------------------------------------------------------------------ arguments


def _arguments(schema: Schema, path: str = "") -> Iterator[str]:
    required = schema.get("required", ())
    for name, inner in schema["properties"].items():
        place = f"{path}{name}"
        notes = ["required"] if name in required else []
        if "default" in inner:
            notes.append(f"default `{_word(inner['default'])}`")
        told = inner.get("description", "")
        yield f"| `{place}` | {_bounds(inner)} | {' '.join([*_sentence(notes), told]).strip()} |"
        item = inner.get("items", inner)
        if "properties" in item and place.count("follow") < 2:
            yield from _arguments(item, f"{place}[]." if "items" in inner else f"{place}.")


def _sentence(notes: list[str]) -> list[str]:
    return [", ".join(notes).capitalize() + "."] if notes else []


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _bounds(schema: Schema) -> str:
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if schema["type"] == "array":
        least, most = schema.get("minItems", 0), schema["maxItems"]
        unique = ", all different" if schema.get("uniqueItems") else ""
        return f"{least} to {most} of: {_bounds(schema['items'])}{unique}"
    if schema["type"] == "integer":
        return f"{schema['minimum']} to {schema['maximum']}"
    if "pattern" in schema:
        return PATTERN_IN_WORDS[schema["pattern"]]
    if "maxLength" in schema:
        return f"text, {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    return str(schema["type"])


# ------------------------------------------------------------------ answers


def _answer(schema: Schema, indent: str = "") -> Iterator[str]:
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        sometimes = "" if name in required else "  (sometimes)"
        yield f"{indent}{name}: {_type(inner)}{sometimes}"
        item = inner.get("items", inner)
        yield from _answer(item, indent + "  ")
        if isinstance(item.get("additionalProperties"), Mapping):
            yield f"{indent}  (any name): {_type(item['additionalProperties'])}"
            yield from _answer(item["additionalProperties"], indent + "    ")


def _type(schema: Schema) -> str:
    if schema["type"] == "array":
        return f"list of {_type(schema['items'])}"
    names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return " or ".join(names)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(text(), encoding="utf-8")
