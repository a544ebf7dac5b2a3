"""A rig for races: one act runs as a whole in the middle of another, at each port call of that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from mempersist.errors import MempersistError
from mempersist.ports import Ports
from tests.rigs.faults import FaultPlan, wrap

Act = Callable[[Ports], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Race:
    """A new system and what races in it. ``given`` is what the test wants back."""

    given: Any
    ports: Ports
    act: Act
    other: Act


@dataclass
class _Meanwhile(FaultPlan):
    """Runs ``other`` before call number ``at``."""

    other: Callable[[], Awaitable[None]] | None = None
    ran: bool = False

    async def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        number = len(self.calls)
        self.calls.append(f"{port}.{name}")
        if number == self.at and self.other is not None:
            self.ran = True
            await self.other()
        return await method(*args, **kwargs)


async def outcome(act: Act, ports: Ports) -> Any:
    """What ``act`` returns, or the error that its caller is told."""
    try:
        return await act(ports)
    except MempersistError as error:
        return error


async def every_interleaving(new: Callable[[], Awaitable[Race]]) -> AsyncIterator[tuple[Any, Any, Any]]:
    """For each port call of the race's act, the other act at that place: ``given`` and both outcomes."""
    at = 0
    while True:
        race = await new()
        others: list[Any] = []

        async def meanwhile(race: Race = race, others: list[Any] = others) -> None:
            others.append(await outcome(race.other, race.ports))

        plan = _Meanwhile(at=at, other=meanwhile)
        first = await outcome(race.act, wrap(race.ports, plan))
        if not plan.ran:
            return
        yield race.given, first, others[0]
        at += 1
