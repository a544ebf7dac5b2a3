"""The object stores and queues that the contract suites run against: a new adapter is one more line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from mempersist.ports import Clock, ObjectStore
from mempersist_ops.stores.consumer import ConsumerQueue
from mempersist_ops.stores.embedded.objects import FileObjectStore
from mempersist_ops.stores.embedded.queue import SqliteQueue
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from mempersist_ops.stores.memory.queue import MemoryQueue
from tests.rigs.emulator import RemoteObjectStore, RemoteQueue
from tests.rigs.worker.ports import new_objects
from tests.rigs.worker.process import running

OBJECT_STORES: dict[str, Callable[[Path], ObjectStore]] = {
    "memory": lambda _: MemoryObjectStore(),
    "embedded": FileObjectStore,
    "remote": RemoteObjectStore,
    "worker": lambda _: new_objects(running()),
}
QUEUES: dict[str, Callable[[Path, Clock], ConsumerQueue]] = {
    "memory": lambda _, clock: MemoryQueue(clock),
    "embedded": lambda directory, clock: SqliteQueue(directory / "queue.sqlite3", clock),
    "remote": RemoteQueue,
}
