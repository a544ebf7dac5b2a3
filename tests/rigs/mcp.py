"""A client of the MCP endpoint without a network: requests of either era go straight to the pure function."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.archive.model import OWNER, JsonObject
from mempersist.mcp import fields
from mempersist.mcp.endpoint import McpResponse, handle
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Call, Tool
from mempersist.ports import AccountId, Ports
from mempersist.service import Service, Settings
from tests.rigs.hosts import is_worker, new_world
from tests.rigs.worker.process import TOKEN, running

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
PUBLIC_URL = "https://memory.example"
CURSOR_KEYS = (("first", b"1" * 32),)
CLIENT_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def principal(*scopes: str, account: str = OWNER) -> Principal:
    return Principal(AccountId(account), frozenset(scopes or (READ, WRITE)))


def modern_headers(method: str, name: str | None = None, version: str = MODERN) -> dict[str, str]:
    headers = {"mcp-protocol-version": version, "mcp-method": method}
    return headers if name is None else {**headers, "mcp-name": name}


@dataclass(frozen=True, slots=True)
class Client:
    """Talks to one service as one principal."""

    service: Service
    who: Principal | None = field(default_factory=principal)
    tools: tuple[Tool, ...] = TOOLS

    async def send(self, body: Any, headers: Mapping[str, str] | None = None, method: str = "POST") -> McpResponse:
        """One HTTP request; ``body`` is bytes, or a value to be sent as JSON."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        if is_worker(self.service.ports):
            return await self._over_http(data, headers or {}, method)
        return await handle(method, headers or {}, data, self.who, self.service, tools=self.tools)

    async def _over_http(self, data: bytes, headers: Mapping[str, str], method: str) -> McpResponse:
        assert (self.who, self.tools) == (principal(), TOOLS), "the Worker serves its own tools to its owner"
        given = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json", **headers}
        async with httpx.AsyncClient(base_url=running().url, timeout=60) as connection:
            answer = await connection.request(method, "/mcp", content=data, headers=given)
        return McpResponse(answer.status_code, dict(answer.headers), answer.content)

    async def legacy(self, method: str, params: Any = None, version: str | None = "2025-11-25") -> Any:
        """The whole JSON-RPC answer in an earlier era."""
        headers = {} if version is None else {"mcp-protocol-version": version}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
        return parsed(await self.send(message, headers))

    async def modern(self, method: str, params: Any = None) -> Any:
        """The whole JSON-RPC answer in the stateless era."""
        params = {**(params or {}), "_meta": CLIENT_META}
        headers = modern_headers(method, params.get("name"))
        return parsed(await self.send({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers))

    async def call(self, name: str, **arguments: Any) -> JsonObject:
        """The result of a tool call, whatever it is."""
        answer = await self.legacy("tools/call", {"name": name, "arguments": arguments})
        result: JsonObject = answer["result"]
        return result

    async def answer(self, name: str, **arguments: Any) -> JsonObject:
        """The structured content of a tool call that must succeed."""
        result = await self.call(name, **arguments)
        assert result["isError"] is False, result["content"]
        content: JsonObject = result["structuredContent"]
        return content

    async def refused(self, name: str, **arguments: Any) -> JsonObject:
        """The error of a tool call that must fail."""
        return error_of(await self.call(name, **arguments))


def error_of(result: JsonObject) -> JsonObject:
    """The error in a tool's result: one text, and nothing for a client to hold against the output schema."""
    assert result["isError"] is True
    assert "structuredContent" not in result
    (block,) = result["content"]
    assert block["type"] == "text"
    error: JsonObject = json.loads(block["text"])["error"]
    return error


def parsed(response: McpResponse) -> Any:
    return json.loads(response.body)


async def client(ports: Ports | None = None, who: Principal | None = None, **changes: Any) -> Client:
    """A client of a new service in memory, or of one over ``ports``. ``changes`` go into its settings."""
    if ports is None:
        ports = (await new_world()).ports
    settings: dict[str, Any] = {"public_url": PUBLIC_URL, "cursor_keys": CURSOR_KEYS, **changes}
    return Client(Service(ports, Settings(**settings)), who or principal())


async def _echo(call: Call) -> JsonObject:
    return {"echo": call.arguments}


def tool(name: str = "echo", run: Callable[[Call], Awaitable[JsonObject]] = _echo, **changes: Any) -> Tool:
    """A tool for protocol tests: it answers with its arguments, or runs what it is given."""
    values: dict[str, Any] = {
        "title": name.title(),
        "description": "For tests.",
        "scope": READ,
        "input_schema": fields.arguments(text=fields.text("Any text.")),
        "output_schema": {"type": "object"},
        **changes,
    }
    return Tool(name=name, run=run, **values)
