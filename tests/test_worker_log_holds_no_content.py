"""The Worker's log is ids, counts, durations and codes: nothing that a person or an export brought."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.rigs import exports
from tests.rigs.worker.process import TOKEN, running
from tests.rigs.worker.world import rig_world
from tests.rigs.worlds import drain

pytestmark = pytest.mark.worker

SECRET = "xylophonic-marzipan"


async def test_a_day_of_work_leaves_lines_of_json_without_content() -> None:
    rig = running()
    world = await rig_world(rig)
    rig.log()
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=rig.url, headers=headers, timeout=60) as calls:
        message = {"role": "user", "content": SECRET}
        stored = await calls.post("/api/memories", json={"title": SECRET, "tags": [SECRET], "messages": [message]})
        assert stored.status_code == 201
        await calls.post("/api/memories", json={"title": SECRET, SECRET: 1})
        await calls.post("/api/memories", content=SECRET.encode())
        await calls.get("/api/search", params={"q": SECRET})
        await calls.get(f"/api/{SECRET}")
        export = exports.as_json([exports.conversation(SECRET, SECRET), {"id": SECRET, "mapping": SECRET}])
        named = {"X-Filename": f"{SECRET}.json"}
        assert (await calls.post("/api/imports/direct", content=export, headers=named)).status_code == 202
        await drain(world)
        for binding in ("MEMORY_DB", "MEMORY_BUCKET"):
            rig.steer("fault", binding=binding, at=0, when="before", forever=True, message=f"no {SECRET}")
            await calls.get("/api/search", params={"q": SECRET})
            await calls.get(f"/api/conversations/{stored.json()['conversation_id']}")
            rig.steer("fault")
    lines = rig.log()
    text = json.dumps(lines)
    assert SECRET not in text
    assert TOKEN not in text
    assert {line.get("event") for line in lines} == {"request", "turn"}
    requests = [line for line in lines if line["event"] == "request"]
    assert len(requests) == 10
    assert len({line["request_id"] for line in requests}) == 10
    assert {"route", "status", "duration_ms", "method"} <= set(requests[0])
    turns = [line for line in lines if line["event"] == "turn"]
    assert {line["queue"] for line in turns} == {"import", "index"}
    assert all(len(line["jobs"]) == len(line["outcomes"]) for line in turns)
