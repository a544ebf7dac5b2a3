"""Cloudflare Queues as the job queue, over the REST API."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

from mempersist import nesting
from mempersist.jobs import Decision, Delivery
from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import QueueName, QueueUnavailable
from mempersist_ops.stores.consumer import DeadLetter
from mempersist_ops.stores.remote.rest import RestClient, RestError

_MOST: Final = 100
_REDRIVE_LEASE_MS: Final = 60_000


class RestQueue:
    """:class:`mempersist_ops.stores.consumer.ConsumerQueue` over the REST API.

    A message is never sent twice for an error: a lost one is sent again by the sweeper. Only a queue with an HTTP pull
    consumer gives its messages here; a Worker's queue can be sent to and measured.

    :param queues: the id of each queue.
    :param dead_letters: the id of the queue that its dead letters go to.
    """

    def __init__(
        self, client: RestClient, queues: Mapping[QueueName, str], dead_letters: Mapping[QueueName, str]
    ) -> None:
        self._client = client
        self._ids, self._dead_ids = dict(queues), dict(dead_letters)
        self._leased_from: dict[str, QueueName] = {}

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        if len(bodies) > _MOST:
            raise ValueError(f"bodies: {len(bodies)} messages are more than {_MOST}; send them in parts")
        if bodies:
            messages = [{"body": dict(body), "content_type": "json"} for body in bodies]
            body = {"messages": messages, "delay_seconds": delay_seconds}
            await self._call("POST", f"{self._ids[queue]}/messages/batch", body, repeatable=False)

    async def receive(self, queue: QueueName, *, limit: int, lease_seconds: int = 600) -> tuple[Delivery, ...]:
        found = await self._pull(self._ids[queue], limit, lease_seconds * 1000)
        self._leased_from.update((message["lease_id"], queue) for message in found)
        return tuple(Delivery(item["lease_id"], _body(item), int(item["attempts"])) for item in found)

    async def settle(self, decisions: Sequence[Decision]) -> None:
        """As the port says, for what this instance received."""
        known = [decision for decision in decisions if decision.id in self._leased_from]
        for queue in dict.fromkeys(self._leased_from[decision.id] for decision in known):
            own = [decision for decision in known if self._leased_from[decision.id] == queue]
            acks = [{"lease_id": each.id} for each in own if each.action == "ack"]
            retries = [
                {"lease_id": each.id, "delay_seconds": each.delay_seconds} for each in own if each.action == "retry"
            ]
            await self._ack(self._ids[queue], acks, retries)
        for decision in known:
            del self._leased_from[decision.id]

    async def depth(self, queue: QueueName) -> int:
        answer = await self._call("GET", f"{self._ids[queue]}/metrics", None, repeatable=True)
        try:
            return int(answer["backlog_count"])
        except (KeyError, TypeError, ValueError):
            raise _garbled("metrics") from None

    async def dead_letters(self) -> tuple[DeadLetter, ...]:
        """The first hundred of each queue, without taking them."""
        letters = []
        for queue, queue_id in self._dead_ids.items():
            answer = await self._call("POST", f"{queue_id}/messages/peek", {"batch_size": _MOST}, repeatable=True)
            letters += [
                DeadLetter(message["id"], queue, _body(message), MAX_DELIVERIES) for message in _messages(answer)
            ]
        return tuple(letters)

    async def redrive(self, ids: Sequence[str]) -> int:
        """As the port says. A message is sent first and taken from the dead letters then, so it may come twice."""
        wanted, count = set(ids), 0
        for queue, queue_id in self._dead_ids.items():
            passed_over: list[dict[str, str]] = []
            while wanted and (found := await self._pull(queue_id, _MOST, _REDRIVE_LEASE_MS)):
                chosen = [message for message in found if message["id"] in wanted]
                passed_over += [{"lease_id": item["lease_id"]} for item in found if item["id"] not in wanted]
                await self.send(queue, [_body(message) for message in chosen])
                await self._ack(queue_id, [{"lease_id": message["lease_id"]} for message in chosen], [])
                wanted -= {message["id"] for message in chosen}
                count += len(chosen)
            await self._ack(queue_id, [], passed_over)
        return count

    async def _pull(self, queue_id: str, limit: int, lease_ms: int) -> list[dict[str, Any]]:
        body = {"batch_size": min(limit, _MOST), "visibility_timeout_ms": lease_ms}
        return _messages(await self._call("POST", f"{queue_id}/messages/pull", body, repeatable=False))

    async def _ack(self, queue_id: str, acks: Sequence[Any], retries: Sequence[Any]) -> None:
        if acks or retries:
            body = {"acks": list(acks), "retries": list(retries)}
            await self._call("POST", f"{queue_id}/messages/ack", body, repeatable=True)

    async def _call(self, method: str, path: str, body: Any, *, repeatable: bool) -> Any:
        try:
            return await self._client.call(method, f"/queues/{path}", body=body, repeatable=repeatable)
        except RestError as error:
            raise QueueUnavailable(str(error)) from None


def _messages(answer: Any) -> list[dict[str, Any]]:
    messages = answer.get("messages") if isinstance(answer, dict) else None
    if not isinstance(messages, list) or not all(isinstance(each, dict) and "id" in each for each in messages):
        raise _garbled("messages")
    return messages


def _body(message: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object of a message, which comes as it is or in base64; an empty one for what nobody of ours sent."""
    text = message.get("body")
    if isinstance(text, dict):
        return text
    try:
        text = str(text)
        value = nesting.loads(text if text.startswith("{") else base64.b64decode(text, validate=True).decode())
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _garbled(operation: str) -> QueueUnavailable:
    return QueueUnavailable(f"Cloudflare Queues answered {operation} with something that is no result")
