"""A host imports what its memory holds of a conversation; a larger one is counted, and the others come in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from mempersist import background
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.imports.records import receipt_json
from mempersist.imports.status import import_receipt
from mempersist.limits import BYTES_PER_CONTAINER, BYTES_PER_NODE, KIB
from mempersist.ports import Ports
from tests.rigs import exports
from tests.rigs.worlds import World, drain, memory_world

ROOM = 512 * KIB


async def imported(world: World, ports: Ports, data: bytes) -> tuple[Any, int]:
    """The receipt of an import through ``ports``, and the most conversations that one turn brought in."""
    sent = await uploads.direct(ports, OWNER, filename="c.json", body=data, size=len(data))
    most = before = 0
    while deliveries := await world.queue.receive("import", limit=1):
        await world.queue.settle(await background.deliver(ports, "import", deliveries))
        (row,) = await ports.catalog.query("SELECT count(*) AS n FROM conversations")
        most, before = max(most, row["n"] - before), row["n"]
    await drain(world)
    return receipt_json(await import_receipt(ports, OWNER, sent.import_id)), most


def long_one(size: int) -> dict[str, Any]:
    """A conversation of exactly ``size`` bytes as JSON."""
    made = exports.conversation("long", "")
    missing = size - len(json.dumps(made).encode())
    made["mapping"]["n0"]["message"]["content"]["parts"] = ["x" * missing]
    return made


@pytest.mark.parametrize(("beyond", "failed"), [(-1, 0), (0, 0), (1, 1)])
async def test_a_conversation_may_have_the_bytes_that_the_host_allows(beyond: int, failed: int) -> None:
    world = await memory_world()
    ports = replace(world.ports, conversation_bytes=ROOM)
    data = json.dumps([exports.conversation("a", "hello"), long_one(ROOM + beyond), exports.conversation("b", "hi")])
    receipt, _ = await imported(world, ports, data.encode())
    assert receipt["counts"]["conversations"]["failed"] == failed
    assert receipt["counts"]["conversations"]["imported"] == 3 - failed
    assert receipt["counts"]["reasons"].get("failed", {}) == ({"TOO_LARGE": 1} if failed else {})


@pytest.mark.parametrize(("beyond", "failed"), [(-1, 0), (0, 0), (1, 1)])
async def test_and_the_messages(beyond: int, failed: int) -> None:
    world = await memory_world()
    ports = replace(world.ports, conversation_bytes=ROOM)
    nodes = ROOM // BYTES_PER_NODE + beyond
    mapping = {f"n{number}": {"id": f"n{number}"} for number in range(nodes)}
    data = json.dumps([{"id": "many", "title": "T", "mapping": mapping}, exports.conversation("a", "hello")])
    receipt, _ = await imported(world, ports, data.encode())
    assert receipt["counts"]["conversations"]["failed"] == failed
    assert receipt["counts"]["reasons"].get("failed", {}) == ({"TOO_MANY_PARTS": 1} if failed else {})


@pytest.mark.parametrize(("beyond", "failed"), [(0, 0), (1, 1)])
async def test_and_the_objects_and_lists(beyond: int, failed: int) -> None:
    world = await memory_world()
    ports = replace(world.ports, conversation_bytes=ROOM)
    made = exports.conversation("odd", "hello", odd=[])
    used = json.dumps(made).count("{") + json.dumps(made).count("[")
    made["odd"] = [[]] * (ROOM // BYTES_PER_CONTAINER - used + beyond)
    receipt, _ = await imported(world, ports, json.dumps([made, exports.conversation("a", "hello")]).encode())
    assert receipt["counts"]["conversations"]["failed"] == failed
    assert receipt["counts"]["reasons"].get("failed", {}) == ({"TOO_MANY_PARTS": 1} if failed else {})


async def test_conversations_that_fit_one_by_one_are_not_held_all_at_once() -> None:
    world = await memory_world()
    ports = replace(world.ports, conversation_bytes=ROOM)
    nodes = ROOM // BYTES_PER_NODE // 4
    mapping = {f"n{number}": {} for number in range(nodes)}
    items = [{"id": f"c{number}", "title": "T", "mapping": mapping} for number in range(20)]
    receipt, most = await imported(world, ports, json.dumps(items).encode())
    assert receipt["counts"]["conversations"]["imported"] == 20
    assert most <= 4
