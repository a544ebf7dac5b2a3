"""The two doors cannot differ: the same arguments get the same answer, or the same refusal, over HTTP and MCP."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from mempersist import limits
from tests.rigs import writes
from tests.rigs.http import Door, door
from tests.rigs.worlds import drain

EVERY_HOST = True


async def over_mcp(at: Door, tool: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
    """Whether the tool succeeded, and its answer or its error."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    result = (await at.client.post("/mcp", json=message)).json()["result"]
    if result["isError"]:
        return False, json.loads(result["content"][0]["text"])["error"]
    return True, result["structuredContent"]


def over_http(answer: httpx.Response) -> tuple[bool, Any]:
    value = answer.json()
    return answer.is_success, value if answer.is_success else value["error"]


READS = [
    ("/api/search?q=walrus", "memory_search", {"query": "walrus"}),
    ("/api/search?q=walrus&limit=1", "memory_search", {"query": "walrus", "limit": 1}),
    ("/api/search?q=walrus&limit=%31", "memory_search", {"query": "walrus", "limit": "1"}),
    (
        "/api/search?q=walrus&tags=sea&tags=Zoo&tag_mode=any",
        "memory_search",
        {"query": "walrus", "tags": ["sea", "Zoo"], "tag_mode": "any"},
    ),
    ("/api/search?q=walrus&namespace=personal", "memory_search", {"query": "walrus", "namespace": "personal"}),
    ("/api/conversations?limit=1", "memory_list_conversations", {"limit": 1}),
    ("/api/namespaces", "memory_list_namespaces", {}),
    ("/api/stats", "memory_stats", {}),
    ("/api/capabilities", "memory_get_capabilities", {}),
    ("/api/conversations/" + "0" * 64 + "/revisions", "memory_list_revisions", {"conversation_id": "0" * 64}),
    # refused
    ("/api/search", "memory_search", {}),
    ("/api/search?q=", "memory_search", {"query": ""}),
    (f"/api/search?q={'a' * 2001}", "memory_search", {"query": "a" * 2001}),
    ("/api/search?q=walrus&limit=21", "memory_search", {"query": "walrus", "limit": 21}),
    ("/api/search?q=walrus&limit=0", "memory_search", {"query": "walrus", "limit": 0}),
    ("/api/search?q=walrus&limit=3px", "memory_search", {"query": "walrus", "limit": "3px"}),
    ("/api/search?q=walrus&namespace=foreign", "memory_search", {"query": "walrus", "namespace": "foreign"}),
    ("/api/search?q=walrus&tag_mode=some", "memory_search", {"query": "walrus", "tag_mode": "some"}),
    ("/api/conversations?cursor=nonsense", "memory_list_conversations", {"cursor": "nonsense"}),
    ("/api/conversations/nonsense", "memory_get_conversation", {"conversation_id": "nonsense"}),
    ("/api/conversations/" + "0" * 64, "memory_get_conversation", {"conversation_id": "0" * 64}),
    ("/api/chunks/" + "0" * 64 + "/context", "memory_get_context", {"chunk_id": "0" * 64}),
    ("/api/imports/nonsense", "memory_import_status", {"import_id": "nonsense"}),
    (
        "/api/imports/00000000-0000-4000-8000-000000000000",
        "memory_import_status",
        {"import_id": "00000000-0000-4000-8000-000000000000"},
    ),
]


@pytest.mark.parametrize(("path", "tool", "arguments"), READS)
async def test_reads_agree(path: str, tool: str, arguments: dict[str, Any]) -> None:
    async with door() as at:
        await writes.store(at.world.ports, "I saw a walrus", "How large was it?", tags=("sea",))
        await writes.store(at.world.ports, "The walrus again", tags=("zoo",), namespace="work")
        await drain(at.world)
        assert over_http(await at.client.get(path)) == await over_mcp(at, tool, arguments)


ID = "00000000-0000-4000-8000-000000000000"
BASE = {"base_revision_id": "0" * 64}
POSTED: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/conversations/read", "memory_get_conversations", {"requests": [{"conversation_id": ID}] * 21}),
    ("/api/conversations/read", "memory_get_conversations", {"requests": [{"conversation_id": ID}], "cursor": "x"}),
    ("/api/conversations/read", "memory_get_conversations", {"cursor": "nonsense"}),
    ("/api/conversations/resolve", "memory_resolve_conversations", {"requests": [{"title": "Title"}, {"title": "?"}]}),
    ("/api/conversations/resolve", "memory_resolve_conversations", {"requests": []}),
    ("/api/conversations/delete", "memory_delete_conversations", {"conversation_ids": [ID]}),
    ("/api/conversations/delete", "memory_delete_conversations", {"conversation_ids": [ID, ID]}),
    ("/api/namespaces/empty", "memory_empty_namespace", {"namespace": "a", "confirm_namespace": "b"}),
    ("/api/namespaces/empty", "memory_empty_namespace", {"namespace": "foreign", "confirm_namespace": "foreign"}),
    ("/api/context", "memory_build_context", {"task": "t"}),
    (
        "/api/context",
        "memory_build_context",
        {
            "task": "t",
            "required": [{"selector": {"title": "Title"}}],
            "budget": {"max_estimated_tokens": 1000, "max_serialized_bytes": 8192},
        },
    ),
]


@pytest.mark.parametrize(("path", "tool", "arguments"), POSTED)
async def test_calls_with_a_body_agree(path: str, tool: str, arguments: dict[str, Any]) -> None:
    async with door() as at:
        await writes.store(at.world.ports, "I saw a walrus")
        assert over_http(await at.client.post(path, json=arguments)) == await over_mcp(at, tool, arguments)


@pytest.mark.parametrize(
    ("door_name", "tool", "arguments"),
    [
        ("append", "memory_append", {**BASE, "messages": [{"role": "user", "content": "x"}]}),
        ("replace", "memory_replace", {**BASE, "messages": [{"role": "user", "content": "x"}]}),
        ("restore", "memory_restore_revision", {**BASE, "revision_id": "0" * 64}),
        ("tags", "memory_update_tags", {**BASE, "add": ["a"]}),
        ("tags", "memory_update_tags", {**BASE, "add": [" "]}),
        ("replace", "memory_replace", {"messages": []}),
    ],
)
async def test_refused_changes_of_a_conversation_agree(door_name: str, tool: str, arguments: dict[str, Any]) -> None:
    async with door() as at:
        written = await writes.store(at.world.ports, "I saw a walrus")
        for conversation in (written.conversation_id, ID, "nonsense"):
            path = f"/api/conversations/{conversation}/{door_name}"
            got = over_http(await at.client.post(path, json=arguments))
            assert got == await over_mcp(at, tool, {**arguments, "conversation_id": conversation})
            assert not got[0]


async def test_a_conversation_changed_over_http_is_changed_for_mcp() -> None:
    async with door() as at:
        written = await writes.store(at.world.ports, "one", "two")
        path = f"/api/conversations/{written.conversation_id}"
        base = {"base_revision_id": written.revision_id}
        replaced = (
            await at.client.post(f"{path}/replace", json={**base, "messages": [{"role": "user", "content": "three"}]})
        ).json()
        base = {"base_revision_id": replaced["revision_id"]}
        tagged = await at.client.post(f"{path}/tags", json={**base, "add": ["Sea"]})
        restored = await at.client.post(f"{path}/restore", json={**base, "revision_id": written.revision_id})
        listed = over_http(await at.client.get(f"{path}/revisions", params={"limit": 5}))
        read = over_http(
            await at.client.post(
                "/api/conversations/read", json={"requests": [{"conversation_id": written.conversation_id}]}
            )
        )
        assert (tagged.status_code, restored.status_code) == (200, 200)
        assert listed == await over_mcp(
            at, "memory_list_revisions", {"conversation_id": written.conversation_id, "limit": 5}
        )
        assert listed[1]["current_revision_id"] == written.revision_id
        (entry,) = read[1]["results"]
        assert [message["text"] for message in entry["messages"]] == ["one", "two"]
        assert entry["conversation"]["tags"] == ["sea"]


@pytest.mark.parametrize("options", [{}, {"offset": 1, "limit": 1}, {"branch": "all"}, {"format": "compact"}])
async def test_pages_of_a_conversation_agree(options: dict[str, Any]) -> None:
    async with door() as at:
        written = await writes.store(at.world.ports, "one", "two", "three")
        path = f"/api/conversations/{written.conversation_id}"
        arguments = {"conversation_id": written.conversation_id, **options}
        got = over_http(await at.client.get(path, params=options))
        assert got == await over_mcp(at, "memory_get_conversation", arguments)
        assert got[0]


async def test_the_context_of_a_hit_agrees() -> None:
    async with door() as at:
        await writes.store(at.world.ports, "before", "I saw a walrus", "after")
        await drain(at.world)
        (hit, *_) = (await at.client.get("/api/search", params={"q": "walrus"})).json()["results"]
        options = {"before": 1, "after": 0}
        got = over_http(await at.client.get(f"/api/chunks/{hit['chunkId']}/context", params=options))
        assert got == await over_mcp(at, "memory_get_context", {"chunk_id": hit["chunkId"], **options})
        assert got[0]


WRITES: list[dict[str, Any]] = [
    {"title": "T"},
    {"title": "", "messages": [{"role": "user", "content": "x"}]},
    {"title": "T", "messages": []},
    {"title": "T", "messages": [{"role": "user"}]},
    {"title": "T", "messages": [{"role": "user", "content": "x"}], "colour": "red"},
    {"title": "T", "messages": [{"role": "user", "content": "x"}], "tags": ["t" * 65]},
    {"title": "T", "namespace": " ", "messages": [{"role": "user", "content": "x"}]},
    {"title": "T", "messages": [{"role": "user", "content": "x", "timestamp": "yesterday"}]},
]


@pytest.mark.parametrize("body", WRITES)
async def test_refused_writes_agree(body: dict[str, Any]) -> None:
    async with door() as at:
        got = over_http(await at.client.post("/api/memories", json=body))
        assert got == await over_mcp(at, "memory_store", body)
        assert not got[0]


async def test_a_memory_stored_over_http_is_what_the_tool_would_have_stored() -> None:
    body = {
        "title": "Walrus",
        "tags": ["Sea"],
        "messages": [{"role": "user", "content": "hello"}],
        "verify": True,
        "idempotency_key": "once",
    }
    async with door() as at:
        stored = await at.client.post("/api/memories", json=body)
        replayed = await over_mcp(at, "memory_store", body)
        receipt = stored.json()
        more = {"base_revision_id": receipt["revision_id"], "messages": [{"role": "assistant", "content": "hi"}]}
        path = f"/api/conversations/{receipt['conversation_id']}"
        appended = await at.client.post(f"{path}/append", json=more)
        stale = over_http(await at.client.post(f"{path}/append", json=more))
        page = (await at.client.get(path)).json()
        twice = await at.client.post(f"{path}/append", json={**more, "conversation_id": receipt["conversation_id"]})
    assert (stored.status_code, appended.status_code) == (201, 200)
    assert receipt["durable"] is True
    assert replayed[1]["revision_id"] == receipt["revision_id"]
    assert [message["text"] for message in page["messages"]] == ["hello", "hi"]
    assert page["conversation"]["tags"] == ["sea"]
    assert (stale[0], stale[1]["code"]) == (False, "IMPORT_CONFLICT")
    assert twice.status_code == 400


async def test_a_write_that_is_too_large_is_told_how_many_items_would_fit() -> None:
    messages = [{"role": "user", "content": "x" * 1000}] * 900
    messages += [{"role": "user", "content": "é" * 100_000}]
    async with door() as at:
        answer = await at.client.post("/api/memories", json={"title": "T", "messages": messages})
        listed = (await at.client.get("/api/conversations")).json()["conversations"]
    error = answer.json()["error"]
    assert (answer.status_code, error["code"]) == (413, "REQUEST_TOO_LARGE")
    assert error["max_request_bytes"] == limits.MAX_INLINE_JSON_WRITE_BYTES
    assert 1 <= error["suggested_max_items"] < len(messages)
    assert listed == []


async def test_a_write_of_exactly_the_limit_passes() -> None:
    body = {"title": "T", "messages": [{"role": "user", "content": ""}, {"role": "user", "content": ""}]}
    missing = limits.MAX_INLINE_JSON_WRITE_BYTES - len(json.dumps(body))
    body["messages"] = [
        {"role": "user", "content": "x" * (missing // 2)},
        {"role": "user", "content": "x" * (missing - missing // 2)},
    ]
    at_limit, above = json.dumps(body), json.dumps(body) + " "
    assert len(at_limit) == limits.MAX_INLINE_JSON_WRITE_BYTES
    async with door() as at:
        refused = await at.client.post("/api/memories", content=above)
        taken = await at.client.post("/api/memories", content=at_limit)
    assert (refused.status_code, taken.status_code) == (413, 201)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"title": NaN}', b"\xff{}", b"[" * 100_000])
async def test_a_body_that_is_no_json_object_is_refused(body: bytes) -> None:
    async with door() as at:
        answer = await at.client.post("/api/memories", content=body)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "body")


async def test_a_message_too_large_for_any_tool_comes_whole_over_http() -> None:
    text = "ß" * 200_000
    async with door() as at:
        written = await writes.store(at.world.ports, "small", text, "small again")
        path = f"/api/conversations/{written.conversation_id}"
        ok, page = await over_mcp(
            at, "memory_get_conversation", {"conversation_id": written.conversation_id, "offset": 1, "limit": 1}
        )
        whole = (await at.client.get(path, params={"offset": 1, "limit": 1, "format": "compact"})).json()
    assert ok
    assert page["oversizedMessage"]["offset"] == 1
    assert [message["text"] for message in whole["messages"]] == [text]
    assert (whole["nextOffset"], "oversizedMessage" in whole) == (page["nextOffset"], False)
