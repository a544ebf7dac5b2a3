"""Promises 4 and 6 for writes over what is there: whenever the process dies, the archive is whole, and a repeated
request does its work exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from mempersist.archive import load
from mempersist.archive.copying import CopyOutcome, CopyRequest
from mempersist.archive.deletion import Deletion, Emptied, delete_conversations, empty_namespace
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.archive.verifying import verify_revision
from mempersist.archive.writing import Written
from mempersist.errors import MempersistError
from mempersist.ports import CatalogError, Ports, StorageError
from tests.rigs import writes
from tests.rigs.checks import is_whole, started_again
from tests.rigs.faults import Crash, FaultPlan, Moment, wrap
from tests.rigs.worlds import World, drain, memory_world

Done = Written | tuple[CopyOutcome, ...] | Deletion | Emptied
Act = Callable[[Ports, Written, Written], Awaitable[Done]]


async def replace(ports: Ports, _: Written, current: Written) -> Done:
    return await writes.replace(ports, current, "replaced words", idempotency_key="k")


async def restore(ports: Ports, first: Written, current: Written) -> Done:
    return await writes.restore(ports, current, first.revision_id, idempotency_key="k")


async def retag(ports: Ports, _: Written, current: Written) -> Done:
    return await writes.retag(ports, current, add=["b"], remove=["a"], idempotency_key="k")


async def copy(ports: Ports, first: Written, current: Written) -> Done:
    return await writes.copy(
        ports,
        CopyRequest(current.conversation_id),
        CopyRequest(current.conversation_id, revision_id=first.revision_id, add=("c",)),
        key="k",
    )


async def delete(ports: Ports, _: Written, current: Written) -> Done:
    return await delete_conversations(ports, OWNER, [current.conversation_id, "0" * 64], idempotency_key="k")


async def empty(ports: Ports, _: Written, __: Written) -> Done:
    return await empty_namespace(ports, OWNER, "personal", idempotency_key="k")


ACTS: list[Act] = [replace, restore, retag, copy, delete, empty]


async def two_revisions() -> tuple[World, Written, Written]:
    world = await memory_world()
    first = await writes.store(world.ports, "first words", tags=["a"])
    second = await writes.append(world.ports, first, "second words", tags=["a"])
    await drain(world)
    return world, first, second


async def count_calls(act: Act) -> int:
    world, *base = await two_revisions()
    plan = FaultPlan()
    await act(wrap(world.ports, plan), *base)
    return len(plan.calls)


def told(done: Done) -> object:
    """What a caller is told of the work, whether this call did it or an earlier one."""
    if isinstance(done, Written):
        return done.conversation_id, done.previous_revision_id, done.message_count, done.tags
    if isinstance(done, tuple):
        return [item.written is not None for item in done]
    if isinstance(done, Deletion):
        return len(done.deleted), done.missing, done.failed
    return done


async def expected(act: Act) -> object:
    world, *base = await two_revisions()
    return told(await act(world.ports, *base))


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("act", ACTS)
async def test_a_crash_at_any_call_leaves_a_whole_archive_and_the_repeated_request_is_done_once(
    act: Act, moment: Moment
) -> None:
    answer = await expected(act)
    for at in range(await count_calls(act)):
        world, *base = await two_revisions()
        with pytest.raises(Crash):
            await act(wrap(world.ports, FaultPlan(at=at, moment=moment)), *base)
        await started_again(world)
        await is_whole(world)
        assert told(await act(world.ports, *base)) == answer, at
        await started_again(world)
        await is_whole(world)
        await did_it_once(world, act, base[1])


@pytest.mark.parametrize("act", ACTS)
async def test_repeating_the_request_before_anything_was_repaired_does_it_once(act: Act) -> None:
    answer = await expected(act)
    for at in range(await count_calls(act)):
        world, *base = await two_revisions()
        with pytest.raises(Crash):
            await act(wrap(world.ports, FaultPlan(at=at, moment="after")), *base)
        assert told(await act(world.ports, *base)) == answer, at
        await started_again(world)
        await is_whole(world)
        await did_it_once(world, act, base[1])


@pytest.mark.parametrize("act", ACTS)
async def test_trouble_at_any_call_is_reported_or_repaired_and_never_a_false_success(act: Act) -> None:
    for at in range(await count_calls(act)):
        world, *base = await two_revisions()
        done: Done | None = None
        with contextlib.suppress(MempersistError, CatalogError, StorageError):
            done = await act(wrap(world.ports, FaultPlan(at=at, kind="trouble")), *base)
        await started_again(world)
        await is_whole(world)
        for written in durable(done):
            outcome = await verify_revision(world.ports, OWNER, written.conversation_id, written.revision_id)
            assert outcome.passed, at
        if isinstance(done, Deletion):
            assert base[1].conversation_id in (*done.deleted, *(item.conversation_id for item in done.failed))


def durable(done: Done | None) -> list[Written]:
    if isinstance(done, Written):
        return [done]
    return [item.written for item in done if item.written] if isinstance(done, tuple) else []


async def did_it_once(world: World, act: Act, base: Written) -> None:
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE deleted_at IS NULL")
    if act in (delete, empty):
        assert rows == ()
        return
    assert len(rows) == (3 if act is copy else 1)
    log = await load.head_log(world.ports.objects, base.conversation_id)
    assert [entry.idempotency_key for entry, _ in log].count("k") == (0 if act is copy else 1)
    page = await read_page(world.ports, OWNER, base.conversation_id)
    outcomes: dict[Act, list[str]] = {replace: ["replaced words"], restore: ["first words"]}
    texts = [message.node.text for message in page.messages]
    assert texts == outcomes.get(act, ["first words", "second words"])
    assert page.conversation.tags == (("b",) if act is retag else ("a",))
