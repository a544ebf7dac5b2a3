"""Where Cloudflare enters: requests, queue batches and the clock, each handed to the same service as on any host."""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any, Final

from workers import Response, WorkerEntrypoint, wait_until

from bindings.host import Isolate
from bindings.http import request_of, response_of
from bindings.queue import deliveries, settle
from mempersist import deadletters, logs
from mempersist.background import deliver
from mempersist.defects import place_of
from mempersist.jobs import Decision, again
from mempersist.ports import QueueName
from mempersist.recovery.sweep import sweep
from mempersist.service import Service
from mempersist.web.app import respond
from mempersist.web.http import ClientDisconnected

_QUEUES: Final[dict[str, QueueName]] = {"-import": "import", "-index": "index"}
_DEAD_LETTERS: Final = "-dead-letter"
_ISOLATE: Final = Isolate()

logging.basicConfig(stream=sys.stdout, format="%(message)s", level=logging.INFO, force=True)


class Default(WorkerEntrypoint):  # type: ignore[misc]
    """One instance serves one event; what outlives it is in the isolate."""

    async def fetch(self, request: Any) -> Response:
        service = await _ISOLATE.service(self.env)
        try:
            answer = await respond(service, request_of(request.js_object))
        except ClientDisconnected:
            return Response(None, status=499)
        if answer.later is not None:
            wait_until(asyncio.ensure_future(answer.later()))
        return Response(response_of(answer))

    async def queue(self, batch: Any, env: Any = None, ctx: Any = None) -> None:
        """Queues are told apart by how their names end, since the rest of a name is the deployment's."""
        del env, ctx
        service = await _ISOLATE.service(self.env)
        try:
            decisions = await _handled(service, batch)
        except Exception as error:  # nothing is settled then: the messages come again, later each time
            logs.error("queue_trouble", messages=len(batch.messages), defect=place_of(error))
            decisions = [again(delivery) for delivery in deliveries(batch)]
        settle(batch, decisions)

    async def scheduled(self, controller: Any, env: Any = None, ctx: Any = None) -> None:
        del controller, env, ctx
        service = await _ISOLATE.service(self.env)
        if service.trouble is not None:
            logs.error("sweep_not_begun", code=service.trouble.code.value)
            return
        try:
            await sweep(service.ports)
        except Exception as error:  # the next minute tries again
            logs.error("sweep_trouble", defect=place_of(error))


async def _handled(service: Service, batch: Any) -> list[Decision]:
    found = deliveries(batch)
    if service.trouble is not None:
        return [again(delivery) for delivery in found]
    name = str(batch.queue)
    if name.endswith(_DEAD_LETTERS):
        return await deadletters.record(service.ports, found, service.settings.alert_address)
    for ending, queue in _QUEUES.items():
        if name.endswith(ending):
            return await deliver(service.ports, queue, found)
    logs.error("unknown_queue", messages=len(found))
    raise LookupError("a queue of this name has no consumer here; its messages are kept")
