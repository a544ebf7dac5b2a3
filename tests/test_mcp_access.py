"""Who may talk to the MCP endpoint: methods, hosts, origins, and the challenge for those without a token."""

from __future__ import annotations

import dataclasses
import json

import pytest

from mempersist.mcp.access import host_allowed, origin_allowed
from mempersist.service import Settings
from tests.rigs.http import door
from tests.rigs.mcp import PUBLIC_URL, Client, client, parsed

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


async def stranger() -> Client:
    return dataclasses.replace(await client(), who=None)


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "PATCH", "HEAD", "OPTIONS", "TRACE"])
async def test_everything_but_post_is_405_and_told_so(method: str) -> None:
    for at in (await client(), await stranger()):
        response = await at.send(b"", method=method)
        assert response.status == 405
        assert response.headers["Allow"] == "POST"


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_both_forms_of_the_path_answer_without_a_redirect(path: str) -> None:
    async with door() as at:
        response = await at.client.post(path, json=PING)
        assert (response.status_code, response.json()["result"]) == (200, {})
        response = await at.client.get(path)
        assert (response.status_code, response.headers["allow"]) == (405, "POST")


# ------------------------------------------------------------------ bearer


async def test_without_a_token_the_challenge_says_where_to_get_one() -> None:
    response = await (await stranger()).send(PING)
    assert response.status == 401
    assert response.headers["WWW-Authenticate"] == (
        f'Bearer resource_metadata="{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp",'
        ' scope="memory:read memory:write"'
    )
    assert parsed(response)["error"]["code"] == "AUTHENTICATION"


async def test_a_token_that_is_not_valid_is_called_that() -> None:
    response = await (await stranger()).send(PING, {"authorization": "Bearer wrong"})
    assert response.status == 401
    assert 'error="invalid_token"' in response.headers["WWW-Authenticate"]
    assert "wrong" not in json.dumps([*response.headers.values(), response.body.decode()])


@pytest.mark.parametrize("body", [b"", b"{", b"x" * 5_000_000])
async def test_a_strangers_body_is_not_looked_at(body: bytes) -> None:
    assert (await (await stranger()).send(body)).status == 401


async def test_the_challenge_is_built_from_configuration_not_from_the_request() -> None:
    response = await (await stranger()).send(PING, {"host": "localhost", "x-forwarded-host": "evil.example"})
    assert PUBLIC_URL in response.headers["WWW-Authenticate"]
    assert "evil" not in response.headers["WWW-Authenticate"]


# ------------------------------------------------------------------ origins and hosts


@pytest.mark.parametrize(
    ("public_url", "origin", "allowed"),
    [
        (PUBLIC_URL, None, True),
        (PUBLIC_URL, "https://memory.example", True),
        (PUBLIC_URL, "https://memory.example:443", True),
        (PUBLIC_URL, "HTTPS://MEMORY.example", True),
        (PUBLIC_URL, "https://app.example", True),
        (PUBLIC_URL, "http://memory.example", False),
        (PUBLIC_URL, "https://memory.example:8443", False),
        (PUBLIC_URL, "https://memory.example.evil.example", False),
        (PUBLIC_URL, "https://memory.example@evil.example", False),
        (PUBLIC_URL, "https://evil.example", False),
        (PUBLIC_URL, "http://localhost:3000", False),
        (PUBLIC_URL, "null", False),
        (PUBLIC_URL, "", False),
        (PUBLIC_URL, "https://[", False),
        (PUBLIC_URL, "https://memory.example:port", False),
        (PUBLIC_URL, "chrome-extension://memory.example", False),
        ("http://127.0.0.1:8787", "http://127.0.0.1:8787", True),
        ("http://127.0.0.1:8787", "http://localhost:6274", True),
        ("http://127.0.0.1:8787", "http://[::1]:6274", True),
        ("http://127.0.0.1:8787", "http://localhost.evil.example:8787", False),
        ("http://127.0.0.1:8787", "http://evil.example:8787", False),
    ],
)
def test_browsers_may_come_from_the_servers_own_and_the_configured_origins(
    public_url: str, origin: str | None, allowed: bool
) -> None:
    assert origin_allowed(Settings(public_url, ("https://app.example",)), origin) is allowed


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        (None, True),
        ("memory.example", True),
        ("memory.example:443", True),
        ("Memory.Example", True),
        ("localhost:8787", True),
        ("127.0.0.1", True),
        ("[::1]:8787", True),
        ("memory.example:8443", False),
        ("evil.example", False),
        ("127.0.0.1.evil.example", False),
        ("user@memory.example", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_a_request_names_the_public_host_or_a_loopback_one(host: str | None, allowed: bool) -> None:
    assert host_allowed(Settings(PUBLIC_URL), host) is allowed


@pytest.mark.parametrize("headers", [{"origin": "https://evil.example"}, {"host": "evil.example"}, {"origin": "null"}])
async def test_others_are_403_before_anything_else(headers: dict[str, str]) -> None:
    for at in (await client(), await stranger()):
        for method in ("POST", "GET", "OPTIONS"):
            response = await at.send(PING, headers, method)
            assert response.status == 403
            assert parsed(response)["error"]["code"] == -32600
            assert "id" not in parsed(response)
            assert "Access-Control-Allow-Origin" not in response.headers


async def test_a_page_of_an_allowed_origin_can_ask_first_and_read_the_answer() -> None:
    at = await client(allowed_origins=("https://app.example",))
    headers = {"origin": "https://app.example"}
    asked = await at.send(b"", {**headers, "access-control-request-method": "POST"}, "OPTIONS")
    assert asked.status == 204
    assert "Authorization" in asked.headers["Access-Control-Allow-Headers"]
    assert "Mcp-Method" in asked.headers["Access-Control-Allow-Headers"]
    for answer in (asked, await at.send(PING, headers), await dataclasses.replace(at, who=None).send(PING, headers)):
        assert answer.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert answer.headers["Vary"] == "Origin"


async def test_without_an_origin_no_answer_speaks_of_origins() -> None:
    response = await (await client()).send(PING)
    assert not [name for name in response.headers if name.lower().startswith("access-control")]


# ------------------------------------------------------------------ content


@pytest.mark.parametrize(
    "accept", [None, "application/json, text/event-stream", "*/*", "application/json", "application/*", "text/html"]
)
async def test_the_answer_is_json(accept: str | None) -> None:
    response = await (await client()).send(PING, {} if accept is None else {"accept": accept})
    assert response.headers["Content-Type"] == "application/json"
    assert parsed(response)["result"] == {}


@pytest.mark.parametrize("body", [PING, {**PING, "method": "unknown"}, "not a message"])
async def test_a_client_that_takes_only_event_streams_gets_one_event(body: object) -> None:
    at = await client()
    streamed = await at.send(body, {"accept": "text/event-stream"})
    assert streamed.headers["Content-Type"] == "text/event-stream"
    event, data, end = streamed.body.decode().split("\n", 2)
    assert (event, end) == ("event: message", "\n")
    assert json.loads(data.removeprefix("data: ")) == parsed(await at.send(body))
