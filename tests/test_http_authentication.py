"""Who asks is decided from the headers, before a byte of the body is read, for every path under /api/."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from mempersist.service import Service
from mempersist.web.app import respond
from mempersist.web.auth import authenticate
from mempersist.web.http import Request
from tests.rigs.hosts import new_world
from tests.rigs.http import SETTINGS, TOKEN, door

EVERY_HOST = True

PATHS = [
    ("GET", "/api/search"),
    ("POST", "/api/memories"),
    ("POST", "/api/imports/direct"),
    ("PUT", "/api/imports/x/parts/1"),
    ("DELETE", "/api/imports/x"),
    ("GET", "/api/no/such/route"),
    ("GET", "/api"),
    ("PATCH", "/api/search"),
    ("GET", "/%61pi/search"),
]


@pytest.mark.parametrize(("method", "path"), PATHS)
async def test_every_path_below_api_asks_for_a_token_before_it_reads_the_body(method: str, path: str) -> None:
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"x"

    service = Service((await new_world()).ports, SETTINGS)
    answer = await respond(service, Request(method, path, headers={"content-length": "1"}, body=body()))
    assert answer.status == 401
    assert answer.headers["WWW-Authenticate"] == 'Bearer realm="mempersist"'
    assert read == []


async def test_the_mcp_endpoint_does_not_read_a_strangers_body_either() -> None:
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"{}"

    service = Service((await new_world()).ports, SETTINGS)
    headers = {"content-length": "2", "host": "127.0.0.1:8787", "content-type": "application/json"}
    answer = await respond(service, Request("POST", "/mcp", headers=headers, body=body()))
    assert answer.status == 401
    assert read == []


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Bearer {TOKEN}x", False),
        (f"Bearer {TOKEN[:-1]}", False),
        ("Bearer ", False),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer tökén", False),
    ],
)
async def test_only_the_whole_token_is_accepted(header: str, accepted: bool) -> None:
    service = Service((await new_world()).ports, SETTINGS)
    assert (await authenticate(service, {"authorization": header}) is not None) is accepted


async def test_without_a_configured_token_nobody_is_let_in() -> None:
    service = Service((await new_world()).ports, replace(SETTINGS, api_token_sha256=None))
    assert await authenticate(service, {"authorization": "Bearer "}) is None
    assert await authenticate(service, {"authorization": "Bearer None"}) is None


async def test_a_wrong_token_is_called_invalid_and_not_repeated() -> None:
    async with door(token="guess") as at:
        answer = await at.client.get("/api/search", params={"q": "x"})
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == 'Bearer realm="mempersist", error="invalid_token"'
    assert "guess" not in answer.text


@pytest.mark.parametrize("path", ["/", "/healthz", "/readyz"])
async def test_health_and_the_front_page_are_public(path: str) -> None:
    async with door(token=None) as at:
        assert (await at.client.get(path)).status_code == 200
