"""Races: whatever runs in the middle of what, one wins, the loser is told how to go on, nothing is half done."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable

import pytest

from mempersist.archive import keys, load, memories, replacing, tagging
from mempersist.archive.copying import CopyOutcome, CopyRequest
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.archive.verifying import verify_revision
from mempersist.archive.writing import Written
from mempersist.errors import Code, MempersistError
from mempersist.ports import Ports
from tests.rigs import writes
from tests.rigs.checks import is_whole, started_again
from tests.rigs.interleaving import Act, Race, every_interleaving
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import store, user

Write = Callable[[Ports, str, str, str], Awaitable[Written]]
"""A write to a conversation at a base revision; the last argument is its first revision."""


async def append(ports: Ports, conversation_id: str, base: str, _: str) -> Written:
    return await memories.append(
        ports, OWNER, conversation_id=conversation_id, base_revision_id=base, messages=user("appended words")
    )


async def append_too(ports: Ports, conversation_id: str, base: str, _: str) -> Written:
    return await memories.append(
        ports, OWNER, conversation_id=conversation_id, base_revision_id=base, messages=user("others")
    )


async def replace(ports: Ports, conversation_id: str, base: str, _: str) -> Written:
    return await replacing.replace_transcript(
        ports, OWNER, conversation_id=conversation_id, base_revision_id=base, messages=user("replaced words")
    )


async def restore(ports: Ports, conversation_id: str, base: str, first: str) -> Written:
    return await replacing.restore_revision(
        ports, OWNER, conversation_id=conversation_id, base_revision_id=base, revision_id=first
    )


async def retag(ports: Ports, conversation_id: str, base: str, _: str) -> Written:
    return await tagging.update_tags(
        ports, OWNER, conversation_id=conversation_id, base_revision_id=base, add=["b"], remove=["a"]
    )


async def retag_too(ports: Ports, conversation_id: str, base: str, _: str) -> Written:
    return await tagging.update_tags(ports, OWNER, conversation_id=conversation_id, base_revision_id=base, add=["c"])


async def delete(conversation_id: str, ports: Ports) -> None:
    await delete_conversation(ports, OWNER, conversation_id)


async def copy(conversation_id: str, ports: Ports) -> CopyOutcome:
    (done,) = await writes.copy(ports, CopyRequest(conversation_id))
    return done


async def two_revisions() -> tuple[World, Written, Written]:
    world = await memory_world()
    first = await store(world.ports, "first words", tags=["a"])
    second = await writes.append(world.ports, first, "second words")
    await drain(world)
    return world, first, second


def at(write: Write, first: Written, second: Written) -> Act:
    """``write`` at the second revision."""

    async def act(ports: Ports) -> Written:
        return await write(ports, second.conversation_id, second.revision_id, first.revision_id)

    return act


async def of_writes(one: Write, other: Write) -> Race:
    world, first, second = await two_revisions()
    return Race((world, first, second), world.ports, at(one, first, second), at(other, first, second))


async def only_the_tombstone(world: World, conversation_id: str) -> bool:
    log = await load.head_log(world.ports.objects, conversation_id)
    objects = (await world.ports.objects.list(keys.conversation(conversation_id))).objects
    return len(objects) == len(log) == 1 and log[0][0].deleted


# ------------------------------------------------------------------ writes


@pytest.mark.parametrize(
    ("one", "other"),
    [(append, append_too), (append, restore), (restore, append), (replace, append), (restore, replace)],
)
async def test_of_two_writes_to_one_revision_one_wins_and_the_loser_goes_on_from_there(
    one: Write, other: Write
) -> None:
    winners = set()
    async for (world, first, second), of_one, of_other in every_interleaving(functools.partial(of_writes, one, other)):
        pairs = [(of_one, of_other, other), (of_other, of_one, one)]
        ((winner, loser, again),) = [pair for pair in pairs if isinstance(pair[0], Written)]
        assert isinstance(loser, MempersistError)
        assert loser.code is Code.IMPORT_CONFLICT
        assert loser.details["current_revision_id"] == winner.revision_id
        assert len(await load.head_log(world.ports.objects, second.conversation_id)) == 3
        behind = await again(world.ports, second.conversation_id, winner.revision_id, first.revision_id)
        assert behind.previous_revision_id == winner.revision_id
        await started_again(world)
        await is_whole(world)
        winners.add(again)
    assert winners == {one, other}


@pytest.mark.parametrize("one", [append, replace, restore])
async def test_a_change_of_tags_stops_no_write_and_is_not_lost(one: Write) -> None:
    async for (world, _, base), of_one, of_tags in every_interleaving(functools.partial(of_writes, one, retag)):
        assert isinstance(of_one, Written)
        view = (await read_page(world.ports, OWNER, base.conversation_id)).conversation
        assert view.revision_id == of_one.revision_id
        if isinstance(of_tags, Written):
            assert view.tags == ("b",)
        else:
            assert of_tags.details["current_revision_id"] == of_one.revision_id
            assert view.tags == ("a",)
        await started_again(world)
        await is_whole(world)


async def test_two_changes_of_tags_are_both_made() -> None:
    async for (world, _, base), *both in every_interleaving(functools.partial(of_writes, retag_too, retag)):
        assert all(isinstance(each, Written) for each in both)
        view = (await read_page(world.ports, OWNER, base.conversation_id)).conversation
        assert set(view.tags) == {"b", "c"}


async def test_one_key_in_two_writes_at_once_never_stops_the_system() -> None:
    async def new() -> Race:
        world = await memory_world()
        acts = [functools.partial(keyed, await store(world.ports, text)) for text in ("first words", "other words")]
        return Race(world, world.ports, *acts)

    async def keyed(base: Written, ports: Ports) -> Written:
        return await writes.append(ports, base, "more words", idempotency_key="k")

    async for world, *both in every_interleaving(new):
        assert any(isinstance(each, Written) for each in both)
        assert {each.code for each in both if isinstance(each, MempersistError)} <= {Code.IMPORT_CONFLICT}
        await started_again(world)
        await is_whole(world)


# ------------------------------------------------------------------ deletion


@pytest.mark.parametrize("one", [append, replace, restore, retag])
@pytest.mark.parametrize("inside", ["write", "deletion"])
@pytest.mark.parametrize("purged", [False, True])
async def test_a_deletion_stands_and_a_write_behind_it_is_not_found(one: Write, inside: str, purged: bool) -> None:
    async def new() -> Race:
        world, first, second = await two_revisions()

        async def deletion(ports: Ports) -> None:
            await delete(second.conversation_id, ports)
            if purged:
                await drain(world, ports=ports)

        acts = [at(one, first, second), deletion]
        return Race((world, second), world.ports, *(acts if inside == "write" else acts[::-1]))

    async for (world, base), *both in every_interleaving(new):
        of_write = both[0 if inside == "write" else 1]
        assert isinstance(of_write, Written) or of_write.code is Code.NOT_FOUND
        await started_again(world)
        await is_whole(world)
        assert await only_the_tombstone(world, base.conversation_id)


async def test_a_deletion_during_an_index_turn_leaves_nothing_in_the_index() -> None:
    async def new() -> Race:
        world = await memory_world()
        base = await store(world.ports, "secret words")

        async def turn(ports: Ports) -> None:
            await drain(world, ports=ports)

        return Race((world, base), world.ports, turn, functools.partial(delete, base.conversation_id))

    async for (world, base), *_ in every_interleaving(new):
        await started_again(world)
        await is_whole(world)
        assert (await world.ports.vectors.describe()).count == 0
        for table in ("chunks", "messages", "index_state"):
            assert await world.ports.catalog.query(f"SELECT 1 FROM {table}") == (), table
        assert await only_the_tombstone(world, base.conversation_id)


# ------------------------------------------------------------------ copies


async def is_whole_or_not_found(world: World, of_copy: CopyOutcome) -> None:
    if of_copy.written is None:
        assert of_copy.error is not None
        assert of_copy.error.code is Code.NOT_FOUND
    else:
        copied = of_copy.written
        assert (await verify_revision(world.ports, OWNER, copied.conversation_id, copied.revision_id)).passed


@pytest.mark.parametrize("purged", [False, True])
async def test_a_copy_of_what_is_being_deleted_is_whole_or_not_found(purged: bool) -> None:
    async def new() -> Race:
        world, _, second = await two_revisions()

        async def deletion(ports: Ports) -> None:
            await delete(second.conversation_id, ports)
            if purged:
                await drain(world, ports=ports)

        return Race((world, second), world.ports, functools.partial(copy, second.conversation_id), deletion)

    copied = set()
    async for (world, base), of_copy, _ in every_interleaving(new):
        copied.add(of_copy.written is not None)
        await is_whole_or_not_found(world, of_copy)
        await started_again(world)
        await is_whole(world)
        assert await only_the_tombstone(world, base.conversation_id)
    assert copied == {True, False}


async def test_a_copy_in_the_middle_of_a_deletion_is_whole_or_not_found() -> None:
    async def new() -> Race:
        world, _, second = await two_revisions()
        acts = [functools.partial(act, second.conversation_id) for act in (delete, copy)]
        return Race((world, second), world.ports, *acts)

    async for (world, base), _, of_copy in every_interleaving(new):
        await is_whole_or_not_found(world, of_copy)
        await started_again(world)
        await is_whole(world)
        assert await only_the_tombstone(world, base.conversation_id)


async def test_two_calls_of_one_copy_make_one_copy() -> None:
    async def new() -> Race:
        world, _, second = await two_revisions()
        act = functools.partial(copy, second.conversation_id)
        return Race(world, world.ports, act, act)

    async for world, *both in every_interleaving(new):
        assert len({done.written.conversation_id for done in both}) == 1
        assert len(await world.ports.catalog.query("SELECT 1 FROM conversations")) == 2
        await started_again(world)
        await is_whole(world)
