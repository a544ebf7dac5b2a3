"""Who takes from a queue: a Worker.

The upstream resource loses track of consumers; this one finds them by listing, so that a consumer made just before a
crash is taken over, and a dead-letter queue that somebody changed is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from mempersist_infra.providers.calls import ProviderError, calling, changed, whole
from mempersist_ops.stores.remote.rest import RestClient, RestError

_NOT_FOUND: Final = 404
_REPLACING: Final = ("account", "queue_id", "queue", "script")
_CHANGING: Final = ("dead_letter_queue", "settings")


async def find_consumer(client: RestClient, queue_id: str, script: str) -> dict[str, Any] | None:
    """The consumer that is this Worker; None where there is none, or no such queue.

    :raises ProviderError: if another one takes from the queue.
    """
    try:
        listed = await client.call("GET", f"/queues/{queue_id}/consumers", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return None
        raise
    if not isinstance(listed, list):
        raise ProviderError("Cloudflare's answer about the queue's consumers cannot be understood")
    for each in listed:
        if each.get("type") == "worker" and (each.get("script") or each.get("script_name")) == script:
            return dict(each)
    if any(each.get("type") == "worker" for each in listed):
        raise ProviderError(f"another Worker takes from the queue {queue_id}; remove that consumer first")
    return None


def body_of(props: Mapping[str, Any]) -> dict[str, Any]:
    """What the API is told."""
    body = {"type": "worker", "script_name": props["script"], "settings": whole(props["settings"])}
    return {**body, "dead_letter_queue": props["dead_letter_queue"]} if props.get("dead_letter_queue") else body


async def put_consumer(client: RestClient, props: Mapping[str, Any]) -> str:
    """Make or change the consumer; gives its id. :raises ProviderError: if Cloudflare names none."""
    path = f"/queues/{props['queue_id']}/consumers"
    found = await find_consumer(client, str(props["queue_id"]), str(props["script"]))
    if found is None:
        answer = await client.call("POST", path, body=body_of(props), repeatable=False)
    else:
        answer = await client.call("PUT", f"{path}/{found['consumer_id']}", body=body_of(props), repeatable=True)
    if not isinstance(answer, dict) or not answer.get("consumer_id"):
        raise ProviderError("Cloudflare took the consumer without naming it; run the same command again")
    return str(answer["consumer_id"])


async def delete_consumer(client: RestClient, queue_id: str, consumer: str) -> None:
    """Remove the consumer; nothing if it is gone."""
    try:
        await client.call("DELETE", f"/queues/{queue_id}/consumers/{consumer}", repeatable=True)
    except RestError as error:
        if error.status != _NOT_FOUND:
            raise


class QueueConsumerProvider(ResourceProvider):
    """Thin cover over the functions of this module."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced, altered = changed(_olds, _news, _REPLACING), changed(_olds, _news, _CHANGING)
        return DiffResult(changes=bool(replaced or altered), replaces=replaced, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        return CreateResult(calling(str(props["account"]), lambda client: put_consumer(client, props)), props)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        calling(str(_news["account"]), lambda client: put_consumer(client, _news))
        return UpdateResult(_news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        queue_id, script = str(props["queue_id"]), str(props["script"])
        found = calling(str(props["account"]), lambda client: find_consumer(client, queue_id, script))
        if found is None or found.get("consumer_id") != id_:
            return ReadResult(None, {})
        there = found.get("settings") or {}
        settings = {name: there.get(name) for name in whole(props["settings"])}
        seen = {"settings": settings, "dead_letter_queue": found.get("dead_letter_queue") or ""}
        return ReadResult(id_, {**props, **seen})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        calling(str(_props["account"]), lambda client: delete_consumer(client, str(_props["queue_id"]), _id))


class QueueConsumer(Resource, module="mempersist", name="QueueConsumer"):
    """A Worker that takes from a queue. ``dead_letter_queue`` is a queue's name; empty for none."""

    def __init__(
        self,
        name: str,
        *,
        account: str,
        queue_id: pulumi.Input[str],
        queue: str,
        script: str,
        dead_letter_queue: str,
        settings: Mapping[str, int],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "account": account,
            "queue_id": queue_id,
            "queue": queue,
            "script": script,
            "dead_letter_queue": dead_letter_queue,
            "settings": dict(settings),
        }
        super().__init__(QueueConsumerProvider(), name, props, opts)
