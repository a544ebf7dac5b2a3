"""Cloudflare Queues as the job queue, and what a consumer is handed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyodide.ffi import JsException, to_js

from bindings.ffi import js_object, to_json_value
from mempersist.jobs import Decision, Delivery
from mempersist.ports import QueueName, QueueUnavailable


class WorkerQueues:
    """:class:`mempersist.ports.JobQueue` over one binding a queue. A message is never sent twice for an error: a lost
    one is sent again by the sweeper."""

    def __init__(self, queues: Mapping[QueueName, Any]) -> None:
        self._queues = queues

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        if not bodies:
            return
        messages = [js_object({"body": to_json_value(dict(body)), "contentType": "json"}) for body in bodies]
        try:
            await self._queues[queue].sendBatch(to_js(messages), js_object({"delaySeconds": delay_seconds}))
        except JsException:
            raise QueueUnavailable from None


def deliveries(batch: Any) -> list[Delivery]:
    """The messages of a batch; a body that is no object, which nobody of ours sent, comes as an empty one."""
    return [
        Delivery(str(message.id), message.body if isinstance(message.body, dict) else {}, int(message.attempts))
        for message in batch.messages
    ]


def settle(batch: Any, decisions: Sequence[Decision]) -> None:
    """Acknowledge or give back each message as decided; what nothing was decided for is given back at once."""
    decided = {decision.id: decision for decision in decisions}
    for message in batch.messages:
        decision = decided.get(str(message.id))
        if decision is None:
            message.retry()
        elif decision.action == "ack":
            message.ack()
        else:
            message.retry(delaySeconds=decision.delay_seconds)
