"""The remote adapters over the emulator. Those of the REST API have one of their own, without a socket between; those
of S3, whose client brings its own connections, share one behind a socket.
"""

from __future__ import annotations

import atexit
import itertools
import json
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from mempersist.limits import MAX_DELIVERIES
from mempersist.ports import Clock, QueueName
from mempersist_ops.stores.remote.catalog import D1RestCatalog
from mempersist_ops.stores.remote.embedder import WorkersAiRestEmbedder
from mempersist_ops.stores.remote.objects import S3ObjectStore, s3_client
from mempersist_ops.stores.remote.queue import RestQueue
from mempersist_ops.stores.remote.rest import RestClient
from mempersist_ops.stores.remote.vectors import VectorizeRestIndex
from tests.emulator.app import ACCOUNT, REST, TOKEN, Emulator
from tests.emulator.server import served
from tests.emulator.wire import Request


def client_of(emulator: Emulator) -> RestClient:
    """A client that reaches ``emulator`` without a socket."""
    transport = httpx.ASGITransport(emulator)
    return RestClient(ACCOUNT, TOKEN.value, base_url=f"http://emulator{REST}", transport=transport, first_wait=0)


def posted(emulator: Emulator, path: str, body: Mapping[str, Any]) -> Any:
    """The ``result`` of a POST that the emulator answers without waiting for anything: no event loop is needed."""
    headers = {"authorization": f"Bearer {TOKEN.value}"}
    request = Request("POST", f"{REST}/accounts/{ACCOUNT}{path}", "", headers, json.dumps(body).encode())
    coroutine = emulator.answer(request)
    try:
        coroutine.send(None)
    except StopIteration as done:
        answer = json.loads(done.value.body)
        assert answer["success"], answer["errors"]
        return answer["result"]
    raise AssertionError(f"{path} waits for something")


class RemoteCatalog(D1RestCatalog):
    """A new, empty database."""

    def __init__(self, directory: Path) -> None:
        self._emulator = Emulator(directory)
        super().__init__(client_of(self._emulator), posted(self._emulator, "/d1/database", {"name": "catalog"})["uuid"])

    def close(self) -> None:
        self._emulator.close()


class RemoteVectorIndex(VectorizeRestIndex):
    """A new, empty index."""

    def __init__(self, directory: Path, dimensions: int, indexed: Sequence[str]) -> None:
        self._emulator = Emulator(directory)
        config = {"dimensions": dimensions, "metric": "cosine"}
        posted(self._emulator, "/vectorize/v2/indexes", {"name": "vectors", "config": config})
        for key in indexed:
            body = {"propertyName": key, "indexType": "string"}
            posted(self._emulator, "/vectorize/v2/indexes/vectors/metadata_index/create", body)
        super().__init__(client_of(self._emulator), "vectors", dimensions, indexed=indexed)

    def close(self) -> None:
        self._emulator.close()


class RemoteQueue(RestQueue):
    """New, empty queues, each with a queue for its dead letters."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._emulator = Emulator(directory, clock=clock)
        names: tuple[QueueName, ...] = ("import", "index")
        ids = {name: self._create(name, f"{name}-dead") for name in names}
        super().__init__(client_of(self._emulator), ids, {name: self._create(f"{name}-dead", None) for name in names})

    def close(self) -> None:
        self._emulator.close()

    def _create(self, name: str, dead_letter_queue: str | None) -> str:
        queue_id: str = posted(self._emulator, "/queues", {"queue_name": name})["queue_id"]
        settings = {"max_retries": MAX_DELIVERIES - 1}
        consumer = {"type": "http_pull", "dead_letter_queue": dead_letter_queue, "settings": settings}
        posted(self._emulator, f"/queues/{queue_id}/consumers", consumer)
        return queue_id


def remote_embedder() -> WorkersAiRestEmbedder:
    """An embedder over the shared emulator, without a socket."""
    return WorkersAiRestEmbedder(client_of(shared()[0]))


_numbers = itertools.count()


@cache
def shared() -> tuple[Emulator, str]:
    """An emulator that is served until the process ends, and its URL."""
    until_the_end = ExitStack()
    atexit.register(until_the_end.close)
    directory = until_the_end.enter_context(tempfile.TemporaryDirectory())
    emulator = Emulator(Path(directory), requests_per_window=10**9)
    return emulator, until_the_end.enter_context(served(emulator))


@cache
def _s3(tries: int) -> Any:
    return s3_client(shared()[1], TOKEN.id, TOKEN.s3_secret, tries=tries)


class RemoteObjectStore(S3ObjectStore):
    """A new, empty bucket. The clients are shared, since each takes a while to make."""

    def __init__(self, _directory: Path) -> None:
        name = f"bucket-{next(_numbers)}"
        posted(shared()[0], "/r2/buckets", {"name": name})
        super().__init__(_s3, name)
        self.bucket = name

    def close(self) -> None:
        self._threads.shutdown()
