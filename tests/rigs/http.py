"""The service behind the door of its host, called as a client would."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

import httpx

from mempersist.ports import Ports
from mempersist.service import Service, Settings
from mempersist_ops.host.asgi import asgi_app
from tests.rigs.hosts import is_worker, new_world
from tests.rigs.worker.process import TOKEN, running
from tests.rigs.worlds import World

SETTINGS = Settings("http://127.0.0.1:8787", api_token_sha256=hashlib.sha256(TOKEN.encode()).hexdigest())


@dataclass(frozen=True, slots=True)
class Door:
    """A system and a client that has its token."""

    world: World
    client: httpx.AsyncClient


@asynccontextmanager
async def door(
    world: World | None = None, *, ports: Ports | None = None, settings: Settings = SETTINGS, token: str | None = TOKEN
) -> AsyncIterator[Door]:
    """A client of a new system, or of ``world``, or of its stores replaced by ``ports``."""
    world = world or await new_world()
    if ports is not None:
        world = replace(world, ports=ports)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    if is_worker(world.ports):
        transport, url = httpx.AsyncHTTPTransport(), running().url
    else:
        transport, url = httpx.ASGITransport(asgi_app(Service(world.ports, settings))), settings.public_url
    async with httpx.AsyncClient(transport=transport, base_url=url, headers=headers, timeout=60) as client:
        yield Door(world, client)
