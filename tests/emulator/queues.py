"""Queues over REST: messages in a SQLite file, leased by pulling, given back, and moved to a dead-letter queue.

The codes 10201 and 11006 are made up; that JSON bodies are pulled in base64 is from memory.
"""

from __future__ import annotations

import base64
import json
import re
import uuid
from pathlib import Path
from typing import Any

from mempersist import timestamps
from mempersist.ports import Clock
from mempersist_ops.stores.sqlite import open_database
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result, page_of

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_MAX_MESSAGE_BYTES = 128_000
_MAX_BATCH = 100
_MAX_BATCH_BYTES = 256_000
_MAX_DELAY_SECONDS = 86_400
_MAX_VISIBILITY_MS = 12 * 3600 * 1000
_SETTINGS = {"delivery_delay": 0, "delivery_paused": False, "message_retention_period": 345_600}
_CONSUMER_SETTINGS = {"batch_size": 10, "max_retries": 3, "retry_delay": 0}
_SCHEMA = """
CREATE TABLE messages (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  queue_id TEXT NOT NULL,
  body TEXT NOT NULL,
  content_type TEXT NOT NULL,
  sent_ms INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  lease_id TEXT
) STRICT;
"""


class Queues:
    """The queues of every account."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        self._connection = open_database(path, synchronous="NORMAL")
        self._connection.executescript(_SCHEMA)
        self._queues: dict[tuple[str, str], dict[str, Any]] = {}

    def close(self) -> None:
        self._connection.close()

    def routes(self) -> list[Route]:
        base = "/queues"
        one = f"{base}/{{queue_id}}"
        consumer = f"{one}/consumers/{{consumer_id}}"
        return [
            Route("POST", base, "Queues", "Write", self._create),
            Route("GET", base, "Queues", "Read", self._list),
            Route("GET", one, "Queues", "Read", self._get),
            Route("PUT", one, "Queues", "Write", self._update),
            Route("PATCH", one, "Queues", "Write", self._update),
            Route("DELETE", one, "Queues", "Write", self._delete),
            Route("POST", f"{one}/consumers", "Queues", "Write", self._create_consumer),
            Route("GET", f"{one}/consumers", "Queues", "Read", self._list_consumers),
            Route("GET", consumer, "Queues", "Read", self._get_consumer),
            Route("PUT", consumer, "Queues", "Write", self._update_consumer),
            Route("DELETE", consumer, "Queues", "Write", self._delete_consumer),
            Route("GET", f"{one}/metrics", "Queues", "Read", self._metrics),
            Route("POST", f"{one}/messages", "Queues", "Write", self._send),
            Route("POST", f"{one}/messages/batch", "Queues", "Write", self._send_batch),
            Route("POST", f"{one}/messages/pull", "Queues", "Write", self._pull),
            Route("POST", f"{one}/messages/ack", "Queues", "Write", self._ack),
            Route("POST", f"{one}/messages/peek", "Queues", "Read", self._peek),
        ]

    # ---------------------------------------------------------------- queues and consumers

    async def _create(self, call: Call) -> Result:
        given = call.request.json_object(10026)
        name = given.get("queue_name")
        self._check_name(call, name)
        now = timestamps.from_ms(self._clock.now_ms())
        queue: dict[str, Any] = {
            "queue_id": uuid.uuid4().hex,
            "queue_name": name,
            "created_on": now,
            "modified_on": now,
            "producers": [],
            "producers_total_count": 0,
            "consumers": [],
            "consumers_total_count": 0,
            "settings": {**_SETTINGS, **(given.get("settings") or {})},
        }
        self._queues[call.account, str(queue["queue_id"])] = queue
        return Result(queue)

    async def _list(self, call: Call) -> Result:
        found = [queue for (owner, _), queue in self._queues.items() if owner == call.account]
        return page_of(found, call.request, per_page=100, most=100)

    async def _get(self, call: Call, queue_id: str) -> Result:
        return Result(self._queue(call, queue_id))

    async def _update(self, call: Call, queue_id: str) -> Result:
        queue, given = self._queue(call, queue_id), call.request.json_object(10026)
        name = given.get("queue_name", queue["queue_name"])
        if name != queue["queue_name"]:
            self._check_name(call, name)
        queue["queue_name"] = name
        queue["settings"] |= given.get("settings") or {}
        queue["modified_on"] = timestamps.from_ms(self._clock.now_ms())
        return Result(queue)

    async def _delete(self, call: Call, queue_id: str) -> Result:
        queue = self._queue(call, queue_id)
        if any(consumer["type"] == "worker" for consumer in queue["consumers"]):
            raise ApiError(409, 11005, "Queue is still bound to a Worker", {"x-should-retry": "false"})
        del self._queues[call.account, queue_id]
        self._connection.execute("DELETE FROM messages WHERE queue_id = ?", (queue_id,))
        return Result(None)

    async def _create_consumer(self, call: Call, queue_id: str) -> Result:
        queue, given = self._queue(call, queue_id), call.request.json_object(10026)
        if queue["consumers"]:
            raise ApiError(409, 11004, "Queue already has a consumer", {"x-should-retry": "false"})
        consumer = {
            "consumer_id": uuid.uuid4().hex,
            "queue_name": queue["queue_name"],
            "created_on": timestamps.from_ms(self._clock.now_ms()),
            **self._consumer(given),
        }
        queue["consumers"] = [consumer]
        queue["consumers_total_count"] = 1
        return Result(consumer)

    async def _list_consumers(self, call: Call, queue_id: str) -> Result:
        return page_of(self._queue(call, queue_id)["consumers"], call.request, per_page=20, most=100)

    async def _get_consumer(self, call: Call, queue_id: str, consumer_id: str) -> Result:
        return Result(self._found_consumer(self._queue(call, queue_id), consumer_id))

    async def _update_consumer(self, call: Call, queue_id: str, consumer_id: str) -> Result:
        consumer = self._found_consumer(self._queue(call, queue_id), consumer_id)
        consumer |= self._consumer(call.request.json_object(10026))
        return Result(consumer)

    async def _delete_consumer(self, call: Call, queue_id: str, consumer_id: str) -> Result:
        queue = self._queue(call, queue_id)
        queue["consumers"].remove(self._found_consumer(queue, consumer_id))
        queue["consumers_total_count"] = 0
        return Result(None)

    def _consumer(self, given: dict[str, Any]) -> dict[str, Any]:
        if given.get("type") not in ("worker", "http_pull"):
            raise ApiError(400, 10026, "type must be worker or http_pull")
        own = {"max_wait_time_ms": 5000} if given["type"] == "worker" else {"visibility_timeout_ms": 30_000}
        consumer = {
            "type": given["type"],
            "dead_letter_queue": given.get("dead_letter_queue"),
            "settings": {**_CONSUMER_SETTINGS, **own, **(given.get("settings") or {})},
        }
        return consumer | ({"script_name": given.get("script_name")} if given["type"] == "worker" else {})

    # ---------------------------------------------------------------- messages

    async def _send(self, call: Call, queue_id: str) -> Result:
        queue = self._queue(call, queue_id)
        self._add(queue, [call.request.json_object(10026)], None)
        return Result({"metadata": {"metrics": self._backlog(queue_id)}})

    async def _send_batch(self, call: Call, queue_id: str) -> Result:
        queue, given = self._queue(call, queue_id), call.request.json_object(10026)
        messages = given.get("messages")
        if not isinstance(messages, list) or not 1 <= len(messages) <= _MAX_BATCH:
            raise ApiError(400, 10026, f"messages must be a list of 1 to {_MAX_BATCH}")
        self._add(queue, messages, given.get("delay_seconds"))
        return Result({"metadata": {"metrics": self._backlog(queue_id)}})

    async def _pull(self, call: Call, queue_id: str) -> Result:
        queue, given = self._queue(call, queue_id), call.request.json_object(10026)
        kind = "worker" if call.token.is_runtime else "http_pull"
        consumer = next((each for each in queue["consumers"] if each["type"] == kind), None)
        if consumer is None:
            raise ApiError(405, 10201, "HTTP pull is not enabled for this queue")
        size = int(given.get("batch_size", 5))
        lease = int(given.get("visibility_timeout_ms", consumer["settings"].get("visibility_timeout_ms", 30_000)))
        if not 1 <= size <= _MAX_BATCH or not 0 <= lease <= _MAX_VISIBILITY_MS:
            raise ApiError(400, 10026, "batch_size or visibility_timeout_ms is out of range")
        self._bury(call.account, queue, consumer)
        now = self._clock.now_ms()
        rows = self._connection.execute(
            "SELECT seq, id, body, content_type, sent_ms, attempts FROM messages WHERE queue_id = ? AND due_ms <= ?"
            " ORDER BY due_ms, seq LIMIT ?",
            (queue_id, now, size),
        ).fetchall()
        messages = []
        for seq, message_id, body, content_type, sent_ms, attempts in rows:
            lease_id = uuid.uuid4().hex
            self._connection.execute(
                "UPDATE messages SET lease_id = ?, due_ms = ?, attempts = attempts + 1 WHERE seq = ?",
                (lease_id, now + lease, seq),
            )
            shown = _shown(message_id, body, content_type, sent_ms, attempts + 1)
            messages.append({**shown, "lease_id": lease_id})
        count = self._backlog(queue_id)["backlog_count"]
        return Result({"messages": messages, "message_backlog_count": count})

    async def _ack(self, call: Call, queue_id: str) -> Result:
        queue, given = self._queue(call, queue_id), call.request.json_object(10026)
        done = returned = 0
        unknown: dict[str, str] = {}
        for ack in given.get("acks") or []:
            sql = "DELETE FROM messages WHERE queue_id = ? AND lease_id = ?"
            gone = self._connection.execute(sql, (queue_id, ack["lease_id"])).rowcount
            done += gone
            unknown |= {} if gone else {ack["lease_id"]: "lease not found"}
        for retry in given.get("retries") or []:
            default = queue["consumers"][0]["settings"]["retry_delay"] if queue["consumers"] else 0
            due = self._clock.now_ms() + int(retry.get("delay_seconds", default)) * 1000
            sql = "UPDATE messages SET due_ms = ?, lease_id = NULL WHERE queue_id = ? AND lease_id = ?"
            back = self._connection.execute(sql, (due, queue_id, retry["lease_id"])).rowcount
            returned += back
            unknown |= {} if back else {retry["lease_id"]: "lease not found"}
        return Result({"ackCount": done, "retryCount": returned, "warnings": unknown})

    async def _peek(self, call: Call, queue_id: str) -> Result:
        self._queue(call, queue_id)
        rows = self._connection.execute(
            "SELECT id, body, content_type, sent_ms, attempts FROM messages WHERE queue_id = ? ORDER BY seq LIMIT ?",
            (queue_id, int(call.request.json_object(10026).get("batch_size", 5))),
        )
        return Result({"messages": [{**_shown(*row), "ref": row[0]} for row in rows]})

    async def _metrics(self, call: Call, queue_id: str) -> Result:
        self._queue(call, queue_id)
        return Result(self._backlog(queue_id))

    # ---------------------------------------------------------------- parts of the above

    def _add(self, queue: dict[str, Any], messages: list[Any], delay: Any) -> None:
        rows, total, now = [], 0, self._clock.now_ms()
        for message in messages:
            if not isinstance(message, dict) or "body" not in message:
                raise ApiError(400, 10207, "A message must have a body")
            kind = message.get("content_type", "json")
            if kind not in ("json", "text") or (kind == "text" and not isinstance(message["body"], str)):
                raise ApiError(400, 10207, "content_type must be json or text")
            body = message["body"] if kind == "text" else json.dumps(message["body"])
            total += len(body.encode())
            wait = message.get("delay_seconds", delay)
            wait = queue["settings"]["delivery_delay"] if wait is None else wait
            if len(body.encode()) > _MAX_MESSAGE_BYTES or not 0 <= wait <= _MAX_DELAY_SECONDS:
                raise ApiError(400, 10207, "A message is too large, or its delay is out of range")
            rows.append((uuid.uuid4().hex, queue["queue_id"], body, kind, now, now + int(wait) * 1000))
        if total > _MAX_BATCH_BYTES:
            raise ApiError(413, 10207, f"A batch has at most {_MAX_BATCH_BYTES} bytes")
        self._connection.executemany(
            "INSERT INTO messages (id, queue_id, body, content_type, sent_ms, due_ms) VALUES (?, ?, ?, ?, ?, ?)", rows
        )

    def _bury(self, account: str, queue: dict[str, Any], consumer: dict[str, Any]) -> None:
        """Move what was delivered too often to the dead-letter queue, as new messages; without one it is dropped."""
        now = self._clock.now_ms()
        spent = self._connection.execute(
            "DELETE FROM messages WHERE queue_id = ? AND due_ms <= ? AND attempts > ?"
            " RETURNING seq, body, content_type",
            (queue["queue_id"], now, consumer["settings"]["max_retries"]),
        ).fetchall()
        dead = next(
            (
                each
                for (owner, _), each in self._queues.items()
                if owner == account and each["queue_name"] == consumer["dead_letter_queue"]
            ),
            None,
        )
        if dead is not None:
            for _, body, kind in sorted(spent):
                self._add(dead, [{"body": body if kind == "text" else json.loads(body), "content_type": kind}], 0)

    def _backlog(self, queue_id: str) -> dict[str, int]:
        count, size, oldest = self._connection.execute(
            "SELECT count(*), coalesce(sum(length(CAST(body AS BLOB))), 0), coalesce(min(sent_ms), 0) FROM messages"
            " WHERE queue_id = ?",
            (queue_id,),
        ).fetchone()
        return {"backlog_count": count, "backlog_bytes": size, "oldest_message_timestamp_ms": oldest}

    def exists(self, account: str, name: str) -> bool:
        return any(owner == account and queue["queue_name"] == name for (owner, _), queue in self._queues.items())

    def id_of(self, account: str, name: str) -> str:
        """:raises LookupError: if there is no such queue"""
        for (owner, queue_id), queue in self._queues.items():
            if owner == account and queue["queue_name"] == name:
                return queue_id
        raise LookupError(name)

    def consumed_by(self, account: str, script: str) -> bool:
        """Whether a Worker takes from any queue."""
        return any(
            owner == account and any(each.get("script_name") == script for each in queue["consumers"])
            for (owner, _), queue in self._queues.items()
        )

    def _queue(self, call: Call, queue_id: str) -> dict[str, Any]:
        queue = self._queues.get((call.account, queue_id))
        if queue is None:
            raise ApiError(404, 11000, "Queue does not exist")
        return queue

    def _found_consumer(self, queue: dict[str, Any], consumer_id: str) -> dict[str, Any]:
        for consumer in queue["consumers"]:
            if consumer["consumer_id"] == consumer_id:
                return consumer  # type: ignore[no-any-return]
        raise ApiError(404, 11006, "Consumer does not exist")

    def _check_name(self, call: Call, name: Any) -> None:
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ApiError(400, 11003, "Queue name is invalid")
        if any(owner == call.account and queue["queue_name"] == name for (owner, _), queue in self._queues.items()):
            raise ApiError(409, 11009, f"Queue name {name} is already taken", {"x-should-retry": "false"})


def _shown(message_id: str, body: str, content_type: str, sent_ms: int, attempts: int) -> dict[str, Any]:
    """A message as it is pulled: a JSON body in base64."""
    text = body if content_type == "text" else base64.b64encode(body.encode()).decode()
    metadata = {"CF-Content-Type": content_type, "CF-sourceMessageSource": "dash"}
    return {"id": message_id, "body": text, "metadata": metadata, "timestamp_ms": sent_ms, "attempts": attempts}
