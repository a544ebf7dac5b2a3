"""Missing, deleted and another account's look exactly the same through every tool that takes an id."""

from __future__ import annotations

from typing import Any

from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from tests.rigs import writes
from tests.rigs.mcp import client, principal
from tests.rigs.worlds import drain, memory_world

NOBODYS_UUID = "00000000-0000-4000-8000-000000000000"
NOBODYS_HASH = "0" * 64


async def test_missing_deleted_and_foreign_are_one_answer() -> None:
    world = await memory_world()
    kept = await writes.store(world.ports, "A barometer.", title="kept")
    deleted = await writes.store(world.ports, "A thermometer.", title="deleted")
    accepted = await uploads.direct(
        world.ports, OWNER, filename="conversations.json", namespace=None, body=b"[]", size=2
    )
    await drain(world)
    owner = await client(world.ports)
    stranger = await client(world.ports, principal(account="stranger"))
    chunks = {
        word: (await owner.answer("memory_search", query=word))["results"][0]["chunkId"]
        for word in ("barometer", "thermometer")
    }
    await delete_conversation(world.ports, OWNER, deleted.conversation_id)

    message = [{"role": "user", "content": "x"}]
    base = {"base_revision_id": kept.revision_id}
    append = {**base, "messages": message}
    same: dict[str, list[tuple[Any, dict[str, Any]]]] = {
        "memory_get_conversation": [
            (owner, {"conversation_id": NOBODYS_UUID}),
            (owner, {"conversation_id": deleted.conversation_id}),
            (owner, {"conversation_id": deleted.conversation_id, "revision_id": deleted.revision_id}),
            (stranger, {"conversation_id": kept.conversation_id}),
            (stranger, {"conversation_id": kept.conversation_id, "revision_id": kept.revision_id}),
        ],
        "memory_get_context": [
            (owner, {"chunk_id": NOBODYS_HASH}),
            (owner, {"chunk_id": chunks["thermometer"]}),
            (stranger, {"chunk_id": chunks["barometer"]}),
        ],
        "memory_append": [
            (owner, {"conversation_id": NOBODYS_UUID, **append}),
            (owner, {"conversation_id": deleted.conversation_id, **append}),
            (stranger, {"conversation_id": kept.conversation_id, **append}),
        ],
        **{
            name: [
                (owner, {"conversation_id": NOBODYS_UUID, **arguments}),
                (owner, {"conversation_id": deleted.conversation_id, **arguments}),
                (stranger, {"conversation_id": kept.conversation_id, **arguments}),
            ]
            for name, arguments in (
                ("memory_replace", append),
                ("memory_restore_revision", {**base, "revision_id": kept.revision_id}),
                ("memory_update_tags", {**base, "add": ["a"]}),
            )
        },
        "memory_import_status": [
            (owner, {"import_id": NOBODYS_UUID}),
            (stranger, {"import_id": accepted.import_id}),
        ],
    }
    for name, attempts in same.items():
        answers = [await at.refused(name, **arguments) for at, arguments in attempts]
        assert all(answer == answers[0] for answer in answers), (name, answers)
        assert answers[0]["code"] == "NOT_FOUND"
    assert (await owner.answer("memory_import_status", import_id=accepted.import_id))["id"] == accepted.import_id


async def test_a_revision_of_another_conversation_is_not_found_even_to_its_owner() -> None:
    world = await memory_world()
    first, second = await writes.store(world.ports, "one"), await writes.store(world.ports, "two")
    at = await client(world.ports)
    answers = [
        await at.refused("memory_get_conversation", conversation_id=first.conversation_id, revision_id=revision)
        for revision in (second.revision_id, NOBODYS_HASH)
    ]
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "NOT_FOUND"


async def test_lists_counts_and_searches_of_a_stranger_are_empty() -> None:
    world = await memory_world()
    await writes.store(world.ports, "A barometer.")
    await drain(world)
    owner = await client(world.ports)
    await writes.store(world.ports, "Another.")
    cursor_of_owner = (await owner.answer("memory_list_conversations", limit=1))["nextCursor"]
    at = await client(world.ports, principal(account="stranger"))
    assert (await at.answer("memory_search", query="barometer"))["results"] == []
    assert (await at.answer("memory_list_conversations", cursor=cursor_of_owner))["conversations"] == []
    assert (await at.answer("memory_list_namespaces"))["namespaces"] == []
    assert (await at.answer("memory_stats"))["totals"] == {"conversations": 0, "messages": 0}


async def test_a_namespace_of_another_account_is_refused_like_one_that_is_not_there() -> None:
    world = await memory_world()
    await writes.store(world.ports, "A barometer.", namespace="secret/plan")
    at = await client(world.ports, principal(account="stranger"))
    for name, arguments in (("memory_search", {"query": "x"}), ("memory_list_conversations", {})):
        answers = [await at.refused(name, **arguments, namespace=space) for space in ("secret/plan", "nowhere")]
        assert answers[0] == answers[1]
        assert answers[0]["code"] == "AUTHENTICATION"


async def test_capabilities_are_the_same_for_everybody() -> None:
    world = await memory_world()
    await writes.store(world.ports, "A barometer.")
    owner, stranger = await client(world.ports), await client(world.ports, principal(account="stranger"))
    assert await owner.answer("memory_get_capabilities") == await stranger.answer("memory_get_capabilities")
