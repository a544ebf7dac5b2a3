"""Every answer of every tool is what its output schema and the protocol say, in each era."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from mcp_types.methods import validate_server_result

from mempersist import limits
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.mcp import budget
from mempersist.mcp.registry import TOOLS
from tests.rigs import writes
from tests.rigs.conversations import conversation, node
from tests.rigs.hosts import new_world
from tests.rigs.mcp import LEGACY, MODERN, Client, client
from tests.rigs.worlds import drain

EVERY_HOST = True

EXPORT = json.dumps(
    [
        {
            "id": "c1",
            "title": "Barometers",
            "current_node": "n1",
            "mapping": {
                "n1": {
                    "id": "n1",
                    "parent": None,
                    "message": {
                        "author": {"role": "user"},
                        "content": {"content_type": "text", "parts": ["Which barometer?"]},
                    },
                }
            },
        },
        {"title": "broken", "mapping": 5},
    ]
).encode()


async def filled() -> tuple[Client, dict[str, list[dict[str, Any]]]]:
    """A client of a system that holds something of everything, and calls of every tool that must succeed."""
    world = await new_world()
    nodes = [node("a", None), node("b", "a", "one barometer"), node("c", "a", "another", role="assistant")]
    (outcome,) = await writes.bring(world.ports, conversation("s1", nodes))
    stored = await writes.store(world.ports, "A barometer", "It falls.", tags=["weather"])
    accepted = await uploads.direct(
        world.ports, OWNER, filename="conversations.json", namespace=None, body=EXPORT, size=len(EXPORT)
    )
    await drain(world)
    at = await client(world.ports)
    hit = (await at.answer("memory_search", query="barometer"))["results"][0]
    message = {"role": "user", "content": "x", "timestamp": "2026-01-01T00:00:00Z"}
    known = {"conversation_id": stored.conversation_id}
    first = await writes.store(world.ports, "to be replaced", namespace="drafts")
    second = await writes.replace(world.ports, first, "x", timestamp="2026-01-01T00:00:00Z")
    await writes.restore(world.ports, second, first.revision_id)
    rewritten = {"conversation_id": first.conversation_id}
    return at, {
        "memory_search": [{"query": "barometer"}, {"query": "nothing like it"}, {"query": "?"}],
        "memory_get_context": [{"chunk_id": hit["chunkId"]}, {"chunk_id": hit["chunkId"], "format": "compact"}],
        "memory_get_conversation": [
            known,
            {**known, "format": "compact", "offset": 1},
            {"conversation_id": outcome.conversation_id, "branch": "all"},
        ],
        "memory_get_conversations": [
            {"requests": [known, {"conversation_id": outcome.conversation_id, "branch": "all"}]},
            {"requests": [known, {"conversation_id": "0" * 64}], "max_serialized_bytes": 4096},
        ],
        "memory_list_conversations": [{}, {"limit": 1}, {"tags": ["weather"], "tag_mode": "any"}],
        "memory_list_revisions": [known, {**known, "limit": 1}],
        "memory_resolve_conversations": [{"requests": [{"title": "Title"}, {"title": "nothing like it"}]}],
        "memory_build_context": [
            {
                "task": "Forecast",
                "required": [{"selector": known}],
                "retrieve": [{"query": "barometer"}],
                "budget": {"max_estimated_tokens": most, "max_serialized_bytes": 16_000},
            }
            for most in (1, 1000)
        ],
        "memory_list_namespaces": [{}],
        "memory_stats": [{}],
        "memory_store": [
            {"title": "T", "messages": [message]},
            {"title": "T", "messages": [message], "verify": True, "idempotency_key": "k"},
            {"title": "T", "messages": [message], "verify": True, "idempotency_key": "k"},
            {"title": "T", "messages": [{**message, "content": "y" * 60_000}], "verify": True},
        ],
        "memory_append": [
            {**known, "base_revision_id": stored.revision_id, "messages": [message], "idempotency_key": "a"},
            {**known, "base_revision_id": stored.revision_id, "messages": [message], "idempotency_key": "a"},
        ],
        "memory_replace": [
            {**rewritten, "base_revision_id": first.revision_id, "messages": [message], "verify": True},
        ],
        "memory_restore_revision": [
            {**rewritten, "base_revision_id": second.revision_id, "revision_id": first.revision_id, "verify": True},
            {**rewritten, "base_revision_id": second.revision_id, "revision_id": first.revision_id},
        ],
        "memory_copy_conversations": [
            {
                "target_namespace": "copies",
                "create_target_namespace": True,
                "idempotency_key": "c",
                "requests": [{"conversation_id": outcome.conversation_id}, {"conversation_id": "0" * 64}],
                "verify": True,
            },
        ],
        "memory_update_tags": [
            {**rewritten, "base_revision_id": first.revision_id, "add": ["new"], "idempotency_key": "t"},
            {**rewritten, "base_revision_id": first.revision_id, "add": ["new"], "idempotency_key": "t"},
        ],
        "memory_delete_conversations": [
            {"conversation_ids": [rewritten["conversation_id"], "0" * 64]},
        ],
        "memory_empty_namespace": [{"namespace": "copies", "confirm_namespace": "copies"}],
        "memory_import_status": [{"import_id": accepted.import_id}],
        "memory_get_capabilities": [{}],
        "search": [{"query": "barometer"}, {"query": "nothing like it"}],
        "fetch": [{"id": stored.conversation_id}, {"id": f"{stored.conversation_id}:1"}],
    }


async def test_answers_conform_to_the_output_schema_and_equal_their_text() -> None:
    at, calls = await filled()
    assert list(calls) == [tool.name for tool in TOOLS]
    for tool in TOOLS:
        validator = jsonschema.Draft202012Validator(tool.output_schema)
        for arguments in calls[tool.name]:
            result = await at.call(tool.name, **arguments)
            assert result["isError"] is False, result
            validator.validate(result["structuredContent"])
            (block,) = result["content"]
            assert json.loads(block["text"]) == result["structuredContent"]
            assert budget.size(result["structuredContent"]) <= tool.max_response_bytes


@pytest.mark.parametrize("version", [*LEGACY, MODERN])
async def test_good_results_and_refusals_conform_to_the_specification_of_each_era(version: str) -> None:
    at, calls = await filled()
    calls["memory_search"].append({"query": ""})
    for name, every in calls.items():
        for arguments in every:
            params = {"name": name, "arguments": arguments}
            if version == MODERN:
                answer = await at.modern("tools/call", params)
            else:
                answer = await at.legacy("tools/call", params, version)
            validate_server_result("tools/call", version, answer["result"])


async def test_a_page_of_the_list_carries_the_cursor_of_the_next() -> None:
    at, _ = await filled()
    seen: list[str] = []
    cursor = None
    while True:
        page = await at.answer("memory_list_conversations", limit="1", cursor=cursor)
        seen += [row["id"] for row in page["conversations"]]
        cursor = page["nextCursor"]
        if cursor is None:
            break
    everything = await at.answer("memory_list_conversations")
    assert seen == [row["id"] for row in everything["conversations"]]
    assert len(seen) == 4


async def test_an_imports_counts_add_up_and_every_finding_has_its_reason() -> None:
    at, calls = await filled()
    (arguments,) = calls["memory_import_status"]
    status = await at.answer("memory_import_status", **arguments)
    counts = status["counts"]["conversations"]
    assert counts["found"] == counts["imported"] + counts["unchanged"] + counts["skipped"] + counts["failed"] == 2
    assert counts["imported"] == 1
    (left_out,) = [finding for finding in status["findings"] if finding["severity"] != "note"]
    assert left_out["code"]
    assert left_out["message"]


async def test_capabilities_are_the_limits_and_bounds_that_are_enforced() -> None:
    answer = await (await client()).answer("memory_get_capabilities")
    assert answer == {
        "protocol_version": "1",
        "capabilities_version": "2026-09-28",
        "limits": {
            "max_tool_output_bytes": 65_536,
            "recommended_tool_output_bytes": 49_152,
            "max_inline_json_write_bytes": 1_048_576,
            "max_direct_import_bytes": 16_777_216,
            "max_multipart_part_bytes": 16_777_216,
            "max_message_content_chars": 1_000_000,
            "max_receipt_bytes": 49_152,
        },
        "tools": answer["tools"],
        "features": {
            "revision_pinning": True,
            "verified_writes": True,
            "cursor_reads": True,
            "message_keys": False,
            "atomic_multi_conversation_commit": False,
        },
    }
    assert list(answer["tools"]) == [tool.name for tool in TOOLS]
    assert answer["tools"]["memory_search"]["max_items"] == limits.MAX_SEARCH_RESULTS
    assert answer["tools"]["memory_search"]["default_items"] == limits.DEFAULT_SEARCH_RESULTS
    assert answer["tools"]["memory_store"] == {
        "max_items": limits.MAX_STORE_MESSAGES,
        "max_request_bytes": limits.MAX_INLINE_JSON_WRITE_BYTES,
        "max_response_bytes": limits.MAX_RECEIPT_BYTES,
        "supports_verify": True,
    }
    assert answer["tools"]["memory_list_conversations"]["supports_cursor"] is True
    assert answer["tools"]["memory_copy_conversations"]["max_items"] == limits.MAX_COPY_REQUESTS
    assert answer["tools"]["memory_delete_conversations"]["max_items"] == limits.MAX_DELETE_CONVERSATIONS
    for name in ("store", "append", "replace", "restore_revision"):
        assert answer["tools"][f"memory_{name}"]["supports_verify"] is True
    assert answer["tools"]["memory_copy_conversations"]["supports_verify"] is True
