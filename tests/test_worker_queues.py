"""The Worker's consumers: a message that comes twice, late, never or broken changes nothing but the log."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from mempersist import limits
from tests.rigs import exports
from tests.rigs.checks import is_whole
from tests.rigs.worker.process import TOKEN, Rig, running
from tests.rigs.worker.world import rig_world
from tests.rigs.worlds import World, drain
from tests.rigs.writes import store

pytestmark = pytest.mark.worker


def until(said: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + 20
    while not (value := said()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def held(rig: Rig, count: int) -> list[Any]:
    """The messages that wait, once there are ``count``."""
    return until(lambda: found if len(found := rig.steer("held")) >= count else None)  # type: ignore[no-any-return]


async def value(world: World, sql: str, *params: Any) -> Any:
    (row,) = await world.ports.catalog.query(sql, params)
    return next(iter(row.values()))


async def three_conversations() -> tuple[Rig, World]:
    rig = running()
    world = await rig_world(rig)
    for text in ("one walrus", "two otters", "three seals"):
        await store(world.ports, text)
    held(rig, 3)
    return rig, world


async def indexed(world: World) -> int:
    return int(await value(world, "SELECT count(*) FROM index_state WHERE status = 'indexed'"))


@pytest.mark.parametrize("order", [[2, 0, 1], [0, 0, 1, 1, 2, 2, 0], [1, 2, 0, 2, 1]])
async def test_messages_twice_and_out_of_order_index_each_conversation_once(order: list[int]) -> None:
    rig, world = await three_conversations()
    results = rig.steer("deliver", places=order)
    assert {decision["action"] for result in results for decision in result["decisions"].values()} == {"ack"}
    assert await indexed(world) == 3
    assert rig.steer("meter")["texts"] == 3
    await is_whole(world)


async def test_a_message_that_was_lost_is_sent_again_by_the_clock() -> None:
    rig, world = await three_conversations()
    rig.steer("lose")
    rig.steer("scheduled")
    assert rig.steer("held") == []
    world.clock.advance((limits.INTENT_GRACE_SECONDS + 1) * 1000)
    rig.steer("scheduled")
    held(rig, 3)
    await drain(world)
    assert await indexed(world) == 3
    await is_whole(world)


async def test_an_outage_of_the_catalog_parks_nothing_and_everything_is_done_after_it() -> None:
    rig = running()
    world = await rig_world(rig)
    rig.steer("mode", mode="deliver")
    rig.steer("fault", binding="MEMORY_DB", at=12, when="before", forever=True)
    messages = [{"role": "user", "content": "a walrus"}]
    headers = {"Authorization": f"Bearer {TOKEN}"}
    async with httpx.AsyncClient(base_url=rig.url, headers=headers, timeout=60) as calls:
        await calls.post("/api/memories", json={"title": "T", "messages": messages, "idempotency_key": "k"})
        await asyncio.sleep(1)
        rig.steer("fault")
        again = await calls.post("/api/memories", json={"title": "T", "messages": messages, "idempotency_key": "k"})
    assert again.status_code == 201
    rig.steer("mode", mode="hold")
    world.clock.advance(1_000_000)
    rig.steer("scheduled")
    await drain(world)
    assert await value(world, "SELECT count(*) FROM jobs") == 0
    assert await indexed(world) == 1
    await is_whole(world)


async def test_a_message_that_nobody_of_ours_sent_is_dropped() -> None:
    rig = running()
    world = await rig_world(rig)
    await world.ports.queue.send("index", [{"version": 2, "job_id": "x"}, {"version": 1}, {"version": 1, "job_id": 7}])
    held(rig, 3)
    await drain(world)
    assert rig.steer("held") == []


async def test_a_worker_that_cannot_start_leaves_its_messages_for_later() -> None:
    rig, world = await three_conversations()
    rig.steer("cold")
    rig.steer("fault", binding="MEMORY_DB", at=0, when="before")
    (result,) = rig.steer("deliver", places=[0], keep=True)
    rig.steer("fault")
    assert [decision["action"] for decision in result["decisions"].values()] == ["retry"]
    await drain(world)
    assert await indexed(world) == 3


async def test_a_worker_ahead_of_its_schema_says_which_migration_is_missing() -> None:
    rig, world = await three_conversations()
    newest = await value(world, "SELECT name FROM schema_migrations ORDER BY version DESC LIMIT 1")
    await world.ports.catalog.query("DELETE FROM schema_migrations WHERE name = ?", (newest,))
    rig.steer("cold")
    for path, headers in (("/readyz", {}), ("/api/stats", {"Authorization": f"Bearer {TOKEN}"})):
        status, body = rig.request("GET", path, headers=headers)
        assert (status, newest in body.decode()) == (503, True)
    assert rig.request("GET", "/healthz")[0] == 200
    (result,) = rig.steer("deliver", places=[0], keep=True)
    assert [decision["action"] for decision in result["decisions"].values()] == ["retry"]


async def test_a_worker_whose_catalog_was_lost_does_not_serve_an_empty_one() -> None:
    rig, world = await three_conversations()
    await world.ports.catalog.query("DELETE FROM accounts")
    rig.steer("cold")
    status, body = rig.request("GET", "/api/stats", headers={"Authorization": f"Bearer {TOKEN}"})
    assert (status, "rebuild-catalog" in body.decode()) == (503, True)


async def test_a_job_that_fails_again_and_again_is_parked_with_its_reason() -> None:
    rig, world = await three_conversations()
    for _ in range(limits.MAX_DELIVERIES):
        rig.steer("fault", binding="AI", at=0, when="before", forever=True)
        await drain(world)
        world.clock.advance(700_000)
    rig.steer("fault")
    rows = await world.ports.catalog.query("SELECT status, error_code, attempts FROM jobs")
    assert {(row["status"], row["error_code"]) for row in rows} == {("failed", "DERIVED_INDEXING")}
    assert max(row["attempts"] for row in rows) == limits.MAX_DELIVERIES
    parked = [line for line in rig.log() if line.get("event") == "job_parked"]
    assert {line["job_id"] for line in parked} == {
        row["job_id"] for row in await world.ports.catalog.query("SELECT job_id FROM jobs")
    }


async def test_a_turn_stays_far_under_the_limit_of_subrequests() -> None:
    rig = running()
    world = await rig_world(rig)
    conversations = [exports.conversation(f"c{number}", *["words"] * 20) for number in range(60)]
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Filename": "conversations.json"}
    async with httpx.AsyncClient(base_url=rig.url, headers=headers, timeout=60) as calls:
        assert (await calls.post("/api/imports/direct", content=exports.as_json(conversations))).status_code == 202
    most = 0
    while rig.steer("underway"):
        held(rig, 1)
        rig.steer("meter")
        held_now = rig.steer("held")
        places = [place for place, one in enumerate(held_now) if one["queue"] == held_now[0]["queue"]]
        rig.steer("deliver", places=places[: 1 if "import" in held_now[0]["queue"] else 25], together=True)
        most = max(most, rig.steer("meter")["calls"])
    assert await indexed(world) == 60
    assert most < 1000


class TestDeadLetters:
    async def dead(self, variables: dict[str, str]) -> tuple[Rig, World, str]:
        rig = running()
        world = await rig_world(rig, variables=variables)
        await store(world.ports, "some words")
        (message,) = held(rig, 1)
        await world.ports.catalog.query("UPDATE jobs SET attempts = 8")
        return rig, world, str(message["body"]["job_id"])

    async def test_a_dead_letter_is_written_down_its_job_parked_and_the_owner_told(self) -> None:
        rig, world, job = await self.dead({"MAIL_FROM": "memory@example.com", "ALERT_ADDRESS": "me@example.com"})
        letters = [{"id": "m1", "body": {"version": 1, "job_id": job}, "attempts": 8}]
        for _ in range(2):
            answer = rig.steer("batch", queue="x-dead-letter", messages=letters, now=True)
            assert answer["decisions"] == {"m1": {"action": "ack"}}
        assert await value(world, "SELECT count(*) FROM dead_letters WHERE job_id = ?", job) == 1
        assert await value(world, "SELECT status FROM jobs WHERE job_id = ?", job) == "failed"
        assert "delivered too often" in await value(world, "SELECT error_message FROM jobs")
        (mail,) = rig.steer("mail")
        assert (mail["to"], mail["from"]) == ("me@example.com", "memory@example.com")
        assert job in mail["text"]
        logged = rig.log()
        assert [line["messages"] for line in logged if line.get("event") == "dead_letters"] == [["m1"], ["m1"]]
        assert [line["jobs"] for line in logged if line.get("event") == "jobs_parked"] == [[job]]

    async def test_a_job_that_was_hardly_tried_is_left_to_the_sweeper(self) -> None:
        rig, world, job = await self.dead({})
        await world.ports.catalog.query("UPDATE jobs SET attempts = 1")
        rig.steer("lose")
        letters = [{"id": "m1", "body": {"version": 1, "job_id": job}, "attempts": 8}]
        rig.steer("batch", queue="x-dead-letter", messages=letters, now=True)
        assert await value(world, "SELECT status FROM jobs WHERE job_id = ?", job) == "pending"
        world.clock.advance((limits.INTENT_GRACE_SECONDS + 1) * 1000)
        rig.steer("scheduled")
        held(rig, 1)
        await drain(world)
        assert await indexed(world) == 1

    async def test_an_outage_while_letters_are_written_down_is_logged_and_they_come_again(self) -> None:
        rig, _, job = await self.dead({})
        assert rig.request("GET", "/readyz")[0] == 200
        rig.log()
        rig.steer("fault", binding="MEMORY_DB", at=0, when="before", forever=True)
        letters = [{"id": "m1", "body": {"version": 1, "job_id": job}, "attempts": 1}]
        answer = rig.steer("batch", queue="x-dead-letter", messages=letters, now=True)
        rig.steer("fault")
        assert answer["decisions"]["m1"]["action"] == "retry"
        assert [line["event"] for line in rig.log() if "event" in line] == ["dead_letters", "queue_trouble"]

    async def test_without_an_address_nobody_is_mailed_and_odd_letters_are_kept(self) -> None:
        rig, world, _ = await self.dead({})
        letters = [{"id": "m1", "body": "not ours", "attempts": 8}, {"id": "m2", "body": {"job_id": 3}, "attempts": 8}]
        answer = rig.steer("batch", queue="x-dead-letter", messages=letters, now=True)
        assert answer["decisions"] == {"m1": {"action": "ack"}, "m2": {"action": "ack"}}
        assert await value(world, "SELECT count(*) FROM dead_letters WHERE job_id IS NULL") == 2
        assert rig.steer("mail") == []

    async def test_a_queue_without_a_consumer_keeps_its_messages(self) -> None:
        rig, _, _ = await self.dead({})
        answer = rig.steer("batch", queue="other", messages=[{"id": "m", "body": {}, "attempts": 1}], now=True)
        assert answer["decisions"]["m"]["action"] == "retry"
        assert "unknown_queue" in {line.get("event") for line in rig.log()}
