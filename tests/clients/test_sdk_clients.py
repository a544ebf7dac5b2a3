"""The Python and TypeScript SDKs, in every era they speak, against the running server."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.clients.conftest import HERE
from tests.rigs.command import Server
from tests.test_mcp_tool_definitions import NAMES

pytestmark = pytest.mark.clients

ERAS = ["auto", "legacy", "2026-07-28"]


@pytest.mark.parametrize("line", ["v1", *ERAS])
def test_a_typescript_client_stores_and_finds_a_memory(server: Server, node: str, line: str) -> None:
    word = f"wombat{line.replace('-', '')}"
    done = subprocess.run(
        [node, HERE / "session.mjs", line, f"{server.url}/mcp", server.token, word],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["tools"] == NAMES
    assert seen["stored"]["structuredContent"]["durable"] is True
    hits = seen["found"]["structuredContent"]["results"]
    assert hits[0]["conversationId"] == seen["stored"]["structuredContent"]["conversation_id"]
    assert word in hits[0]["snippet"]
    assert seen["refused"]["isError"] is True
    assert "limit" in seen["refused"]["content"][0]["text"]


@pytest.mark.parametrize("mode", ERAS)
async def test_the_python_client_stores_reads_and_finds_a_memory(server: Server, mode: str) -> None:
    word = f"numbat{mode.replace('-', '')}"
    headers = {"Authorization": f"Bearer {server.token}"}
    async with httpx2.AsyncClient(headers=headers) as http:
        transport = streamable_http_client(f"{server.url}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
            stored = await call(
                client, "memory_store", title="Python", messages=[{"role": "user", "content": f"a {word}"}]
            )
            read = await call(client, "memory_get_conversation", conversation_id=stored["conversation_id"])
            assert [message["text"] for message in read["messages"]] == [f"a {word}"]
            found = await call(client, "memory_search", query=word)
            assert found["results"][0]["conversationId"] == stored["conversation_id"]
            refused = await client.call_tool("memory_search", {"query": word, "limit": 21})
            assert refused.is_error


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer; the client has checked it against the tool's output schema."""
    result = await client.call_tool(name, arguments)
    assert not result.is_error, result
    assert isinstance(result.structured_content, dict)
    return result.structured_content
