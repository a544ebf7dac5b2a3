"""The job queue of the local host: messages in a SQLite file that any number of processes may share."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from mempersist.jobs import Decision, Delivery
from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import Clock, QueueName, QueueUnavailable
from mempersist_ops.stores.consumer import DeadLetter
from mempersist_ops.stores.sqlite import open_database, reason

_SCHEMA = """
CREATE TABLE IF NOT EXISTS messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  body TEXT NOT NULL,
  due_ms INTEGER NOT NULL,
  attempts INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX IF NOT EXISTS messages_due ON messages (queue, dead, due_ms, id);
"""


class SqliteQueue:
    """:class:`mempersist_ops.stores.consumer.ConsumerQueue` in a file. A send that returned survives a power loss.

    :raises QueueUnavailable: from every method when the file cannot be used.
    """

    def __init__(self, path: Path, clock: Clock) -> None:
        self._clock = clock
        try:
            self._connection = open_database(path)
            self._connection.executescript(_SCHEMA)
        except sqlite3.Error as error:
            raise _unavailable(error) from None

    def close(self) -> None:
        self._connection.close()

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        due = self._clock.now_ms() + delay_seconds * 1000
        self._run(
            "INSERT INTO messages (queue, body, due_ms) SELECT ?1, value, ?2 FROM json_each(?3)",
            (queue, due, json.dumps([json.dumps(body) for body in bodies])),
        )

    async def receive(self, queue: QueueName, *, limit: int, lease_seconds: int = 600) -> tuple[Delivery, ...]:
        now = self._clock.now_ms()
        self._run(
            "UPDATE messages SET dead = 1 WHERE queue = ? AND dead = 0 AND due_ms <= ? AND attempts >= ?",
            (queue, now, MAX_DELIVERIES),
        )
        rows = self._run(
            "UPDATE messages SET attempts = attempts + 1, due_ms = ?1 WHERE id IN (SELECT id FROM messages"
            " WHERE queue = ?2 AND dead = 0 AND due_ms <= ?3 ORDER BY due_ms, id LIMIT ?4)"
            " RETURNING id, body, attempts",
            (now + lease_seconds * 1000, queue, now, limit),
        )
        return tuple(Delivery(str(row[0]), json.loads(row[1]), row[2]) for row in sorted(rows))

    async def settle(self, decisions: Sequence[Decision]) -> None:
        now = self._clock.now_ms()
        done = [int(decision.id) for decision in decisions if decision.action == "ack"]
        again = [
            [int(decision.id), now + decision.delay_seconds * 1000]
            for decision in decisions
            if decision.action == "retry"
        ]
        if done:
            self._run("DELETE FROM messages WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(done),))
        if again:
            self._run(
                "UPDATE messages SET due_ms = given.value ->> 1 FROM json_each(?) AS given"
                " WHERE messages.id = given.value ->> 0",
                (json.dumps(again),),
            )

    async def depth(self, queue: QueueName) -> int:
        ((count,),) = self._run("SELECT count(*) FROM messages WHERE queue = ? AND dead = 0", (queue,))
        return int(count)

    async def dead_letters(self) -> tuple[DeadLetter, ...]:
        rows = self._run("SELECT id, queue, body, attempts FROM messages WHERE dead = 1 ORDER BY id")
        return tuple(DeadLetter(str(row[0]), row[1], json.loads(row[2]), row[3]) for row in rows)

    async def redrive(self, ids: Sequence[str]) -> int:
        rows = self._run(
            "UPDATE messages SET dead = 0, attempts = 0, due_ms = ?"
            " WHERE dead = 1 AND id IN (SELECT value FROM json_each(?)) RETURNING id",
            (self._clock.now_ms(), json.dumps([int(message_id) for message_id in ids])),
        )
        return len(rows)

    def _run(self, sql: str, params: Sequence[Any] = ()) -> list[Any]:
        try:
            with closing(self._connection.execute(sql, params)) as cursor:
                return cursor.fetchall()
        except sqlite3.Error as error:
            raise _unavailable(error) from None


def _unavailable(error: sqlite3.Error) -> QueueUnavailable:
    return QueueUnavailable(reason(error) or f"the queue's file failed ({type(error).__name__})")
