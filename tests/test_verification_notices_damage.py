"""A write that is read back is compared with what is stored, and every way to be damaged is told without any text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from mempersist.archive import codec, keys, load
from mempersist.archive.model import OWNER, Manifest
from mempersist.archive.verifying import Verification, verify_revision, verify_written
from mempersist.archive.writing import Written
from mempersist.ports import AccountId
from tests.rigs.worlds import World, memory_world
from tests.rigs.writes import append, store, user


async def verified(world: World, written: Written, account: AccountId = OWNER) -> list[Verification]:
    return [
        await verify_written(world.ports, account, written, user("secret one", "secret two")),
        await verify_revision(world.ports, account, written.conversation_id, written.revision_id),
    ]


async def test_what_is_as_it_was_written_passes_and_counts_its_messages() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret one", "secret two")
    assert await verified(world, written) == [Verification(True, 2)] * 2


@pytest.mark.parametrize("kind", ["segments", "revisions", "head"])
@pytest.mark.parametrize("damage", ["lost", "altered", "cut"])
async def test_a_damaged_object_fails_the_check(kind: str, damage: str) -> None:
    world = await memory_world()
    written = await store(world.ports, "secret one", "secret two")
    (info,) = (await world.ports.objects.list(f"{keys.conversation(written.conversation_id)}{kind}/")).objects
    data = await world.ports.objects.get(info.key)
    if damage == "lost":
        await world.ports.objects.delete([info.key])
    elif damage == "cut":
        await world.ports.objects.put(info.key, data[:-10])
    else:
        await world.ports.objects.put(info.key, data.replace(written.revision_id[:8].encode(), b"00000000"))
        if kind == "segments":
            await world.ports.objects.put(info.key, data.replace(b"secret one", b"secret 1ne"))
    for outcome in await verified(world, written):
        assert not outcome.passed
        assert outcome.problem
        assert "secret" not in outcome.problem


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: replace(manifest, current_source_node_id=None),
        lambda manifest: replace(manifest, metadata={"other": 1}),
        lambda manifest: replace(manifest, message_count=3),
        lambda manifest: replace(manifest, segments=()),
    ],
)
async def test_a_manifest_that_says_something_else_than_its_id_fails_the_check(
    change: Callable[[Manifest], Manifest],
) -> None:
    world = await memory_world()
    written = await store(world.ports, "secret one", "secret two")
    (stored,) = (await load.manifests(world.ports.objects, written.conversation_id)).values()
    await world.ports.objects.put(stored.key, codec.encode_manifest(change(stored.manifest)))
    outcome = await verify_revision(world.ports, OWNER, written.conversation_id, written.revision_id)
    assert not outcome.passed


async def test_other_messages_than_those_written_fail_the_check() -> None:
    world = await memory_world()
    base = await store(world.ports, "secret one")
    written = await append(world.ports, base, "secret two")
    for messages in (user("secret 2"), user("secret two", "secret three")):
        outcome = await verify_written(world.ports, OWNER, written, messages)
        assert not outcome.passed
        assert "secret" not in str(outcome.problem)


async def test_another_account_cannot_have_a_write_verified() -> None:
    world = await memory_world()
    written = await store(world.ports, "secret one", "secret two")
    for outcome in await verified(world, written, AccountId("stranger")):
        assert (outcome.passed, outcome.checked_messages) == (False, 0)
