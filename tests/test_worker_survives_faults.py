"""Promises 4 and 6 on the Worker: a store that fails at any one call, before it took effect or after, loses nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from mempersist import limits
from tests.rigs import exports
from tests.rigs.checks import is_whole
from tests.rigs.worker.process import TOKEN, Rig, running
from tests.rigs.worker.world import rig_world
from tests.rigs.worlds import World, drain

pytestmark = pytest.mark.worker

Ask = Callable[[httpx.AsyncClient, Any], Awaitable[httpx.Response]]
STORE = {"title": "New", "messages": [{"role": "user", "content": "brand new words"}], "idempotency_key": "s"}
_WAIT_MS = (limits.INTENT_GRACE_SECONDS + limits.LEASE_SECONDS + 700) * 1000
"""Longer than every grace, lease and backoff."""


def client() -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    return httpx.AsyncClient(base_url=running().url, headers=headers, timeout=60)


async def fresh(**options: object) -> tuple[Rig, World, Any]:
    """A new world with one conversation in it; its receipt."""
    rig = running()
    world = await rig_world(rig, **options)
    async with client() as calls:
        messages = [{"role": "user", "content": "first words"}]
        base = await calls.post("/api/memories", json={"title": "Base", "messages": messages})
    assert base.status_code == 201
    await drain(world)
    return rig, world, base.json()


async def store(calls: httpx.AsyncClient, _: Any) -> httpx.Response:
    return await calls.post("/api/memories", json=STORE)


async def append(calls: httpx.AsyncClient, base: Any) -> httpx.Response:
    message = {"role": "assistant", "content": "appended words"}
    more = {"base_revision_id": base["revision_id"], "messages": [message], "idempotency_key": "a"}
    return await calls.post(f"/api/conversations/{base['conversation_id']}/append", json=more)


async def read(calls: httpx.AsyncClient, base: Any) -> httpx.Response:
    return await calls.get(f"/api/conversations/{base['conversation_id']}")


async def find(calls: httpx.AsyncClient, _: Any) -> httpx.Response:
    return await calls.get("/api/search", params={"q": "first words"})


async def settled(rig: Rig, world: World) -> None:
    """What time brings: leases and graces run out, the clock's event comes, the queues are handled."""
    for _ in range(2):
        world.clock.advance(_WAIT_MS)
        rig.steer("scheduled")
        await drain(world)


async def each_call_failing(ask: Ask, when: str, totals: Any) -> int:
    """Run ``ask`` in new worlds with its calls to stores failing in turn, repeat it as a client would, and check all
    that is there; how many calls there were."""
    at = 0
    while True:
        rig, world, base = await fresh()
        async with client() as calls:
            rig.steer("fault", binding="*", at=at, when=when)
            first = await ask(calls, base)
            fired = rig.steer("meter")["fired"]
            rig.steer("fault")
            assert first.status_code in {200, 201, 503}, first.text
            again = await ask(calls, base)
            assert again.status_code in {200, 201}, again.text
            if first.status_code != 503 and "revision_id" in first.json():
                assert first.json()["revision_id"] == again.json()["revision_id"]
        await settled(rig, world)
        await is_whole(world)
        async with client() as calls:
            assert (await calls.get("/api/stats")).json()["totals"] == totals, at
        if not fired:
            return at
        at += 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("ask", "conversations", "messages"), [(store, 2, 2), (append, 1, 2)])
async def test_a_write_is_done_once_whatever_call_fails(ask: Ask, conversations: int, messages: int, when: str) -> None:
    totals = {"conversations": conversations, "messages": messages}
    assert await each_call_failing(ask, when, totals) > 10


@pytest.mark.parametrize("ask", [read, find])
async def test_a_read_whose_store_fails_says_so_and_works_again(ask: Ask) -> None:
    rig, _, base = await fresh()
    at = 0
    while True:
        async with client() as calls:
            rig.steer("fault", binding="*", at=at, when="before")
            first = await ask(calls, base)
            fired = rig.steer("meter")["fired"]
            rig.steer("fault")
            assert first.status_code in {200, 503}
            assert (await ask(calls, base)).status_code == 200
        assert "injected" not in first.text
        if not fired:
            return
        at += 1


async def upload(calls: httpx.AsyncClient) -> str:
    headers = {"X-Filename": "export.zip"}
    accepted = await calls.post("/api/imports/direct", content=exports.ugly_zip(), headers=headers)
    assert accepted.status_code == 202
    return str(accepted.json()["importId"])


async def outcome(calls: httpx.AsyncClient, import_id: str) -> Any:
    """What an import comes to, but for its id and its times."""
    receipt = (await calls.get(f"/api/imports/{import_id}/receipt")).json()
    stats = (await calls.get("/api/stats")).json()
    left_out = {"importId", "createdAt", "completedAt", "objectKey"}
    return {name: value for name, value in receipt.items() if name not in left_out}, stats


async def imported(binding: str = "", at: int = 0, when: str = "") -> tuple[Any, bool]:
    """The outcome of an import in a new world with one call failing, and whether that call was made."""
    rig, world, _ = await fresh()
    async with client() as calls:
        import_id = await upload(calls)
        if binding:
            rig.steer("fault", binding=binding, at=at, when=when)
        await drain(world)
        fired = bool(rig.steer("meter")["fired"])
        rig.steer("fault")
        await settled(rig, world)
        return await outcome(calls, import_id), fired


CALLS = {
    "MEMORY_DB": (0, 3, 8, 30),
    "MEMORY_BUCKET": (0, 3, 8, 20),
    "MEMORY_VECTOR": (0,),
    "AI": (0,),
    "IMPORT_QUEUE": (0, 3),
}
"""Calls to each binding that an import makes, some of them; the long test fails all."""


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("binding", CALLS)
async def test_an_import_ends_the_same_when_a_call_fails_on_the_way(binding: str, when: str) -> None:
    expected, _ = await imported()
    for at in CALLS[binding]:
        found, fired = await imported(binding, at, when)
        assert fired, at
        assert found == expected, at


@pytest.mark.long
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("binding", CALLS)
async def test_an_import_ends_the_same_whatever_call_fails(binding: str, when: str) -> None:
    expected, _ = await imported()
    at = 0
    fired = True
    while fired:
        found, fired = await imported(binding, at, when)
        assert found == expected, at
        at += 1
    assert at > 1


async def test_an_upload_is_accepted_once_whatever_call_fails_and_is_then_imported() -> None:
    at = 0
    fired = True
    while fired:
        rig, world, _ = await fresh()
        headers = {"X-Filename": "c.json"}
        body = exports.as_json([exports.conversation("walrus", "about the walrus")])
        async with client() as calls:
            rig.steer("fault", binding="*", at=at, when="after" if at % 2 else "before")
            first = await calls.post("/api/imports/direct", content=body, headers=headers)
            fired = bool(rig.steer("meter")["fired"])
            rig.steer("fault")
            assert first.status_code in {202, 503}, first.text
            if first.status_code == 503:
                assert (await calls.post("/api/imports/direct", content=body, headers=headers)).status_code == 202
            await settled(rig, world)
            found = (await calls.get("/api/search", params={"q": "walrus"})).json()["results"]
            totals = (await calls.get("/api/stats")).json()["totals"]
        assert [hit["title"] for hit in found] == [found[0]["title"]], at
        assert totals == {"conversations": 2, "messages": 2}, at
        at += 1
    assert at > 4
