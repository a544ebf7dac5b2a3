"""The consumer's side of a job queue, as a host uses it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mempersist.jobs import Decision, Delivery
from mempersist.ports import JobQueue, QueueName


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A message that was delivered too often. It waits to be looked at and sent again."""

    id: str
    queue: QueueName
    body: Mapping[str, Any]
    attempts: int


class ConsumerQueue(JobQueue, Protocol):
    """A queue that a host of ours reads itself."""

    async def receive(self, queue: QueueName, *, limit: int, lease_seconds: int = 600) -> tuple[Delivery, ...]:
        """Up to ``limit`` messages that are due; they come again unless settled within the lease."""
        ...

    async def settle(self, decisions: Sequence[Decision]) -> None:
        """Acknowledge or give back deliveries; an unknown one is not an error."""
        ...

    async def depth(self, queue: QueueName) -> int:
        """Messages that wait, are delayed or under a lease; dead letters are not counted."""
        ...

    async def dead_letters(self) -> tuple[DeadLetter, ...]: ...

    async def redrive(self, ids: Sequence[str]) -> int:
        """Make dead letters due again with a clean record; how many there were."""
        ...
