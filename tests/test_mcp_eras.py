"""One endpoint for clients of every protocol era; each message alone decides which one it belongs to."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any

import pytest

from mempersist.mcp.eras import VERSIONS
from mempersist.mcp.protocol import SERVER_INFO
from tests.rigs.mcp import CLIENT_META, LEGACY, MODERN, Client, client, modern_headers, parsed, tool

EVERY_HOST = True


def message(method: str, params: Any = None, **meta: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {**(params or {}), "_meta": {**CLIENT_META, **meta}}}


async def echoing(*names: str) -> Client:
    return dataclasses.replace(await client(), tools=tuple(tool(name) for name in names or ("echo",)))


# ------------------------------------------------------------------ earlier eras


@pytest.mark.parametrize("version", LEGACY)
async def test_initialize_answers_with_the_clients_own_version(version: str) -> None:
    answer = await (await client()).legacy("initialize", {"protocolVersion": version, "capabilities": {}}, None)
    assert answer["result"]["protocolVersion"] == version
    assert answer["result"]["capabilities"] == {"tools": {}}
    assert answer["result"]["serverInfo"] == SERVER_INFO


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "2031-01-01", "latest"])
async def test_initialize_offers_the_newest_earlier_version_to_a_client_of_another(version: str) -> None:
    answer = await (await client()).legacy("initialize", {"protocolVersion": version}, None)
    assert answer["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize("header", [None, *LEGACY, MODERN, "2024-11-05", "nonsense"])
async def test_initialize_is_answered_whatever_version_header_comes_with_it(header: str | None) -> None:
    answer = await (await client()).legacy("initialize", {"protocolVersion": "2025-06-18"}, header)
    assert answer["result"]["protocolVersion"] == "2025-06-18"


async def test_initialize_without_a_version_is_an_error() -> None:
    answer = await (await client()).legacy("initialize", {}, None)
    assert answer["error"]["code"] == -32602


async def test_no_session_id_is_ever_given_out() -> None:
    first = message("initialize", {"protocolVersion": "2025-11-25"})
    del first["params"]["_meta"]
    response = await (await client()).send(first)
    assert response.status == 200
    assert "mcp-session-id" not in {name.lower() for name in response.headers}


@pytest.mark.parametrize("version", [None, *LEGACY])
async def test_earlier_eras_need_no_version_header(version: str | None) -> None:
    at = await client()
    assert await at.legacy("ping", version=version) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (await at.legacy("tools/list", version=version))["result"]["tools"]


@pytest.mark.in_process
async def test_results_of_earlier_eras_get_nothing_added() -> None:
    at = await echoing()
    assert set((await at.legacy("tools/list"))["result"]) == {"tools"}
    called = await at.legacy("tools/call", {"name": "echo"})
    assert set(called["result"]) == {"content", "structuredContent", "isError"}


@pytest.mark.parametrize("method", ["server/discover", "resources/list", "tools/unknown", "logging/setLevel"])
async def test_an_unknown_method_is_200_with_method_not_found_in_earlier_eras(method: str) -> None:
    response = await (await client()).send(
        {"jsonrpc": "2.0", "id": 1, "method": method}, {"mcp-protocol-version": "2025-11-25"}
    )
    assert response.status == 200
    assert parsed(response)["error"]["code"] == -32601


async def test_a_version_that_is_served_no_more_is_refused_by_its_header() -> None:
    response = await (await client()).send(
        {"jsonrpc": "2.0", "id": 3, "method": "tools/list"}, {"mcp-protocol-version": "2024-11-05"}
    )
    assert response.status == 400
    assert parsed(response)["error"]["code"] == -32600
    assert parsed(response)["id"] == 3


# ------------------------------------------------------------------ the stateless era


async def test_discover_names_every_version_newest_first() -> None:
    result = (await (await client()).modern("server/discover"))["result"]
    assert result["supportedVersions"] == [MODERN, *LEGACY] == list(VERSIONS)
    assert result["capabilities"] == {"tools": {}}
    assert result["instructions"]
    assert result["ttlMs"] == 300_000
    assert result["cacheScope"] == "public"


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("method", "params"), [("server/discover", {}), ("tools/list", {}), ("tools/call", {"name": "echo"})]
)
async def test_every_stateless_result_says_its_type_and_who_answers(method: str, params: dict[str, Any]) -> None:
    result = (await (await echoing()).modern(method, params))["result"]
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"] == SERVER_INFO


async def test_the_tool_list_may_be_kept_for_five_minutes_by_anyone() -> None:
    result = (await (await client()).modern("tools/list"))["result"]
    assert (result["ttlMs"], result["cacheScope"]) == (300_000, "public")


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "prompts/list"])
async def test_methods_of_earlier_eras_are_404_in_the_stateless_one(method: str) -> None:
    response = await (await client()).send(message(method, {"protocolVersion": MODERN}), modern_headers(method))
    assert response.status == 404
    assert parsed(response) == {
        "jsonrpc": "2.0",
        "id": 7,
        "error": {"code": -32601, "message": "Method not found"},
    }


@pytest.mark.parametrize(
    "meta",
    [
        {},
        {"io.modelcontextprotocol/protocolVersion": MODERN},
        {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": None},
        {"io.modelcontextprotocol/protocolVersion": 20260728, "io.modelcontextprotocol/clientCapabilities": {}},
        {"io.modelcontextprotocol/clientCapabilities": {}},
    ],
)
async def test_an_incomplete_envelope_is_400_invalid_params(meta: dict[str, Any]) -> None:
    body = {"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": {"_meta": meta}}
    response = await (await client()).send(body, modern_headers("tools/list"))
    assert response.status == 400
    assert parsed(response)["error"]["code"] == -32602


async def test_the_clients_name_is_optional_in_the_envelope() -> None:
    assert "result" in await (await client()).modern("tools/list")


@pytest.mark.in_process
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"mcp-method": "tools/call", "mcp-name": "echo"},
        {"mcp-protocol-version": "2025-11-25", "mcp-method": "tools/call", "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN, "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN, "mcp-method": "TOOLS/CALL", "mcp-name": "echo"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "other"},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call", "mcp-name": "=?base64?!!!?="},
        {"mcp-protocol-version": MODERN, "mcp-method": "tools/call, tools/list", "mcp-name": "echo"},
    ],
)
async def test_headers_that_do_not_mirror_the_body_are_400_header_mismatch(headers: dict[str, str]) -> None:
    response = await (await echoing()).send(message("tools/call", {"name": "echo"}), headers)
    assert response.status == 400
    assert parsed(response)["error"]["code"] == -32020
    assert parsed(response)["id"] == 7


@pytest.mark.in_process
@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("echo", "  echo \t"),
        ("echo", "=?base64?" + base64.b64encode(b"echo").decode() + "?="),
        ("écho", "=?base64?" + base64.b64encode("écho".encode()).decode() + "?="),
    ],
)
async def test_the_name_header_is_compared_trimmed_and_decoded(name: str, header: str) -> None:
    body = message("tools/call", {"name": name})
    response = await (await echoing("echo", "écho")).send(body, modern_headers("tools/call", header))
    assert response.status == 200, response.body


async def test_an_unknown_stateless_version_is_400_and_told_what_is_served() -> None:
    key = "io.modelcontextprotocol/protocolVersion"
    response = await (await client()).send(
        message("tools/list", **{key: "2027-01-01"}), modern_headers("tools/list", version="2027-01-01")
    )
    assert response.status == 400
    error = parsed(response)["error"]
    assert error["code"] == -32022
    assert error["data"] == {"supported": list(VERSIONS), "requested": "2027-01-01"}


async def test_unknown_tools_are_400_invalid_params_in_the_stateless_era_and_200_before() -> None:
    at = await client()
    body = message("tools/call", {"name": "nothing"})
    response = await at.send(body, modern_headers("tools/call", "nothing"))
    assert (response.status, parsed(response)["error"]["code"]) == (400, -32602)
    response = await at.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "nothing"}})
    assert (response.status, parsed(response)["error"]["code"]) == (200, -32602)


@pytest.mark.parametrize("meta", [{}, CLIENT_META])
async def test_a_notification_is_taken_in_every_era_without_an_answer(meta: dict[str, Any]) -> None:
    for method in ("notifications/initialized", "notifications/cancelled", "tools/call", "no/such/method"):
        response = await (await client()).send({"jsonrpc": "2.0", "method": method, "params": {"_meta": meta}})
        assert (response.status, response.body) == (202, b"")


async def test_both_eras_list_the_same_tools_in_the_same_order_every_time() -> None:
    at = await client()
    lists = [(await at.legacy("tools/list", version=version))["result"]["tools"] for version in (None, *LEGACY)]
    lists += [(await at.modern("tools/list"))["result"]["tools"] for _ in range(2)]
    assert all(listed == lists[0] for listed in lists)
