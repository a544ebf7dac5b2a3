"""The fault rig does what the crash tests rely on."""

from __future__ import annotations

import asyncio

import pytest

from mempersist.ports import CatalogError, StorageError
from tests.rigs.faults import Crash, FaultPlan, wrap
from tests.rigs.worlds import memory_world


async def test_calls_are_counted_over_all_ports() -> None:
    world, plan = await memory_world(), FaultPlan()
    ports = wrap(world.ports, plan)
    await ports.objects.put("a", b"x")
    await ports.catalog.query("SELECT 1")
    await ports.queue.send("index", [{}])
    assert plan.calls == ["objects.put", "catalog.query", "queue.send"]


@pytest.mark.parametrize(("moment", "written"), [("before", False), ("after", True)])
async def test_a_crash_comes_before_or_after_the_call(moment: str, written: bool) -> None:
    world = await memory_world()
    ports = wrap(world.ports, FaultPlan(at=0, moment=moment))  # type: ignore[arg-type]
    with pytest.raises(Crash):
        await ports.objects.put("a", b"x")
    assert (await world.ports.objects.head("a") is not None) is written


async def test_a_dead_process_does_nothing_more() -> None:
    world = await memory_world()
    ports = wrap(world.ports, FaultPlan(at=0))
    results = await asyncio.gather(ports.objects.put("a", b"x"), ports.objects.put("b", b"x"), return_exceptions=True)
    assert [type(result) for result in results] == [Crash, Crash]
    assert await world.ports.objects.head("b") is None


async def test_trouble_is_the_ports_own_error_and_passes() -> None:
    world = await memory_world()
    ports = wrap(world.ports, FaultPlan(at=1, kind="trouble"))
    await ports.objects.put("a", b"x")
    with pytest.raises(StorageError):
        await ports.objects.put("a", b"y")
    await ports.objects.put("a", b"z")
    assert await ports.objects.get("a") == b"z"


async def test_trouble_of_the_catalog_is_a_catalog_error() -> None:
    ports = wrap((await memory_world()).ports, FaultPlan(at=0, kind="trouble"))
    with pytest.raises(CatalogError):
        await ports.catalog.query("SELECT 1")
