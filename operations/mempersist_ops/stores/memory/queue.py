"""The job queue in memory, with the consumer's side."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mempersist.jobs import Decision, Delivery
from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import Clock, QueueName
from mempersist_ops.stores.consumer import DeadLetter


@dataclass(slots=True)
class _Message:
    queue: QueueName
    body: str
    due_ms: int
    attempts: int = 0
    dead: bool = False


class MemoryQueue:
    """:class:`mempersist_ops.stores.consumer.ConsumerQueue` that ends with the object."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._messages: dict[str, _Message] = {}
        self._count = 0

    def close(self) -> None:
        """Nothing to close; here so that tests treat every queue alike."""

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        due = self._clock.now_ms() + delay_seconds * 1000
        for body in bodies:
            self._count += 1
            self._messages[str(self._count)] = _Message(queue, json.dumps(body), due)

    async def receive(self, queue: QueueName, *, limit: int, lease_seconds: int = 600) -> tuple[Delivery, ...]:
        now = self._clock.now_ms()
        taken: list[Delivery] = []
        for message_id, message in self._messages.items():
            if len(taken) == limit:
                break
            if message.queue != queue or message.dead or message.due_ms > now:
                continue
            if message.attempts >= MAX_DELIVERIES:
                message.dead = True
                continue
            message.attempts += 1
            message.due_ms = now + lease_seconds * 1000
            taken.append(Delivery(message_id, json.loads(message.body), message.attempts))
        return tuple(taken)

    async def settle(self, decisions: Sequence[Decision]) -> None:
        for decision in decisions:
            if decision.action == "ack":
                self._messages.pop(decision.id, None)
            elif decision.id in self._messages:
                self._messages[decision.id].due_ms = self._clock.now_ms() + decision.delay_seconds * 1000

    async def depth(self, queue: QueueName) -> int:
        return sum(message.queue == queue and not message.dead for message in self._messages.values())

    async def dead_letters(self) -> tuple[DeadLetter, ...]:
        return tuple(
            DeadLetter(message_id, message.queue, json.loads(message.body), message.attempts)
            for message_id, message in self._messages.items()
            if message.dead
        )

    async def redrive(self, ids: Sequence[str]) -> int:
        count = 0
        for message_id in ids:
            message = self._messages.get(message_id)
            if message is not None and message.dead:
                message.dead, message.attempts, message.due_ms = False, 0, self._clock.now_ms()
                count += 1
        return count
