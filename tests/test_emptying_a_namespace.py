"""Emptying a namespace: confirmed by name, bounded a call, never across its edge, and the namespace stays."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import limits
from mempersist.archive.deletion import empty_namespace
from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.imports import uploads
from mempersist.ports import AccountId
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import store


async def live(world: World) -> set[str]:
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE deleted_at IS NULL")
    return {row["conversation_id"] for row in rows}


async def empty(at: Client, namespace: str, **changes: Any) -> dict[str, Any]:
    return await at.answer("memory_empty_namespace", namespace=namespace, confirm_namespace=namespace, **changes)


async def test_all_of_it_goes_and_nothing_else_does() -> None:
    world = await memory_world()
    for index in range(3):
        await store(world.ports, f"text {index}", namespace="doomed")
    kept = {
        (await store(world.ports, "kept", namespace=space)).conversation_id
        for space in ("doomed/child", "Doomed", "personal")
    }
    at = await client(world.ports)
    assert await empty(at, "doomed") == {
        "namespace": "doomed",
        "requested": 3,
        "processed": 3,
        "deleted": 3,
        "failed": 0,
        "remaining": 0,
        "complete": True,
    }
    assert await live(world) == kept
    spaces = {
        row["namespace"]: row["conversations"] for row in (await at.answer("memory_list_namespaces"))["namespaces"]
    }
    assert spaces["doomed"] == 0


async def test_a_namespace_that_is_empty_already_is_complete() -> None:
    answer = await empty(await client(), "personal")
    assert (answer["requested"], answer["remaining"], answer["complete"]) == (0, 0, True)


async def test_uploaded_exports_stay() -> None:
    world = await memory_world()
    accepted = await uploads.direct(
        world.ports, OWNER, filename="conversations.json", namespace=None, body=b"[]", size=2
    )
    await drain(world)
    await empty(await client(world.ports), "personal")
    await drain(world)
    raw = (await world.ports.objects.list(f"raw/imports/{accepted.import_id}/")).objects
    assert any("/source/" in info.key for info in raw)


@pytest.mark.parametrize("over", [-1, 0, 1])
async def test_one_call_takes_a_bounded_number_and_the_next_goes_on(over: int, monkeypatch: pytest.MonkeyPatch) -> None:
    most = 5
    monkeypatch.setattr("mempersist.archive.deletion.MAX_EMPTY_CONVERSATIONS", most)
    world = await memory_world()
    for index in range(most + over):
        await store(world.ports, f"text {index}", namespace="doomed")
    at = await client(world.ports)
    first = await empty(at, "doomed")
    assert (first["deleted"], first["remaining"], first["complete"]) == (min(most, most + over), max(0, over), over < 1)
    last = await empty(at, "doomed")
    assert (last["deleted"], last["remaining"], last["complete"]) == (max(0, over), 0, True)


async def test_the_largest_step_is_one_call() -> None:
    world = await memory_world()
    for index in range(limits.MAX_EMPTY_CONVERSATIONS + 1):
        await store(world.ports, f"text {index}", namespace="doomed")
    answer = await empty(await client(world.ports), "doomed")
    assert (answer["deleted"], answer["remaining"], answer["complete"]) == (500, 1, False)


async def test_a_repeated_key_takes_no_further_step() -> None:
    world = await memory_world()
    await store(world.ports, "one", namespace="doomed")
    at = await client(world.ports)
    first = await empty(at, "doomed", idempotency_key="k")
    await store(world.ports, "two", namespace="doomed")
    again = await empty(at, "doomed", idempotency_key="k")
    assert (first["deleted"], again["deleted"], again["remaining"], again["complete"]) == (1, 1, 1, False)
    error = await at.refused(
        "memory_empty_namespace", namespace="personal", confirm_namespace="personal", idempotency_key="k"
    )
    assert error["code"] == "IMPORT_CONFLICT"


async def test_a_rebuild_gives_the_same_rows() -> None:
    world = await memory_world()
    await store(world.ports, "one", namespace="doomed")
    await empty_namespace(world.ports, OWNER, "doomed")
    await drain(world)
    current = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await digest(rebuilt.ports.catalog) == current


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"confirm_namespace": "Doomed"}, "confirm_namespace"),
        ({"confirm_namespace": "doomed "}, "confirm_namespace"),
        ({"confirm_namespace": None}, "confirm_namespace"),
        ({"namespace": " ", "confirm_namespace": " "}, "namespace"),
        ({"namespace": "", "confirm_namespace": ""}, "namespace"),
        ({"namespace": "x" * 101, "confirm_namespace": "x" * 101}, "namespace"),
        ({"idempotency_key": " "}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
    ],
)
async def test_without_an_exact_confirmation_nothing_is_touched(arguments: dict[str, Any], field: str) -> None:
    world = await memory_world()
    base = await store(world.ports, "one", namespace="doomed")
    before = (await world.ports.objects.list("")).objects
    valid = {"namespace": "doomed", "confirm_namespace": "doomed"}
    error = await (await client(world.ports)).refused("memory_empty_namespace", **{**valid, **arguments})
    assert error["code"] == "VALIDATION"
    assert error["field"] == field
    assert await live(world) == {base.conversation_id}
    assert (await world.ports.objects.list("")).objects == before


async def test_the_longest_name_and_key_are_taken() -> None:
    world = await memory_world()
    name = "n" * limits.MAX_NAMESPACE_CHARS
    await store(world.ports, "one", namespace=name)
    answer = await empty(await client(world.ports), name, idempotency_key="k" * limits.MAX_IDEMPOTENCY_KEY_CHARS)
    assert answer["deleted"] == 1


async def test_a_namespace_of_another_account_is_refused_like_one_that_is_not_there() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", namespace="shared name")
    stranger = await client(world.ports, principal(account="stranger"))
    answers = [
        await stranger.refused("memory_empty_namespace", namespace=space, confirm_namespace=space)
        for space in ("shared name", "nowhere")
    ]
    assert answers[0] == answers[1]
    assert answers[0]["code"] == "AUTHENTICATION"
    assert await live(world) == {base.conversation_id}


async def test_the_same_name_in_another_account_is_another_namespace() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", namespace="shared name")
    await world.ports.catalog.query(
        "INSERT INTO accounts (account_id, default_namespace, created_at, log_seq, log_hash)"
        " VALUES ('stranger', 'shared name', '2026-01-01T00:00:00.000Z', 0, '')"
    )
    await world.ports.catalog.query(
        "INSERT INTO namespaces (account_id, namespace, created_at) VALUES ('stranger', 'shared name', '')"
    )
    theirs = await store(world.ports, "two", namespace="shared name", account=AccountId("stranger"))
    answer = await empty(await client(world.ports, principal(account="stranger")), "shared name")
    assert (answer["deleted"], answer["complete"]) == (1, True)
    assert await live(world) == {base.conversation_id}
    assert theirs.conversation_id != base.conversation_id
