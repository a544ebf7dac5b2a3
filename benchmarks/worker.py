"""The Worker in its rig: what it weighs, how fast it starts, what memory and CPU it takes.

    python -m benchmarks.worker                     everything, as published; some minutes
    python -m benchmarks.worker --export-size 20M   a smaller import

Needs the Node packages of `make test-worker`. CPU is the service's own share: real requests and turns over stores that
play back what they answered once, in Pyodide and in CPython in turn; what calls to bindings cost is listed beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import inspect
import pickle
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from benchmarks import generate_export, worker_share
from benchmarks.common import publish, table
from tests.rigs import exports
from tests.rigs.http import SETTINGS
from tests.rigs.worker.process import CACHE, TOKEN, Rig, bundled, start
from tests.rigs.worker.world import rig_world
from tests.rigs.worlds import drain, memory_world
from tests.rigs.writes import store

from mempersist.jobs import Delivery
from mempersist.limits import MIB
from mempersist.service import Service
from mempersist_ops import bundle
from mempersist_ops.host.asgi import asgi_app
from mempersist_ops.stores.memory.system import ManualClock

HEAP_LIMIT_MIB = 96
SHARE_LIMIT = 2.0
_ROUNDS = 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--export-size", default="200M")
    parser.add_argument("--index-turns", type=int, default=40)
    options = parser.parse_args()
    weight = measure_weight()
    heap = asyncio.run(measure_heap(generate_export.parse_size(options.export_size), options.index_turns))
    share = asyncio.run(measure_share())
    calls = asyncio.run(measure_calls())
    tables = {
        "Weight and start": weight,
        f"Wasm heap, which never shrinks; at most {HEAP_LIMIT_MIB} MiB": heap,
        f"CPU of the service's own share; at most {SHARE_LIMIT:.0f} times CPython's": share,
        "Requests to the rig, warm, and their calls to bindings": calls,
    }
    if options.export_size == "200M":
        publish("worker", "The Worker", tables)
    else:
        print("\n\n".join(f"{title}\n\n{table(rows)}" for title, rows in tables.items()))
    failed = [row for row in heap if row["heap MiB"] > HEAP_LIMIT_MIB]
    failed += [row for row in share if row["times"] > SHARE_LIMIT]
    if failed:
        raise SystemExit(f"over the limit: {failed}")


def measure_weight() -> list[dict[str, Any]]:
    made = bundle.build(bundle.find_sources(), CACHE / "wheels")
    starts = []
    for _ in range(3):
        rig = start(bundled(), worlds=1)
        starts.append(rig.steer("meter"))
        rig.stop()
    return [
        {"what": "files", "value": len(made.modules)},
        {"what": "bytes", "value": made.size},
        {"what": "import of the app, ms", "value": round(min(each["importMs"] for each in starts))},
        {"what": "start of Pyodide from a snapshot, ms", "value": round(min(each["loadMs"] for each in starts))},
    ]


async def measure_heap(size: int, index_turns: int) -> list[dict[str, Any]]:
    rows = []

    def note(what: str, rig: Rig, **more: Any) -> None:
        rows.append({"when": what, "heap MiB": round(rig.steer("meter")["heap"] / MIB, 1), **more})

    rig = start(bundled(), worlds=2)
    note("after the import of the app", rig)
    await rig_world(rig)
    async with client(rig) as calls:
        half = {"role": "user", "content": "word " * ((MIB - 200) // 10)}
        stored = await calls.post("/api/memories", json={"title": "T", "messages": [half, half]})
        assert stored.status_code == 201
        note("after a store of 1 MiB", rig)
        sent = await calls.post("/api/imports/direct", content=b"[]" + b" " * (16 * MIB - 2), headers=named("a.json"))
        assert sent.status_code == 202
        note("after an upload of 16 MiB", rig)
    rig.stop()
    rig = start(bundled(), worlds=2)
    world = await rig_world(rig)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "export.zip"
        generate_export.write_zip(path, size)
        async with client(rig) as calls:
            await upload(calls, path)
            turns, seconds, most = await run_turns(rig, "import")
            note(f"import turns over an export of {size // 10**6} MB", rig, turns=turns, seconds=seconds, calls=most)
            turns, seconds, most = await run_turns(rig, "index", index_turns)
            note("index turns of 25 conversations", rig, turns=turns, seconds=seconds, calls=most)
    del world
    rig.stop()
    return rows


async def run_turns(rig: Rig, queue: str, most: int = 10**9) -> tuple[int, float, int]:
    """Turns of a queue, the seconds they took, and the most calls to bindings of one."""
    turns = calls = 0
    began = time.perf_counter()
    while turns < most and rig.steer("underway"):
        held = rig.steer("held")
        places = [place for place, one in enumerate(held) if one["queue"].endswith(queue)]
        if held and not places:
            break
        if not places:
            await asyncio.sleep(0.02)
            continue
        rig.steer("meter")
        await asyncio.to_thread(rig.steer, "deliver", places=places[: 1 if queue == "import" else 25], together=True)
        calls = max(calls, rig.steer("meter")["calls"])
        turns += 1
    return turns, round(time.perf_counter() - began, 1), calls


async def upload(calls: httpx.AsyncClient, path: Path) -> None:
    begun = (await calls.post("/api/imports/multipart", json={"filename": path.name})).json()
    number = 0
    with path.open("rb") as file:
        while part := file.read(16 * MIB):
            number += 1
            sent = await calls.put(f"/api/imports/{begun['importId']}/parts/{number}", content=part)
            assert sent.status_code == 200
    assert (await calls.post(f"/api/imports/{begun['importId']}/complete")).status_code == 202


def client(rig: Rig) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=rig.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=600)


def named(filename: str) -> dict[str, str]:
    return {"X-Filename": filename}


# ------------------------------------------------------------------ CPU


def call_of(tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def recordings() -> list[tuple[worker_share.Scenario, worker_share.Played]]:
    """Each scenario with what its stores answered."""
    world = await memory_world()
    assert isinstance(world.clock, ManualClock)
    generator = generate_export.ExportGenerator(7)
    export = [generator.conversation() for _ in range(60)]
    found: list[tuple[worker_share.Scenario, worker_share.Played]] = []

    async def record(name: str, message: Any = None, queue: Any = None, deliveries: tuple[Delivery, ...] = ()) -> None:
        scenario: worker_share.Scenario = (name, message, queue, deliveries)
        played: worker_share.Played = []
        await worker_share.perform(scenario, worker_share.recording(world.ports, played, name))
        found.append((scenario, played))

    async with door_of(world.ports) as calls:
        sent = await calls.post(
            "/api/imports/direct", content=exports.as_json(export), headers=named("conversations.json")
        )
        assert sent.status_code == 202
    for turn in range(3):
        (delivery,) = await world.queue.receive("import", limit=1)
        if turn == 2:
            await record("import turn of 25 conversations", None, "import", (delivery,))
        else:
            await worker_share.perform(("", None, "import", (delivery,)), world.ports)
    await drain(world)
    for number in range(25):
        texts = [message_text(item) for item in export[number]["mapping"].values()]
        await store(world.ports, *[text for text in texts if text][:40])
    deliveries = await world.queue.receive("index", limit=25)
    await record("index turn of 25 conversations", None, "index", tuple(deliveries))
    await drain(world)
    rows = await world.ports.catalog.query(
        "SELECT conversation_id FROM conversations ORDER BY message_count DESC, conversation_id LIMIT 1"
    )
    await record("ping", {"jsonrpc": "2.0", "id": 1, "method": "ping"})
    await record("tools/list", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    await record("memory_stats", call_of("memory_stats"))
    await record(
        "memory_get_conversation", call_of("memory_get_conversation", conversation_id=rows[0]["conversation_id"])
    )
    await record("memory_search", call_of("memory_search", query="how does the report count the rows that are missing"))
    messages = [{"role": "user", "content": "a short note to keep"}]
    await record("memory_store", call_of("memory_store", title="T", messages=messages))
    large = [{"role": "user", "content": "word " * 2000} for _ in range(100)]
    await record("memory_store of 1 MB", call_of("memory_store", title="T", messages=large))
    return found


def message_text(node: Any) -> str:
    parts = ((node.get("message") or {}).get("content") or {}).get("parts") or []
    return "\n".join(part for part in parts if isinstance(part, str))


def door_of(ports: Any) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(asgi_app(Service(ports, SETTINGS)))
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.AsyncClient(transport=transport, base_url=SETTINGS.public_url, headers=headers)


async def measure_share() -> list[dict[str, Any]]:
    played = await recordings()
    model = (await memory_world()).ports.embedder.model
    rig = start(bundled(), worlds=1)
    source = inspect.getsource(worker_share)

    def inside(rounds: int) -> dict[str, float]:
        data = base64.b64encode(pickle.dumps((played, model, rounds))).decode()
        answered = rig.steer("run", source=source, data=data)["result"]
        found: dict[str, float] = pickle.loads(base64.b64decode(answered))
        return found

    best: dict[str, tuple[float, float]] = {}
    for _ in range(3):
        here = await worker_share.main((played, model, _ROUNDS))
        there = await asyncio.to_thread(inside, _ROUNDS)
        for name, own in here.items():
            before = best.get(name, (own, there[name]))
            best[name] = (min(own, before[0]), min(there[name], before[1]))
    rig.stop()
    return [
        {
            "work": scenario[0],
            "CPython ms": round(best[scenario[0]][0], 2),
            "Pyodide ms": round(best[scenario[0]][1], 2),
            "times": round(best[scenario[0]][1] / best[scenario[0]][0], 2),
            "calls to stores": len(calls),
        }
        for scenario, calls in played
    ]


async def measure_calls() -> list[dict[str, Any]]:
    """Requests to the rig, warm: the whole, and the part with a call to a binding under way."""
    rig = start(bundled(), worlds=2)
    world = await rig_world(rig)
    generator = generate_export.ExportGenerator(7)
    async with client(rig) as calls:
        export = exports.as_json([generator.conversation() for _ in range(60)])
        await calls.post("/api/imports/direct", content=export, headers=named("conversations.json"))
        await drain(world)
        listed = (await calls.get("/api/conversations")).json()["conversations"]
        asked: dict[str, Callable[[], Any]] = {
            "GET /healthz": lambda: calls.get("/healthz"),
            "memory_stats": lambda: calls.post("/mcp", json=call_of("memory_stats")),
            "memory_get_conversation": lambda: calls.post(
                "/mcp", json=call_of("memory_get_conversation", conversation_id=listed[0]["id"])
            ),
            "memory_search": lambda: calls.post("/mcp", json=call_of("memory_search", query="rows that are missing")),
        }
        rows = []
        for name, ask in asked.items():
            times, waits, count = [], [], 0
            for _ in range(_ROUNDS):
                rig.steer("meter")
                began = time.perf_counter()
                assert (await ask()).status_code == 200
                times.append((time.perf_counter() - began) * 1000)
                meter = rig.steer("meter")
                waits.append(meter["milliseconds"])
                count = meter["calls"]
            rows.append(
                {
                    "request": name,
                    "ms": round(statistics.median(times), 1),
                    "of it in bindings": round(statistics.median(waits), 1),
                    "calls": count,
                }
            )
    rig.stop()
    return rows


if __name__ == "__main__":
    main()
