"""A rig that breaks a system at a chosen port call: the process dies there, or the port reports trouble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from mempersist.ports import CatalogError, IndexUnavailable, Ports, QueueUnavailable, StorageError

_PORTS = ("objects", "catalog", "vectors", "queue", "embedder")
TROUBLE: dict[str, Callable[[], Exception]] = {
    "objects": lambda: StorageError("injected"),
    "catalog": lambda: CatalogError("injected"),
    "vectors": lambda: IndexUnavailable("injected"),
    "queue": lambda: QueueUnavailable("injected"),
    "embedder": lambda: IndexUnavailable("injected"),
}
Moment = Literal["before", "after"]


class Crash(BaseException):
    """The process is gone. No code of the product may catch it."""


@dataclass
class FaultPlan:
    """What happens at call number ``at``, counted from 0 over all ports.

    :param moment: ``before``: the call never reached the port; ``after``: it did, and the caller never learnt.
    :param kind: ``crash``: this and every later call raise :class:`Crash`; ``trouble``: this one raises the error
        that its port may raise.
    """

    at: int | None = None
    moment: Moment = "before"
    kind: Literal["crash", "trouble"] = "crash"
    calls: list[str] = field(default_factory=list)
    dead: bool = False

    async def call(self, port: str, name: str, method: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if self.dead:
            raise Crash
        number = len(self.calls)
        self.calls.append(f"{port}.{name}")
        if number != self.at:
            return await method(*args, **kwargs)
        if self.kind == "crash":
            self.dead = True
        if self.moment == "after":
            await method(*args, **kwargs)
        raise Crash if self.kind == "crash" else TROUBLE[port]()


class _Faulty:
    """A port whose coroutines go through a plan."""

    def __init__(self, port: str, inner: Any, plan: FaultPlan) -> None:
        self._port, self._inner, self._plan = port, inner, plan

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._inner, name)
        if not callable(attribute):
            return attribute

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._plan.call(self._port, name, attribute, *args, **kwargs)

        return call


def wrap(ports: Ports, plan: FaultPlan) -> Ports:
    """``ports`` with every awaited call counted and, at the plan's place, broken."""
    wrapped = {port: _Faulty(port, getattr(ports, port), plan) for port in _PORTS}
    return Ports(clock=ports.clock, ids=ports.ids, **wrapped)  # type: ignore[arg-type]
