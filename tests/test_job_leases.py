"""Promise 6: a message that comes twice, late or never changes nothing; the job's row decides."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mempersist import jobs, limits, timestamps
from mempersist.archive import keys
from mempersist.archive.codec import UnreadableObject
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.jobs import Delivery, Job, Outcome
from mempersist.ports import Ports, StorageError
from mempersist.recovery.sweep import sweep
from tests.rigs.faults import FaultPlan, wrap
from tests.rigs.worlds import World, memory_world
from tests.rigs.writes import store

JOB = "a" * 64


def now(world: World) -> str:
    return timestamps.from_ms(world.clock.now_ms())


async def pending(world: World, job_id: str = JOB) -> None:
    await world.ports.catalog.batch([jobs.upsert(job_id, "index", OWNER, "subject", now(world))])


def message(job_id: str = JOB, delivery_id: str = "m1") -> Delivery:
    return Delivery(delivery_id, {"version": 1, "job_id": job_id})


class Turn:
    """Records the jobs it was given and ends each with the given outcome, or raises."""

    def __init__(self, outcome: Outcome | Exception) -> None:
        self.outcome = outcome
        self.given: list[Job] = []

    async def __call__(self, ports: Ports, claimed: Sequence[Job]) -> Sequence[Outcome]:
        self.given += claimed
        if isinstance(self.outcome, Exception):
            raise self.outcome
        for job in claimed:
            if self.outcome.kind == "done":
                await ports.catalog.batch([jobs.finished(job)])
            if self.outcome.kind == "continue":
                await ports.catalog.batch([jobs.released(job, timestamps.from_ms(ports.clock.now_ms()))])
        return [self.outcome] * len(claimed)


async def test_a_done_job_is_gone_and_its_late_message_does_nothing() -> None:
    world = await memory_world()
    await pending(world)
    turn = Turn(jobs.DONE)
    assert [decision.action for decision in await jobs.handle(world.ports, "index", [message()], turn)] == ["ack"]
    assert [decision.action for decision in await jobs.handle(world.ports, "index", [message()], turn)] == ["ack"]
    assert len(turn.given) == 1


async def test_two_messages_of_one_job_in_a_batch_are_one_turn() -> None:
    world = await memory_world()
    await pending(world)
    turn = Turn(jobs.DONE)
    decisions = await jobs.handle(world.ports, "index", [message(delivery_id="m1"), message(delivery_id="m2")], turn)
    assert sorted((decision.id, decision.action) for decision in decisions) == [("m1", "ack"), ("m2", "ack")]
    assert len(turn.given) == 1


async def test_a_job_under_a_lease_is_not_given_to_another() -> None:
    world = await memory_world()
    await pending(world)
    assert await jobs.claim(world.ports, JOB, "first") is not None
    assert await jobs.claim(world.ports, JOB, "second") is None


async def test_an_expired_lease_can_be_taken_over_and_the_first_owner_cannot_end_the_job() -> None:
    world = await memory_world()
    await pending(world)
    first = await jobs.claim(world.ports, JOB, "first")
    assert first is not None
    world.clock.advance(limits.LEASE_SECONDS * 1000)
    assert await jobs.claim(world.ports, JOB, "second") is not None
    await world.ports.catalog.batch([jobs.finished(first)])
    assert not await jobs.renew(world.ports, first)
    assert await world.ports.catalog.query("SELECT 1 FROM jobs")


async def test_a_renewed_lease_lasts() -> None:
    world = await memory_world()
    await pending(world)
    job = await jobs.claim(world.ports, JOB, "first")
    assert job is not None
    world.clock.advance(limits.LEASE_SECONDS * 1000 - 1)
    assert await jobs.renew(world.ports, job)
    world.clock.advance(limits.LEASE_SECONDS * 1000 - 1)
    assert await jobs.claim(world.ports, JOB, "second") is None


async def test_new_work_takes_the_lease_from_a_turn_that_knows_only_the_old() -> None:
    world = await memory_world()
    await pending(world)
    old = await jobs.claim(world.ports, JOB, "old")
    assert old is not None
    await pending(world)
    await world.ports.catalog.batch([jobs.finished(old)])
    assert await jobs.claim(world.ports, JOB, "new") is not None


async def test_a_turn_with_more_to_do_is_sent_again_at_once() -> None:
    world = await memory_world()
    await pending(world)
    await jobs.handle(world.ports, "index", [message()], Turn(jobs.CONTINUE))
    received = await world.queue.receive("index", limit=10)
    assert [item.body for item in received] == [{"version": 1, "job_id": JOB}]


@pytest.mark.parametrize(
    "trouble",
    [Outcome("failed", Code.DERIVED_INDEXING, "no"), StorageError("no"), MempersistError(Code.CANONICAL_STORAGE, "no")],
)
async def test_trouble_is_tried_again_ever_later_and_then_parked_with_its_reason(trouble: Outcome | Exception) -> None:
    world = await memory_world()
    await pending(world)
    delays = []
    for _ in range(limits.MAX_DELIVERIES - 1):
        (decision,) = await jobs.handle(world.ports, "index", [message()], Turn(trouble))
        assert decision.action == "retry"
        delays.append(decision.delay_seconds)
        world.clock.advance(decision.delay_seconds * 1000)
    assert delays == sorted(delays)
    assert delays[-1] > 10 * delays[0]
    (decision,) = await jobs.handle(world.ports, "index", [message()], Turn(trouble))
    assert decision.action == "ack"
    (row,) = await world.ports.catalog.query("SELECT status, error_code FROM jobs")
    assert row["status"] == "failed"
    assert row["error_code"] in {code.value for code in Code}


async def test_an_error_that_no_retry_mends_is_parked_at_once() -> None:
    world = await memory_world()
    await pending(world)
    (decision,) = await jobs.handle(
        world.ports, "index", [message()], Turn(Outcome("failed", Code.PERMANENT_PARSER, "not an export"))
    )
    assert decision.action == "ack"
    (row,) = await world.ports.catalog.query("SELECT status, error_message FROM jobs")
    assert (row["status"], row["error_message"]) == ("failed", "not an export")


async def test_a_job_not_yet_due_waits() -> None:
    world = await memory_world()
    await pending(world)
    (decision,) = await jobs.handle(world.ports, "index", [message()], Turn(StorageError("no")))
    turn = Turn(jobs.DONE)
    await jobs.handle(world.ports, "index", [message()], turn)
    assert turn.given == []
    world.clock.advance(decision.delay_seconds * 1000)
    await jobs.handle(world.ports, "index", [message()], turn)
    assert len(turn.given) == 1


@pytest.mark.parametrize("body", [{}, {"version": 2, "job_id": JOB}, {"version": 1}, {"version": 1, "job_id": 7}])
async def test_a_message_that_means_nothing_is_acknowledged(body: dict[str, object]) -> None:
    world = await memory_world()
    turn = Turn(jobs.DONE)
    assert await jobs.handle(world.ports, "index", [Delivery("m", body)], turn) == [jobs.Decision("m", "ack")]
    assert turn.given == []


async def test_a_defect_acknowledges_nothing_and_says_where_it_is() -> None:
    world = await memory_world()
    await pending(world)
    (decision,) = await jobs.handle(world.ports, "index", [message()], Turn(ZeroDivisionError()))
    assert decision.action == "retry"
    (row,) = await world.ports.catalog.query("SELECT status, error_message FROM jobs")
    assert (row["status"], row["error_message"].startswith("ZeroDivisionError at ")) == ("pending", True)


async def test_a_defect_of_one_job_holds_up_no_other() -> None:
    world = await memory_world()
    await pending(world)
    other = "b" * 64
    await pending(world, other)

    async def turn(_: Ports, claimed: Sequence[Job]) -> Sequence[Outcome]:
        if any(job.job_id == JOB for job in claimed):
            raise KeyError
        await world.ports.catalog.batch([jobs.finished(job) for job in claimed])
        return [jobs.DONE] * len(claimed)

    both = [message(), message(other, "m2")]
    found = {decision.id: decision.action for decision in await jobs.handle(world.ports, "index", both, turn)}
    assert found == {"m1": "retry", "m2": "ack"}
    assert [row["job_id"] for row in await world.ports.catalog.query("SELECT job_id FROM jobs")] == [JOB]


async def test_a_catalog_that_is_out_of_reach_gives_every_message_back_for_later() -> None:
    world = await memory_world()
    await pending(world)
    broken = wrap(world.ports, FaultPlan(at=0, kind="trouble"))
    (decision,) = await jobs.handle(broken, "index", [Delivery("m", {"version": 1, "job_id": JOB}, 3)], Turn(jobs.DONE))
    assert (decision.action, decision.delay_seconds >= 16) == ("retry", True)


async def test_the_sweeper_sends_a_job_that_no_message_reached_and_does_not_repeat_itself_at_once() -> None:
    world = await memory_world()
    await pending(world)
    assert (await sweep(world.ports)).jobs == 0
    world.clock.advance(limits.INTENT_GRACE_SECONDS * 1000)
    assert (await sweep(world.ports)).jobs == 1
    assert (await sweep(world.ports)).jobs == 0
    received = await world.queue.receive("index", limit=10)
    assert [item.body["job_id"] for item in received] == [JOB]


async def test_trouble_with_one_stage_of_a_sweep_holds_up_no_other() -> None:
    world = await memory_world()
    await pending(world)
    written = await store(world.ports, "words")
    await world.ports.catalog.query(
        "INSERT INTO intents (intent_id, account_id, conversation_ids_json, created_at)"
        " SELECT 'left', ?, json_array(?), '2020-01-01T00:00:00.000Z'",
        (OWNER, written.conversation_id),
    )
    await world.ports.objects.put(keys.head(written.conversation_id, 0), b"damaged")
    world.clock.advance(limits.INTENT_GRACE_SECONDS * 1000)
    with pytest.raises(UnreadableObject):
        await sweep(world.ports)
    received = await world.queue.receive("index", limit=10)
    assert JOB in {item.body["job_id"] for item in received}


async def test_the_sweeper_leaves_parked_jobs_alone() -> None:
    world = await memory_world()
    await pending(world)
    outcome = Outcome("failed", Code.PERMANENT_PARSER, "no")
    await jobs.handle(world.ports, "index", [message()], Turn(outcome))
    world.clock.advance(limits.INTENT_GRACE_SECONDS * 10_000)
    assert (await sweep(world.ports)).jobs == 0


async def test_a_message_in_the_wrong_queue_leaves_the_job_alone() -> None:
    world = await memory_world()
    await pending(world)
    turn = Turn(jobs.DONE)
    assert await jobs.handle(world.ports, "import", [message()], turn) == [jobs.Decision("m1", "ack")]
    assert turn.given == []
    assert await jobs.claim(world.ports, JOB, "me") is not None
