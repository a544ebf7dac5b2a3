"""Every answer has the same frame: headers, errors of one shape, one log line without content."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from mempersist.ports import CatalogError, Row, SqlValue, StorageError
from mempersist_ops.stores.memory.catalog import MemoryCatalog
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from tests.rigs import writes
from tests.rigs.hosts import new_world
from tests.rigs.http import door

EVERY_HOST = True


class BrokenCatalog(MemoryCatalog):
    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        raise self.error


class BrokenObjects(MemoryObjectStore):
    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        raise StorageError("disk on fire")


@pytest.mark.parametrize("path", ["/", "/healthz", "/api/imports", "/api/nothing", "/nowhere"])
async def test_every_answer_has_an_id_of_its_own_and_may_not_be_sniffed_or_stored(path: str) -> None:
    async with door() as at:
        first, second = await at.client.get(path), await at.client.get(path)
    for answer in (first, second):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["content-length"] == str(len(answer.content))
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nowhere", 404, "NOT_FOUND"),
        ("GET", "/api/nothing", 404, "NOT_FOUND"),
        ("GET", "/healthz/", 404, "NOT_FOUND"),
        ("DELETE", "/healthz", 405, "VALIDATION"),
        ("GET", "/api/imports/direct/", 404, "NOT_FOUND"),
        ("PATCH", "/api/imports", 405, "VALIDATION"),
        ("GET", "/api/search?q=x&colour=red", 400, "VALIDATION"),
    ],
)
async def test_errors_have_one_shape(method: str, path: str, status: int, code: str) -> None:
    async with door() as at:
        answer = await at.client.request(method, path)
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (status, code)
    assert isinstance(error["message"], str)
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert ("allow" in answer.headers) == (status == 405)


async def test_head_has_the_headers_of_get_and_no_body() -> None:
    async with door() as at:
        got, head = await at.client.get("/healthz"), await at.client.head("/healthz")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == got.headers["content-length"]


async def test_the_front_page_names_the_endpoint_to_people_and_programs() -> None:
    async with door(token=None) as at:
        page = await at.client.get("/", headers={"Accept": "text/html,*/*"})
        data = await at.client.get("/")
        posted = await at.client.post("/", json={"jsonrpc": "2.0", "id": 1, "method": "initialize"})
    endpoint = str(at.client.base_url.join("/mcp"))
    assert endpoint in page.text
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert data.json()["mcp"] == endpoint
    assert posted.status_code == 405
    assert endpoint in posted.json()["error"]["message"]


@pytest.mark.in_process
async def test_ready_says_whether_the_catalog_answers() -> None:
    world = await new_world()
    async with door(world, ports=replace(world.ports, catalog=BrokenCatalog(CatalogError("no")))) as at:
        alive, ready = await at.client.get("/healthz"), await at.client.get("/readyz")
    assert (alive.status_code, ready.status_code) == (200, 503)


@pytest.mark.in_process
async def test_a_store_that_cannot_answer_is_503_with_a_code_and_no_details() -> None:
    world = await new_world()
    written = await writes.store(world.ports, "hello")
    async with door(world, ports=replace(world.ports, catalog=BrokenCatalog(CatalogError("table secrets")))) as at:
        answer = await at.client.get("/api/imports")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "RETRYABLE_INFRASTRUCTURE")
    assert "secrets" not in answer.text
    async with door(world, ports=replace(world.ports, objects=BrokenObjects())) as at:
        answer = await at.client.get(f"/api/conversations/{written.conversation_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "CANONICAL_STORAGE")
    assert "fire" not in answer.text


@pytest.mark.in_process
async def test_a_defect_answers_500_and_the_log_has_its_place_but_not_its_words(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = await new_world()
    with caplog.at_level(logging.INFO, "mempersist"):
        async with door(world, ports=replace(world.ports, catalog=BrokenCatalog(KeyError("my secret")))) as at:
            answer = await at.client.get("/api/imports")
    assert answer.status_code == 500
    assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    line = json.loads(caplog.messages[-1])
    assert line["defect"].startswith("KeyError at query:")
    assert "secret" not in caplog.text + answer.text


@pytest.mark.in_process
async def test_a_request_leaves_one_line_of_ids_counts_and_codes(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "mempersist"):
        async with door() as at:
            found = await at.client.get("/api/search", params={"q": "private words"})
            missing = await at.client.get("/api/imports/private-id")
    lines: list[dict[str, Any]] = [json.loads(message) for message in caplog.messages if "request_id" in message]
    assert [line["route"] for line in lines] == ["/api/search", "/api/imports/:id"]
    assert [line["request_id"] for line in lines] == [found.headers["x-request-id"], missing.headers["x-request-id"]]
    assert lines[0]["response_bytes"] == len(found.content)
    assert "private" not in caplog.text
