"""What a tool call answers: one shape for good results, one for refusals, and nothing of our insides for defects."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import limits
from mempersist.accounts.principal import READ, WRITE
from mempersist.archive.codec import UnreadableObject
from mempersist.errors import Code, MempersistError, not_found
from mempersist.mcp import budget, calls
from mempersist.mcp.tool import Call, Tool
from mempersist.ports import CatalogError, IndexUnavailable, ObjectNotFound, QueueUnavailable, StorageError
from tests.rigs.mcp import PUBLIC_URL, Client, client, error_of, parsed, principal, tool

MIB = 1024 * 1024


def answering(value: Any) -> Callable[[Call], Awaitable[Any]]:
    async def run(_: Call) -> Any:
        return value

    return run


def raising(error: Exception) -> Callable[[Call], Awaitable[Any]]:
    async def run(_: Call) -> Any:
        raise error

    return run


async def having(*tools: Tool) -> Client:
    return replace(await client(), tools=tools)


# ------------------------------------------------------------------ good results


async def test_the_text_block_is_the_structured_content_as_compact_json() -> None:
    at = await having(tool(run=answering({"a": [1, 2], "ключ": "значение"})))
    result = await at.call("echo")
    assert result["content"] == [{"type": "text", "text": '{"a":[1,2],"ключ":"значение"}'}]
    assert result["structuredContent"] == json.loads(result["content"][0]["text"])


async def test_answers_are_printable_at_every_depth() -> None:
    dirty = {"a\x00": ["x\x1b[31m\ud800", {"b\x07": ("\x7fé\tz\n", 1, None, True, 1.5)}]}
    at = await having(tool(run=answering(dirty)))
    assert (await at.call("echo"))["structuredContent"] == {
        "a": ["x[31m\ufffd", {"b": ["é\tz\n", 1, None, True, 1.5]}],
    }


def test_cleaning_copies_and_goes_as_deep_as_any_content() -> None:
    deep: Any = "\x00x"
    for index in range(limits.MAX_JSON_DEPTH):
        deep = [deep] if index % 2 else {"k": deep}
    cleaned = budget.clean(deep)
    assert budget.encode(cleaned) == budget.encode(deep).replace(b"\\u0000", b"")
    assert b"\\u0000" in budget.encode(deep)


@given(st.lists(st.text(st.characters(codec=None), max_size=20), max_size=8), st.integers(0, 200))
def test_as_many_items_fit_as_their_json_list_has_room_for(items: list[str], room: int) -> None:
    fits = budget.how_many_fit(items, room)
    assert budget.size(items[:fits]) - 2 <= room or fits == 0
    assert fits == len(items) or budget.size(items[: fits + 1]) - 2 > room


# ------------------------------------------------------------------ refusals


async def test_a_refusal_is_one_text_with_code_words_and_details() -> None:
    error = MempersistError(Code.IMPORT_CONFLICT, "base: is stale; read again", details={"current": "r1"})
    at = await having(tool(run=raising(error)))
    result = await at.call("echo")
    assert error_of(result) == {"code": "IMPORT_CONFLICT", "message": "base: is stale; read again", "current": "r1"}
    assert set(result) == {"content", "isError"}


async def test_bad_arguments_are_a_refusal_not_a_protocol_error() -> None:
    at = await having(tool())
    error = await at.refused("echo", text=5)
    assert error == {"code": "VALIDATION", "message": "text: must be text, not 5", "field": "text"}


@pytest.mark.parametrize("arguments", [[], "x", 3])
async def test_arguments_that_are_no_object_are_a_refusal(arguments: Any) -> None:
    at = await having(tool())
    answer = await at.legacy("tools/call", {"name": "echo", "arguments": arguments})
    assert error_of(answer["result"])["code"] == "VALIDATION"


@pytest.mark.parametrize("params", [{}, {"arguments": {}}, {"name": None}, {"name": 5}, {"name": "other"}])
async def test_a_call_of_no_tool_is_invalid_params(params: dict[str, Any]) -> None:
    answer = await (await having(tool())).legacy("tools/call", params)
    assert answer["error"]["code"] == -32602
    assert "other" not in answer["error"]["message"]


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("/secret/path"), "CANONICAL_STORAGE"),
        (ObjectNotFound("/secret/path"), "CANONICAL_STORAGE"),
        (UnreadableObject("secret"), "CANONICAL_STORAGE"),
        (CatalogError("SELECT secret"), "RETRYABLE_INFRASTRUCTURE"),
        (QueueUnavailable("secret"), "RETRYABLE_INFRASTRUCTURE"),
        (IndexUnavailable("secret"), "RETRYABLE_INFRASTRUCTURE"),
    ],
)
async def test_trouble_with_a_store_is_a_refusal_without_insides(error: Exception, code: str) -> None:
    at = await having(tool(run=raising(error)))
    response = await at.send({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo"}})
    assert error_of(parsed(response)["result"])["code"] == code
    assert b"secret" not in response.body
    assert response.code == code
    assert response.defect is not None
    assert response.defect.startswith(type(error).__name__)
    assert "secret" not in response.defect


async def test_a_defect_is_an_internal_error_without_insides() -> None:
    at = await having(tool(run=raising(ZeroDivisionError("secret 42"))))
    response = await at.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo"}})
    assert response.status == 200
    assert parsed(response) == {"jsonrpc": "2.0", "id": 9, "error": {"code": -32603, "message": "Internal error"}}
    assert response.defect is not None
    assert response.defect.startswith("ZeroDivisionError at run:")


async def test_a_good_answer_has_nothing_for_the_log() -> None:
    at = await having(tool())
    response = await at.send({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo"}})
    assert (response.code, response.defect) == (None, None)


# ------------------------------------------------------------------ scopes


@pytest.mark.parametrize(("has", "needs"), [(READ, WRITE), (WRITE, READ)])
async def test_a_missing_scope_is_a_refusal_that_lets_the_client_ask_for_it(has: str, needs: str) -> None:
    at = replace(await having(tool(scope=needs)), who=principal(has))
    result = await at.call("echo")
    assert error_of(result)["code"] == "AUTHENTICATION"
    assert needs in error_of(result)["message"]
    metadata = f"{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"
    challenge = f'Bearer resource_metadata="{metadata}", error="insufficient_scope", scope="{needs}"'
    assert result["_meta"]["mcp/www_authenticate"] == [challenge]
    modern = await at.modern("tools/call", {"name": "echo"})
    assert modern["result"]["_meta"]["mcp/www_authenticate"] == result["_meta"]["mcp/www_authenticate"]


async def test_the_tool_list_is_the_same_whatever_the_scopes() -> None:
    everything, reading = await client(), await client(who=principal(READ))
    assert await everything.legacy("tools/list") == await reading.legacy("tools/list")


async def test_other_refusals_never_ask_for_another_sign_in() -> None:
    error = MempersistError(Code.AUTHENTICATION, "namespace: not yours", status=403)
    assert "_meta" not in await (await having(tool(run=raising(error)))).call("echo")


# ------------------------------------------------------------------ budgets


async def test_an_answer_may_have_its_budget_and_not_a_byte_more() -> None:
    for extra, fine in ((0, True), (1, False)):
        room = limits.MAX_TOOL_OUTPUT_BYTES - len('{"text":""}') + extra
        at = await having(tool(run=answering({"text": "x" * room})))
        result = await at.call("echo")
        assert result["isError"] is not fine
        if not fine:
            error = error_of(result)
            assert error["code"] == "RESPONSE_TOO_LARGE"
            assert error["response_bytes"] == limits.MAX_TOOL_OUTPUT_BYTES + 1
            assert error["max_response_bytes"] == limits.MAX_TOOL_OUTPUT_BYTES
            assert "lower limit" in error["message"]


def padded(name: str, size: int, **arguments: Any) -> bytes:
    """A call whose whole request has exactly ``size`` bytes."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    body = json.dumps(message).encode()
    assert len(body) <= size
    return body + b" " * (size - len(body))


async def test_a_write_may_have_a_mebibyte_and_not_a_byte_more() -> None:
    at = await client()
    message = {"role": "user", "content": "x"}
    fits = parsed(await at.send(padded("memory_store", MIB, title="T", messages=[message] * 10)))
    assert fits["result"]["isError"] is False
    refused = await at.send(padded("memory_store", MIB + 1, title="T", messages=[message] * 10))
    error = error_of(parsed(refused)["result"])
    assert refused.status == 200
    assert {key: error[key] for key in error if key != "message"} == {
        "code": "REQUEST_TOO_LARGE",
        "request_bytes": MIB + 1,
        "max_request_bytes": MIB,
        "suggested_max_items": 9,
    }
    assert "at most about 9 of the 10 messages" in error["message"]
    assert (await at.answer("memory_stats"))["totals"]["conversations"] == 1


async def test_a_write_is_measured_in_bytes_of_the_request_before_anything_is_checked() -> None:
    at = await client()
    content = "é" * 600_000
    body = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "memory_store", "arguments": {"messages": [{"role": "user", "content": content}]}},
        },
        ensure_ascii=False,
    ).encode()
    error = error_of(parsed(await at.send(body))["result"])
    assert error["code"] == "REQUEST_TOO_LARGE"
    assert error["request_bytes"] == len(body) > 1_200_000
    assert error["suggested_max_items"] == 1


@pytest.mark.parametrize(
    ("arguments", "suggested"),
    [
        ({}, None),
        (None, None),
        ({"messages": "x"}, None),
        ({"messages": []}, None),
        ({"messages": [0]}, 1),
        ({"messages": [0] * 1000}, 500),
    ],
)
def test_how_many_items_would_fit_is_said_where_it_is_known(arguments: Any, suggested: int | None) -> None:
    write = tool(items="messages", max_request_bytes=1000)
    calls.within_request_budget(write, arguments, 1000)
    with pytest.raises(MempersistError) as refused:
        calls.within_request_budget(write, arguments, 2000)
    assert refused.value.details.get("suggested_max_items") == suggested


async def test_a_read_takes_a_small_request_only() -> None:
    at = await client()
    assert parsed(await at.send(padded("memory_stats", 65_536)))["result"]["isError"] is False
    error = error_of(parsed(await at.send(padded("memory_stats", 65_537)))["result"])
    assert (error["code"], error["max_request_bytes"]) == ("REQUEST_TOO_LARGE", 65_536)


async def test_the_one_answer_for_what_is_not_there() -> None:
    at = await having(tool(run=raising(not_found("conversation"))))
    assert await at.refused("echo") == {"code": "NOT_FOUND", "message": "conversation not found"}
