"""The contract of the clock and id ports."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

import pytest

from mempersist import timestamps
from mempersist.ports import Clock, Ids
from mempersist.system import SystemClock, SystemIds
from mempersist_ops.stores.memory.system import ManualClock, SeededIds

CLOCKS: dict[str, Callable[[], Clock]] = {"memory": ManualClock, "embedded": SystemClock}
IDS: dict[str, Callable[[], Ids]] = {"memory": SeededIds, "embedded": SystemIds}


@pytest.fixture(params=CLOCKS)
def clock(request: pytest.FixtureRequest) -> Clock:
    return CLOCKS[request.param]()


@pytest.fixture(params=IDS)
def ids(request: pytest.FixtureRequest) -> Ids:
    return IDS[request.param]()


def test_a_clock_tells_whole_milliseconds_that_do_not_run_backwards(clock: Clock) -> None:
    times = [clock.now_ms() for _ in range(100)]
    assert all(type(time) is int for time in times)
    assert times == sorted(times)
    assert "2020" < timestamps.from_ms(times[0]) < "2200"


def test_uuids_are_random_uuids_and_differ(ids: Ids) -> None:
    made = [ids.uuid() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert {uuid.UUID(value).version for value in made} == {4}
    assert all(str(uuid.UUID(value)) == value for value in made)


@pytest.mark.parametrize("size", [16, 32])
def test_tokens_are_url_safe_hold_their_bytes_and_differ(ids: Ids, size: int) -> None:
    made = [ids.token(size) for _ in range(1000)]
    assert len(set(made)) == 1000
    assert all(re.fullmatch(r"[A-Za-z0-9_-]+", value) for value in made)
    assert {len(value) for value in made} == {-(-size * 8 // 6)}


def test_seeded_ids_repeat_and_a_manual_clock_stands_still() -> None:
    assert [SeededIds(1).uuid(), SeededIds(1).token()] == [SeededIds(1).uuid(), SeededIds(1).token()]
    clock = ManualClock(5)
    clock.advance(7)
    assert (clock.now_ms(), clock.now_ms()) == (12, 12)
