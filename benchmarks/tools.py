"""p50, p95 and bytes of every tool on an archive of 100,000 messages: on the local server and on the Worker in its rig.

    python -m benchmarks.tools                     as published; some minutes
    python -m benchmarks.tools --messages 5000     a smaller archive

Both hosts are asked over HTTP and hold the same archive, imported from the same export. The Worker's numbers include
the rig's own way to its stores, some milliseconds a call.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
from benchmarks.common import publish, table
from tests.rigs import exports
from tests.rigs.command import answer, serving
from tests.rigs.worker.process import TOKEN, bundled, start
from tests.rigs.worker.world import rig_world
from tests.rigs.worlds import drain

from mempersist.mcp.registry import TOOLS

PUBLISHED_MESSAGES = 100_000
PER_CONVERSATION = 50
_READS, _WRITES = 30, 12
_UPLOAD_BYTES = 15 * 1024 * 1024
_TEXT = "report row table index harvest ledger walrus bakery route season engine border letter winter number copper"
_WORDS = _TEXT.split()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=PUBLISHED_MESSAGES)
    options = parser.parse_args()
    files = list(export_files(options.messages))
    tables = {
        f"Local server, {options.messages:,} messages": asyncio.run(measure_local(files)),
        f"Worker in its rig, {options.messages:,} messages": asyncio.run(measure_worker(files)),
    }
    if options.messages == PUBLISHED_MESSAGES:
        publish("tools", "The tools", tables)
    else:
        print("\n\n".join(f"{title}\n\n{table(rows)}" for title, rows in tables.items()))


def export_files(messages: int) -> Iterator[bytes]:
    """Exports of at most 15 MiB that together hold so many messages."""
    held: list[Any] = []
    size = 0
    for number in range(-(-messages // PER_CONVERSATION)):
        texts = [said(number, place) for place in range(PER_CONVERSATION)]
        made = exports.conversation(f"c{number:06}", *texts, title=f"Conversation {number}", updated=1.76e9 + number)
        held.append(made)
        size += len(json.dumps(made))
        if size > _UPLOAD_BYTES - 200_000:
            yield exports.as_json(held)
            held, size = [], 0
    if held:
        yield exports.as_json(held)


def said(number: int, place: int) -> str:
    words = [_WORDS[(number * 7 + place * (3 + step) + step * step) % len(_WORDS)] for step in range(12)]
    return f"In case {number} step {place}: " + " ".join(words) + "."


async def measure_local(files: list[bytes]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as directory:
        data = Path(directory) / "data"
        for number, content in enumerate(files):
            path = Path(directory) / f"conversations-{number:03}.json"
            await asyncio.to_thread(path.write_bytes, content)
            await asyncio.to_thread(answer, "import", path, "--data-dir", data)
        with serving(data) as server:
            async with connected(server.url, server.token) as client:
                return await measure(client)


async def measure_worker(files: list[bytes]) -> list[dict[str, Any]]:
    rig = start(bundled(), worlds=2)
    try:
        world = await rig_world(rig)
        async with connected(rig.url, TOKEN) as client:
            for content in files:
                headers = {"X-Filename": "conversations.json"}
                sent = await client.post("/api/imports/direct", content=content, headers=headers)
                assert sent.status_code == 202, sent.text
                await drain(world)
            rig.steer("mode", mode="deliver")
            return await measure(client)
    finally:
        rig.stop()


@asynccontextmanager
async def connected(url: str, token: str) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(base_url=url, headers=headers, timeout=600) as client:
        yield client


async def measure(client: httpx.AsyncClient) -> list[dict[str, Any]]:
    rows = []
    for tool in TOOLS:
        times, sizes = [], []
        for run in range(_READS if tool.read_only else _WRITES):
            arguments = await arguments_for(client, tool.name, run)
            began = time.perf_counter()
            size = await call(client, tool.name, arguments)
            times.append((time.perf_counter() - began) * 1000)
            sizes.append(size)
        rows.append(
            {
                "tool": tool.name,
                "p50 ms": round(statistics.median(times), 1),
                "p95 ms": round(sorted(times)[int(len(times) * 0.95)], 1),
                "bytes": round(statistics.median(sizes)),
            }
        )
    return rows


async def call(client: httpx.AsyncClient, name: str, arguments: dict[str, Any]) -> int:
    """Call a tool that must succeed; the bytes of the answer."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    answered = await client.post("/mcp", json=message)
    result = answered.json()["result"]
    assert result["isError"] is False, (name, result["content"])
    return len(answered.content)


async def arguments_for(client: httpx.AsyncClient, name: str, run: int) -> dict[str, Any]:
    """Typical arguments, of another conversation each time."""
    conversation = f"Conversation {run * 7 % 19}"
    query = f"case {run * 7 % 19} {_WORDS[run % len(_WORDS)]} {_WORDS[(run + 5) % len(_WORDS)]}"
    if name in {"memory_list_namespaces", "memory_stats", "memory_get_capabilities"}:
        return {}
    if name in {"memory_search", "search"}:
        return {"query": query}
    if name == "memory_list_conversations":
        return {"limit": 20}
    if name == "memory_import_status":
        return {"import_id": (await client.get("/api/imports")).json()["imports"][0]["id"]}
    if name == "memory_resolve_conversations":
        return {"requests": [{"title": conversation}]}
    if name == "memory_store":
        return {"title": f"Stored {run}", "messages": [{"role": "user", "content": "a short note to keep"}]}
    if name == "memory_build_context":
        required = [{"selector": {"title": conversation}, "mode": "tail"}]
        budget = {"max_estimated_tokens": 8000, "max_serialized_bytes": 40_000}
        return {"task": "a benchmark", "required": required, "retrieve": [{"query": query}], "budget": budget}
    if name == "memory_get_context":
        hits = (await client.get("/api/search", params={"q": query})).json()["results"]
        return {"chunk_id": hits[0]["chunkId"]}
    if name in {"memory_get_conversation", "memory_list_revisions", "memory_get_conversations", "fetch"}:
        found = await resolved(client, conversation)
        if name == "memory_get_conversations":
            return {"requests": [{"conversation_id": found["conversation_id"]}]}
        return {"id" if name == "fetch" else "conversation_id": found["conversation_id"]}
    return await write_arguments(client, name, run)


async def resolved(client: httpx.AsyncClient, title: str) -> Any:
    answered = await client.post("/api/conversations/resolve", json={"requests": [{"title": title}]})
    return answered.json()["results"][0]["matches"][0]


async def write_arguments(client: httpx.AsyncClient, name: str, run: int) -> dict[str, Any]:
    """Arguments of a write on a conversation that was stored for it."""
    namespace = f"scratch-{run}" if name == "memory_empty_namespace" else "scratch"
    message = {"role": "user", "content": "a note that will be changed"}
    stored = await client.post(
        "/api/memories", json={"title": f"For {name} {run}", "namespace": namespace, "messages": [message]}
    )
    receipt = stored.json()
    conversation, revision = receipt["conversation_id"], receipt["revision_id"]
    if name == "memory_append":
        return {"conversation_id": conversation, "base_revision_id": revision, "messages": [message]}
    if name == "memory_replace":
        return {"conversation_id": conversation, "base_revision_id": revision, "messages": [message]}
    if name == "memory_restore_revision":
        more = {"base_revision_id": revision, "messages": [message]}
        appended = await client.post(f"/api/conversations/{conversation}/append", json=more)
        base = appended.json()["revision_id"]
        return {"conversation_id": conversation, "base_revision_id": base, "revision_id": revision}
    return {
        "memory_update_tags": {"conversation_id": conversation, "base_revision_id": revision, "add": ["kept"]},
        "memory_copy_conversations": {
            "requests": [{"conversation_id": conversation, "revision_id": revision}],
            "target_namespace": "copies",
            "create_target_namespace": True,
            "idempotency_key": f"copy-{run}",
        },
        "memory_delete_conversations": {"conversation_ids": [conversation]},
        "memory_empty_namespace": {"namespace": namespace, "confirm_namespace": namespace},
    }[name]


if __name__ == "__main__":
    main()
