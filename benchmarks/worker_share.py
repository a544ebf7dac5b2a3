"""The service's own share of its work: requests and turns over stores that play back what they answered before.

Runs unchanged on CPython and inside the Worker's Pyodide, so it imports nothing but the service.
"""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from mempersist import background
from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.archive.model import OWNER
from mempersist.jobs import Delivery
from mempersist.mcp import endpoint
from mempersist.ports import Ports
from mempersist.service import Service, Settings

PORTS = ("objects", "catalog", "vectors", "queue", "embedder")
NOW_MS = 1_780_000_000_000
Played = list[tuple[str, str, bool, Any]]
"""Calls in their order: port and method, arguments, whether they succeeded, and the result or the error."""


class FixedClock:
    def now_ms(self) -> int:
        return NOW_MS


class CountingIds:
    """The same ids in every run of one piece of work."""

    def __init__(self, work: str) -> None:
        self._count = zlib.crc32(work.encode()) << 12

    def uuid(self) -> str:
        self._count += 1
        return f"00000000-0000-4000-8000-{self._count:012x}"

    def token(self, size: int = 32) -> str:
        return self.uuid().replace("-", "")[:size]


class _Proxy:
    """A port whose calls go through ``call``."""

    def __init__(self, name: str, call: Callable[..., Awaitable[Any]], attributes: Mapping[str, Any]) -> None:
        self._name, self._call = name, call
        self.__dict__.update(attributes)

    def __getattr__(self, method: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._call(self._name, method, args, kwargs)

        return call


def recording(ports: Ports, played: Played, work: str) -> Ports:
    """``ports`` that note every call and what came of it."""

    async def call(port: str, method: str, args: Any, kwargs: Any) -> Any:
        arguments = repr((args, kwargs))
        try:
            result = await getattr(getattr(ports, port), method)(*args, **kwargs)
        except Exception as error:
            played.append((f"{port}.{method}", arguments, False, error))
            raise
        played.append((f"{port}.{method}", arguments, True, result))
        return result

    return _ports(call, ports.embedder.model, work)


class Player:
    """Ports that answer from a recording, and the time that took."""

    def __init__(self, played: Played, model: Any, work: str) -> None:
        self._left: dict[tuple[str, str], deque[tuple[bool, Any]]] = defaultdict(deque)
        for name, arguments, succeeded, result in played:
            self._left[name, arguments].append((succeeded, result))
        self.seconds = 0.0
        self.ports = _ports(self._call, model, work)

    async def _call(self, port: str, method: str, args: Any, kwargs: Any) -> Any:
        started = time.perf_counter()
        try:
            succeeded, result = self._left[f"{port}.{method}", repr((args, kwargs))].popleft()
            if not succeeded:
                raise result
            return result
        finally:
            self.seconds += time.perf_counter() - started


def _ports(call: Callable[..., Awaitable[Any]], model: Any, work: str) -> Ports:
    proxies = {name: _Proxy(name, call, {"model": model} if name == "embedder" else {}) for name in PORTS}
    return Ports(clock=FixedClock(), ids=CountingIds(work), **proxies)


Scenario = tuple[str, Any, Any, tuple[Delivery, ...]]
"""A piece of work: its name, and an MCP message, or a queue with its messages."""


async def perform(scenario: Scenario, ports: Ports) -> None:
    _, message, queue, deliveries = scenario
    if queue is not None:
        await background.deliver(ports, queue, deliveries)
        return
    service = Service(ports, Settings("https://memory.example"))
    principal = Principal(OWNER, frozenset({READ, WRITE}))
    answer = await endpoint.handle("POST", {}, json.dumps(message).encode(), principal, service)
    assert answer.status == 200, answer.status
    assert b'"isError":true' not in answer.body, answer.body[:300]


async def main(data: tuple[list[tuple[Scenario, Played]], Any, int]) -> dict[str, float]:
    """Milliseconds of each scenario without its stores: the best of ``rounds``."""
    recordings, model, rounds = data
    best: dict[str, float] = {}
    for scenario, played in recordings:
        for _ in range(rounds):
            player = Player(played, model, scenario[0])
            started = time.perf_counter()
            await perform(scenario, player.ports)
            own = (time.perf_counter() - started - player.seconds) * 1000
            best[scenario[0]] = min(own, best.get(scenario[0], own))
            await asyncio.sleep(0)
    return best
