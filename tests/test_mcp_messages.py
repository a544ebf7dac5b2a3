"""One JSON-RPC message a request: what is read, what is refused, and ids that come back exactly as they were sent."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist.mcp import jsonrpc
from mempersist.mcp.jsonrpc import RpcError
from tests.rigs.mcp import client, parsed

EVERY_HOST = True

IDS = st.one_of(st.integers(), st.text(st.characters(codec=None)))


@given(IDS)
def test_an_id_comes_back_exactly_as_it_was_sent(request_id: Any) -> None:
    message = jsonrpc.parse(json.dumps({"jsonrpc": "2.0", "id": request_id, "method": "ping"}).encode())
    answered = json.loads(jsonrpc.result_bytes(message.id, {}))["id"]  # type: ignore[arg-type]
    assert answered == request_id
    assert type(answered) is type(request_id)


@pytest.mark.parametrize("request_id", [0, -1, 2**53 + 1, 10**40, "", "1", "ключ", "\ud800", 'a"b\\'])
async def test_results_and_errors_carry_the_id(request_id: Any) -> None:
    at = await client()
    for method in ("ping", "no/such/method"):
        answer = parsed(await at.send({"jsonrpc": "2.0", "id": request_id, "method": method}))
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)


@pytest.mark.parametrize("request_id", ["null", "1.5", "1.0", "1e3", "true", "false", "[]", "{}"])
async def test_other_ids_are_refused_not_changed(request_id: str) -> None:
    body = f'{{"jsonrpc": "2.0", "id": {request_id}, "method": "ping"}}'.encode()
    response = await (await client()).send(body)
    assert response.status == 400
    assert parsed(response)["id"] is None
    assert parsed(response)["error"]["code"] == -32600


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping"',
        b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}',
        b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": Infinity}}',
        b'\xff\xfe{"jsonrpc"',
        '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"a":' * 100_000,
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "method": "ping"}',
    ],
)
async def test_what_is_not_json_is_400_parse_error(body: bytes) -> None:
    response = await (await client()).send(body)
    assert response.status == 400
    assert parsed(response)["error"]["code"] == -32700
    assert parsed(response)["id"] is None


@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        "ping",
        1,
        None,
        {},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": 7},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
        {"jsonrpc": "2.0", "method": "ping", "params": "x"},
    ],
)
async def test_batches_responses_and_other_json_are_400_invalid_request(body: Any) -> None:
    response = await (await client()).send(body)
    assert response.status == 400
    assert parsed(response)["error"]["code"] == -32600


async def test_an_invalid_request_is_answered_with_its_id_where_that_can_be_read() -> None:
    response = await (await client()).send({"jsonrpc": "1.0", "id": "mine", "method": "ping"})
    assert parsed(response)["id"] == "mine"


def nested(depth: int) -> bytes:
    inner = b"[" * (depth - 2) + b"]" * (depth - 2)
    return b'{"jsonrpc": "2.0", "method": "x", "id": 1, "params": {"x": ' + inner + b"}}"


def test_nesting_is_bounded_exactly() -> None:
    assert jsonrpc.parse(nested(jsonrpc.MAX_DEPTH)).method == "x"
    with pytest.raises(RpcError) as refused:
        jsonrpc.parse(nested(jsonrpc.MAX_DEPTH + 1))
    assert str(jsonrpc.MAX_DEPTH) in refused.value.message


async def test_a_wide_body_is_no_matter() -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": [[]] * 50_000}}
    response = await (await client()).send(body)
    assert parsed(response) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def test_a_request_that_is_no_tool_call_may_have_a_mebibyte() -> None:
    at = await client()
    frame = b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": "%s"}}'
    room = 1024 * 1024 - len(frame) + 2
    assert (await at.send(frame % (b"x" * room))).status == 200
    response = await at.send(frame % (b"x" * (room + 1)))
    assert response.status == 413
    assert parsed(response)["id"] == 1


async def test_a_body_above_four_mebibytes_is_413_unread() -> None:
    at = await client()
    response = await at.send(b"x" * (4 * 1024 * 1024 + 1))
    assert response.status == 413
    assert "id" not in parsed(response)
    assert (await at.send(b"x" * (4 * 1024 * 1024))).status == 400


@given(st.binary(max_size=200))
def test_no_bytes_whatever_are_more_than_a_refusal(body: bytes) -> None:
    with contextlib.suppress(RpcError):
        jsonrpc.parse(body)
