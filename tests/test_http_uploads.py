"""Uploads over HTTP: bounded, resumable, and nobody sees another's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mempersist.limits import MAX_DIRECT_IMPORT_BYTES, MAX_MULTIPART_PART_BYTES, MIN_MULTIPART_PART_BYTES
from mempersist.service import Service
from mempersist.web.app import respond
from mempersist.web.http import Request
from tests.rigs.hosts import new_world
from tests.rigs.http import SETTINGS, TOKEN, Door, door
from tests.rigs.worlds import drain

EVERY_HOST = True


def export(*titles: str) -> bytes:
    """A small export, one conversation for each title."""
    return json.dumps(
        [
            {
                "id": title,
                "title": title,
                "current_node": "b",
                "mapping": {
                    "a": {"id": "a", "parent": None},
                    "b": {
                        "id": "b",
                        "parent": "a",
                        "message": {"id": "b", "author": {"role": "user"}, "content": {"parts": [f"about {title}"]}},
                    },
                },
            }
            for title in titles
        ]
    ).encode()


async def send(at: Door, body: bytes, **changes: Any) -> Any:
    values: dict[str, Any] = {"headers": {"X-Filename": "conversations.json"}, "content": body, **changes}
    return await at.client.post("/api/imports/direct", **values)


async def begin(at: Door, **changes: Any) -> str:
    answer = await at.client.post("/api/imports/multipart", json={"filename": "conversations.json", **changes})
    assert answer.status_code == 201
    return str(answer.json()["importId"])


async def put(at: Door, import_id: str, number: int, body: bytes) -> Any:
    return await at.client.put(f"/api/imports/{import_id}/parts/{number}", content=body)


async def test_a_direct_upload_is_accepted_hashed_and_imported() -> None:
    body = export("One", "Two")
    async with door() as at:
        answer = await send(at, body, params={"namespace": "work"})
        accepted = answer.json()
        await drain(at.world)
        status = (await at.client.get(f"/api/imports/{accepted['importId']}")).json()
        receipt = (await at.client.get(f"/api/imports/{accepted['importId']}/receipt")).json()
        listed = (await at.client.get("/api/imports")).json()["imports"]
    assert answer.status_code == 202
    assert accepted["sha256"] == hashlib.sha256(body).hexdigest()
    assert (accepted["namespace"], accepted["duplicateOf"], accepted["queued"]) == ("work", None, True)
    assert (status["status"], status["counts"]["conversations"]["imported"]) == ("complete", 2)
    assert (receipt["sha256"], receipt["status"]) == (accepted["sha256"], "complete")
    assert [item["id"] for item in listed] == [accepted["importId"]]


async def test_a_filename_may_be_percent_encoded() -> None:
    async with door() as at:
        answer = await send(at, export("One"), headers={"X-Filename": "%E4%BC%9A%E8%A9%B1.json"})
    assert answer.json()["filename"] == "会話.json"


async def test_the_same_bytes_again_are_called_a_duplicate_unless_forced() -> None:
    async with door() as at:
        first = (await send(at, export("One"))).json()
        await drain(at.world)
        second = (await send(at, export("One"))).json()
        forced = (await send(at, export("One"), params={"force": "true"})).json()
    assert second["duplicateOf"] == first["importId"]
    assert forced["duplicateOf"] is None


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"headers": {}}, 400, "X-Filename"),
        ({"headers": {"X-Filename": "%20"}}, 400, "filename"),
        ({"headers": {"X-Filename": "a" * 256}}, 400, "filename"),
        ({"params": {"force": "yes"}}, 400, "force"),
        ({"params": {"namespace": " "}}, 400, "namespace"),
        ({"params": {"colour": "red"}}, 400, "query"),
        ({"content": b""}, 400, "body"),
    ],
)
async def test_an_upload_that_is_not_in_order_is_refused(changes: dict[str, Any], status: int, field: str) -> None:
    async with door() as at:
        answer = await send(at, export("One"), **changes)
        listed = (await at.client.get("/api/imports")).json()["imports"]
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, "VALIDATION")
    assert answer.json()["error"]["message"].startswith(f"{field}:")
    assert listed == []


async def _respond(path: str, length: str | None, method: str = "POST") -> Any:
    """An answer to a request that only declares a length; its body must not be read."""

    async def body() -> AsyncIterator[bytes]:
        yield b""
        raise AssertionError("the body was read")

    headers = {"authorization": f"Bearer {TOKEN}", "x-filename": "a.json"}
    if length is not None:
        headers["content-length"] = length
    service = Service((await new_world()).ports, SETTINGS)
    return await respond(service, Request(method, path, headers=headers, body=body()))


@pytest.mark.in_process
async def test_a_length_is_required_and_one_too_long_is_refused_unread() -> None:
    assert (await _respond("/api/imports/direct", None)).status == 411
    assert (await _respond("/api/imports/direct", str(MAX_DIRECT_IMPORT_BYTES + 1))).status == 413
    assert (await _respond("/api/imports/some-id/parts/1", None, "PUT")).status == 411
    assert (await _respond("/api/imports/some-id/parts/1", str(MAX_MULTIPART_PART_BYTES + 1), "PUT")).status == 413


async def test_a_direct_upload_of_exactly_the_limit_passes() -> None:
    body = export("One")
    body += b" " * (MAX_DIRECT_IMPORT_BYTES - len(body))
    async with door() as at:
        answer = await send(at, body)
    assert answer.status_code == 202
    assert answer.json()["sizeBytes"] == MAX_DIRECT_IMPORT_BYTES


async def test_an_interrupted_upload_goes_on_with_the_parts_that_are_missing() -> None:
    body = export("One") + b" " * MIN_MULTIPART_PART_BYTES
    parts = [body[:MIN_MULTIPART_PART_BYTES], body[MIN_MULTIPART_PART_BYTES:]]
    async with door() as at:
        import_id = await begin(at, namespace="work")
        await put(at, import_id, 2, parts[1])
        early = await at.client.post(f"/api/imports/{import_id}/complete")
        listed = (await at.client.get(f"/api/imports/{import_id}/parts")).json()
        await put(at, import_id, 1, parts[0])
        done = await at.client.post(f"/api/imports/{import_id}/complete")
        again = await at.client.post(f"/api/imports/{import_id}/complete")
        await drain(at.world)
        receipt = (await at.client.get(f"/api/imports/{import_id}/receipt")).json()
    assert (early.status_code, early.json()["error"]["missing_parts"]) == (400, [1])
    assert [(part["partNumber"], part["sizeBytes"]) for part in listed["parts"]] == [(2, len(parts[1]))]
    assert (done.status_code, again.status_code) == (202, 202)
    assert (receipt["sha256"], receipt["namespace"]) == (hashlib.sha256(body).hexdigest(), "work")
    assert receipt["counts"]["conversations"]["imported"] == 1


async def test_a_part_sent_again_replaces_the_earlier_one() -> None:
    async with door() as at:
        import_id = await begin(at)
        first = (await put(at, import_id, 1, b"wrong")).json()
        second = (await put(at, import_id, 1, export("Right"))).json()
        await at.client.post(f"/api/imports/{import_id}/complete")
        await drain(at.world)
        receipt = (await at.client.get(f"/api/imports/{import_id}/receipt")).json()
    assert first["etag"] != second["etag"]
    assert receipt["status"] == "complete"


@pytest.mark.parametrize("number", ["0", "10001", "-1", "1e3", "one", "00000000001"])
async def test_part_numbers_go_from_one_to_ten_thousand(number: str) -> None:
    async with door() as at:
        import_id = await begin(at)
        answer = await at.client.put(f"/api/imports/{import_id}/parts/{number}", content=b"x")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION")
    assert "10000" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b'{"filename": 3}', b'{"filename": null}', b'{"filename": "a", "size": 3}', b'"a"']
)
async def test_an_upload_in_parts_begins_with_a_name_and_nothing_odd(body: bytes) -> None:
    async with door() as at:
        answer = await at.client.post("/api/imports/multipart", content=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION")


async def test_an_aborted_upload_is_gone_and_a_completed_one_cannot_be_aborted() -> None:
    async with door() as at:
        aborted, completed = await begin(at), await begin(at)
        gone = await at.client.delete(f"/api/imports/{aborted}")
        await put(at, completed, 1, export("One"))
        await at.client.post(f"/api/imports/{completed}/complete")
        kept = await at.client.delete(f"/api/imports/{completed}")
        parts = await at.client.get(f"/api/imports/{aborted}/parts")
    assert (gone.status_code, parts.status_code) == (200, 404)
    assert (kept.status_code, kept.json()["error"]["code"]) == (409, "IMPORT_CONFLICT")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("GET", "/parts"),
        ("GET", "/receipt"),
        ("PUT", "/parts/1"),
        ("POST", "/complete"),
        ("DELETE", ""),
    ],
)
async def test_a_foreign_import_and_a_missing_one_look_the_same(method: str, path: str) -> None:
    missing = "11111111-1111-4111-8111-111111111111"
    async with door() as at:
        foreign = await begin(at)
        await at.world.ports.catalog.query("UPDATE import_runs SET account_id = 'other'")
        answers = [
            await at.client.request(
                method, f"/api/imports/{import_id}{path}", content=b"x" if method == "PUT" else None
            )
            for import_id in (foreign, missing)
        ]
    assert [answer.status_code for answer in answers] == [404, 404]
    assert answers[0].json() == answers[1].json()
