"""The ASGI adapter: bodies under back-pressure, streams out, and clients that leave."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mempersist.ports import Body, ObjectInfo
from mempersist.service import Service
from mempersist.web.http import Request, Response
from mempersist_ops.host.asgi import Message, asgi_app
from mempersist_ops.stores.memory.objects import MemoryObjectStore
from tests.rigs.http import SETTINGS, TOKEN
from tests.rigs.worlds import memory_world


def scope(method: str, path: str, **headers: str) -> dict[str, Any]:
    fields = {"authorization": f"Bearer {TOKEN}", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        "client": ("127.0.0.1", 1),
    }


class Client:
    """The server's side of one exchange: hands out messages one by one and keeps what is sent."""

    def __init__(self, messages: Sequence[Message]) -> None:
        self.waiting = list(messages)
        self.handed = 0
        self.sent: list[Message] = []

    async def receive(self) -> Message:
        self.handed += 1
        return self.waiting.pop(0)

    async def send(self, message: Message) -> None:
        self.sent.append(message)


def chunk(body: bytes, *, more: bool = True) -> Message:
    return {"type": "http.request", "body": body, "more_body": more}


class SlowStore(MemoryObjectStore):
    """Notes how many chunks had been asked for when it took each of them."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self.client = client
        self.asked: list[int] = []

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        if isinstance(body, bytes):
            return await super().put(key, body, if_absent=if_absent)
        taken = b""
        async for part in body:
            await asyncio.sleep(0)
            self.asked.append(self.client.handed)
            taken += part
        return await super().put(key, taken, if_absent=if_absent)


async def exchange(client: Client, request: dict[str, Any], objects: MemoryObjectStore | None = None) -> None:
    world = await memory_world()
    ports = world.ports if objects is None else replace(world.ports, objects=objects)
    await asgi_app(Service(ports, SETTINGS))(request, client.receive, client.send)


def upload(length: int) -> dict[str, Any]:
    return scope("POST", "/api/imports/direct", x_filename="a.json", content_length=str(length))


async def test_the_next_chunk_is_asked_for_when_the_last_one_was_taken() -> None:
    client = Client([chunk(b"[1,"), chunk(b"2,"), chunk(b"3]", more=False)])
    store = SlowStore(client)
    await exchange(client, upload(7), store)
    assert store.asked == [1, 2, 3]
    assert client.sent[0]["status"] == 202


async def test_a_client_that_leaves_in_its_body_gets_no_answer_and_stores_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = Client([chunk(b"[1,"), {"type": "http.disconnect"}])
    store = SlowStore(client)
    with caplog.at_level(logging.INFO, "mempersist"):
        await exchange(client, upload(7), store)
    assert client.sent == []
    assert not [key for key in store._objects if key.startswith("raw/")]
    assert json.loads(caplog.messages[-1])["status"] == 499


async def test_a_repeated_header_is_joined_and_names_are_lowered() -> None:
    client = Client([])
    request = scope("GET", "/")
    request["headers"] += [(b"Accept", b"application/json"), (b"ACCEPT", b"text/html")]
    await exchange(client, request)
    assert client.sent[1]["body"].startswith(b"<!doctype html>")


async def test_a_streamed_answer_goes_out_chunk_by_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def parts() -> AsyncIterator[bytes]:
        yield b"one"
        yield b"two"

    async def streaming(service: Service, request: Request) -> Response:
        return Response(200, {"X-Kind": "stream"}, parts())

    monkeypatch.setattr("mempersist_ops.host.asgi.respond", streaming)
    client = Client([])
    await exchange(client, scope("GET", "/"))
    assert client.sent == [
        {"type": "http.response.start", "status": 200, "headers": [(b"x-kind", b"stream")]},
        {"type": "http.response.body", "body": b"one", "more_body": True},
        {"type": "http.response.body", "body": b"two", "more_body": True},
        {"type": "http.response.body", "body": b""},
    ]


async def test_a_client_that_leaves_while_it_is_answered_is_let_go() -> None:
    class Gone(Client):
        async def send(self, message: Message) -> None:
            raise OSError("connection lost")

    await exchange(Gone([]), scope("GET", "/healthz"))


async def test_lifespan_is_acknowledged_and_other_scopes_are_not_served() -> None:
    client = Client([{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    await exchange(client, {"type": "lifespan"})
    assert [message["type"] for message in client.sent] == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    with pytest.raises(ValueError, match="websocket"):
        await exchange(Client([]), {"type": "websocket"})
