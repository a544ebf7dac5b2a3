"""The contract of the job queue port and of the consumer's side that our own hosts use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mempersist.jobs import Decision, Delivery
from mempersist.limits import MAX_DELIVERIES
from mempersist_ops.stores.consumer import ConsumerQueue
from mempersist_ops.stores.memory.system import ManualClock
from tests.rigs.stores import QUEUES


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=QUEUES)
def queue(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> Iterator[ConsumerQueue]:
    opened = QUEUES[request.param](tmp_path, clock)
    yield opened
    opened.close()  # type: ignore[attr-defined]


def acked(*deliveries: Delivery) -> list[Decision]:
    return [Decision(delivery.id, "ack") for delivery in deliveries]


async def dead(queue: ConsumerQueue, clock: ManualClock) -> None:
    for _ in range(MAX_DELIVERIES):
        (delivery,) = await queue.receive("index", limit=5, lease_seconds=1)
        await queue.settle([Decision(delivery.id, "retry")])
    assert await queue.receive("index", limit=5) == ()


async def test_a_message_is_delivered_with_its_body_and_how_often_it_was_tried(queue: ConsumerQueue) -> None:
    await queue.send("index", [{"version": 1, "job_id": "j"}])
    (delivery,) = await queue.receive("index", limit=5)
    assert (delivery.body, delivery.attempts) == ({"version": 1, "job_id": "j"}, 1)


async def test_queues_do_not_mix(queue: ConsumerQueue) -> None:
    await queue.send("import", [{"job_id": "j"}])
    assert await queue.receive("index", limit=5) == ()
    assert len(await queue.receive("import", limit=5)) == 1


async def test_the_oldest_come_first_and_no_more_than_asked_for(queue: ConsumerQueue) -> None:
    await queue.send("index", [{"n": number} for number in range(5)])
    first = await queue.receive("index", limit=3)
    second = await queue.receive("index", limit=3)
    assert [item.body["n"] for item in first] == [0, 1, 2]
    assert [item.body["n"] for item in second] == [3, 4]


async def test_an_acknowledged_message_never_comes_again(queue: ConsumerQueue, clock: ManualClock) -> None:
    await queue.send("index", [{}])
    await queue.settle(acked(*await queue.receive("index", limit=5)))
    clock.advance(10**9)
    assert await queue.receive("index", limit=5) == ()
    assert await queue.depth("index") == 0


async def test_a_message_that_is_not_settled_comes_again_after_its_lease(
    queue: ConsumerQueue, clock: ManualClock
) -> None:
    await queue.send("index", [{}])
    await queue.receive("index", limit=5, lease_seconds=10)
    clock.advance(9_999)
    assert await queue.receive("index", limit=5) == ()
    clock.advance(1)
    (again,) = await queue.receive("index", limit=5)
    assert again.attempts == 2


async def test_a_message_given_back_waits_its_delay(queue: ConsumerQueue, clock: ManualClock) -> None:
    await queue.send("index", [{}])
    (delivery,) = await queue.receive("index", limit=5)
    await queue.settle([Decision(delivery.id, "retry", 30)])
    clock.advance(29_999)
    assert await queue.receive("index", limit=5) == ()
    clock.advance(1)
    assert len(await queue.receive("index", limit=5)) == 1


async def test_a_message_sent_with_a_delay_waits_it(queue: ConsumerQueue, clock: ManualClock) -> None:
    await queue.send("index", [{}], delay_seconds=5)
    assert await queue.receive("index", limit=5) == ()
    assert await queue.depth("index") == 1
    clock.advance(5_000)
    assert len(await queue.receive("index", limit=5)) == 1


async def test_a_message_tried_too_often_is_a_dead_letter(queue: ConsumerQueue, clock: ManualClock) -> None:
    await queue.send("index", [{"job_id": "poison"}])
    await dead(queue, clock)
    (letter,) = await queue.dead_letters()
    assert (letter.queue, letter.body, letter.attempts) == ("index", {"job_id": "poison"}, MAX_DELIVERIES)
    assert await queue.depth("index") == 0


async def test_a_dead_letter_can_be_sent_again_with_a_clean_record(queue: ConsumerQueue, clock: ManualClock) -> None:
    await queue.send("index", [{"job_id": "poison"}])
    await dead(queue, clock)
    (letter,) = await queue.dead_letters()
    assert await queue.redrive([letter.id]) == 1
    assert await queue.redrive([letter.id]) == 0
    (delivery,) = await queue.receive("index", limit=5)
    assert delivery.attempts == 1
    assert await queue.dead_letters() == ()


async def test_settling_what_is_not_there_is_no_error(queue: ConsumerQueue) -> None:
    await queue.settle([Decision("12345", "ack"), Decision("54321", "retry", 5)])
    await queue.settle([])


async def test_sending_nothing_is_nothing(queue: ConsumerQueue) -> None:
    await queue.send("index", [])
    assert await queue.depth("index") == 0
