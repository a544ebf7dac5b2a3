"""The documents about the tools: the reference is the schemas, and the guides name only what exists."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mempersist.errors import Code
from mempersist.mcp import schema
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import find
from mempersist_ops import tool_reference
from tests.rigs import writes
from tests.rigs.mcp import client

DOCS = Path(__file__).parent.parent / "docs"
GUIDES = [DOCS / "agents.md", DOCS / "roleplay-workflow.md"]
VALUES = {"ambiguous", "failed", "required_budget_exceeded"}
"""States that answers have."""
EXAMPLES = {"canon", "state", "current_scene"}
"""Titles and fields of the example's own story."""
each_guide = pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name)


def names_of(value: Any) -> Iterator[str]:
    """Every property in a schema, at any depth."""
    if isinstance(value, Mapping):
        for name, inner in value.get("properties", {}).items():
            yield name
            yield from names_of(inner)
        for keyword in ("items", "additionalProperties"):
            yield from names_of(value.get(keyword))


KNOWN = {
    *(tool.name for tool in TOOLS),
    *(name for tool in TOOLS for name in (*names_of(tool.input_schema), *names_of(tool.output_schema))),
    *(code.value for code in Code),
    *("suggested_max_items", "content", "compact"),
    *VALUES,
    *EXAMPLES,
}


def test_the_reference_is_what_the_schemas_say() -> None:
    written = (DOCS / "mcp.md").read_text(encoding="utf-8")
    assert written == tool_reference.text(), "run `make docs`"


def test_the_reference_has_every_tool_and_every_argument() -> None:
    _, *parts = re.split(r"^## (\w+)\n", tool_reference.text(), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert list(sections) == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        for name in tool.input_schema["properties"]:
            assert f"| `{name}` |" in sections[tool.name]
        for name in tool.output_schema["properties"]:
            assert re.search(rf"^{name}: ", sections[tool.name], flags=re.MULTILINE)


@each_guide
def test_a_guide_names_only_tools_arguments_fields_and_codes_that_exist(guide: Path) -> None:
    prose = re.sub(r"^ *```.*?^ *```", "", guide.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    named = {re.split(r"[:. ]", code)[0] for code in re.findall(r"`([A-Za-z_]+(?:[:.] ?[^`/<]*)?)`", prose)}
    assert named - KNOWN - {"character", "scene"} == set()
    assert len(named & {tool.name for tool in TOOLS}) >= 6


def test_the_guide_for_agents_names_every_tool_of_memories() -> None:
    text = GUIDES[0].read_text(encoding="utf-8") + GUIDES[1].read_text(encoding="utf-8")
    left_out = {tool.name for tool in TOOLS if f"`{tool.name}`" not in text}
    assert left_out == {"memory_stats", "memory_list_conversations", "memory_import_status", "search", "fetch"}


async def test_the_turn_of_the_role_play_works_as_written() -> None:
    (block,) = re.findall(r"```json\n(.*?)```", GUIDES[1].read_text(encoding="utf-8"), flags=re.DOTALL)
    arguments = json.loads(block)
    tool = find(TOOLS, "memory_build_context")
    assert tool is not None
    assert schema.arguments(tool.input_schema, arguments)

    at = await client()
    ports = at.service.ports
    namespace = arguments["namespace"]
    mara = await writes.store(ports, "I keep the lamp lit.", title="character: Mara", namespace=namespace)
    scene = await writes.store(ports, "The lamp room at night.", title="scene: 014", namespace=namespace)
    pointers = f'current_scene: {scene.conversation_id}\n{{"active_arc": {{"owner": "{mara.conversation_id}"}}}}'
    await writes.store(ports, "Nobody leaves the island.", title="canon", namespace=namespace)
    await writes.store(ports, "earlier", pointers, title="state", namespace=namespace)
    pack = await at.answer("memory_build_context", **arguments)
    texts = [message["text"] for section in pack["sections"] for message in section["messages"]]
    assert texts[:3] == ["Nobody leaves the island.", "earlier", pointers]
    assert {"The lamp room at night.", "I keep the lamp lit."} <= set(texts)
    assert (await at.answer("memory_build_context", **arguments))["pack_id"] == pack["pack_id"]
