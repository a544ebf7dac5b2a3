"""The job queue in memory, with the consumer's side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import Clock, QueueName


@dataclass(frozen=True, slots=True)
class QueuedMessage:
    id: str
    body: Mapping[str, Any]
    attempts: int


@dataclass
class _Message:
    queue: QueueName
    body: str
    due_ms: int
    attempts: int = 0
    dead: bool = False


class MemoryQueue:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._messages: dict[str, _Message] = {}
        self._count = 0

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        for body in bodies:
            self._count += 1
            self._messages[f"m{self._count}"] = _Message(
                queue, json.dumps(body), self._clock.now_ms() + delay_seconds * 1000
            )

    async def receive(self, queue: QueueName, *, limit: int, lease_seconds: int) -> tuple[QueuedMessage, ...]:
        now = self._clock.now_ms()
        taken = []
        for message_id, message in self._messages.items():
            if message.queue != queue or message.dead or message.due_ms > now or len(taken) == limit:
                continue
            if message.attempts > MAX_DELIVERIES:
                message.dead = True
                continue
            message.attempts += 1
            message.due_ms = now + lease_seconds * 1000
            taken.append(QueuedMessage(message_id, json.loads(message.body), message.attempts))
        return tuple(taken)

    async def ack(self, ids: Sequence[str]) -> None:
        for message_id in ids:
            self._messages.pop(message_id, None)

    async def retry(self, message_id: str, delay_seconds: int) -> None:
        if message_id in self._messages:
            self._messages[message_id].due_ms = self._clock.now_ms() + delay_seconds * 1000
