"""A deployed Worker's process: the uploaded modules under CPython, over the emulator's stores.

Bindings are played by the operator's remote adapters. That the same modules run in Pyodide, behind the real D1, R2 and
queues, is what tests/rigs/worker is for; here the point is that what was uploaded is what answers.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from typing import Any


def main() -> None:
    """Read what to run from standard input, print the port, and serve until standard input ends."""
    given = json.loads(sys.stdin.readline())
    sys.path.insert(0, given["modules"])
    asyncio.run(serve(given))


async def serve(given: dict[str, Any]) -> None:
    """Serve requests, take from the queues, and sweep, as Cloudflare would have the Worker do."""
    import uvicorn

    import mempersist
    from mempersist.startup import begin
    from mempersist_ops.host.asgi import asgi_app

    assert mempersist.__file__.startswith(given["modules"]), mempersist.__file__
    ports, queue, close = ports_of(given)
    service = service_of(given, ports)
    await begin(ports, max(given["migrations"], default=None))
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", given.get("port", 0)))
    listener.listen(128)
    config = uvicorn.Config(asgi_app(service), log_config=None, access_log=False, lifespan="off", ws="none")
    server = uvicorn.Server(config)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    background = asyncio.create_task(work(ports, queue, given))
    ended = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving = asyncio.create_task(server.serve([listener]))
    await asyncio.wait([ended, serving], return_when=asyncio.FIRST_COMPLETED)
    server.should_exit = True
    background.cancel()
    await asyncio.gather(serving, background, return_exceptions=True)
    await close()


def ports_of(given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The ports over the emulator, the queue among them, and how to close them."""
    from mempersist.limits import WORKER_CONVERSATION_BYTES
    from mempersist.ports import Ports
    from mempersist.system import SystemClock, SystemIds
    from mempersist_ops.stores.remote.catalog import D1RestCatalog
    from mempersist_ops.stores.remote.embedder import WorkersAiRestEmbedder
    from mempersist_ops.stores.remote.objects import S3ObjectStore, s3_client
    from mempersist_ops.stores.remote.pace import Pace
    from mempersist_ops.stores.remote.queue import RestQueue
    from mempersist_ops.stores.remote.rest import RestClient
    from mempersist_ops.stores.remote.vectors import VectorizeRestIndex

    client = RestClient(
        given["account"], given["token"], base_url=f"{given['url']}/client/v4", pace=Pace(requests=1_000_000)
    )
    bound = {each["name"]: each for each in given["bindings"]}
    embedder = WorkersAiRestEmbedder(client)
    queue = RestQueue(client, given["queues"], {})
    objects = S3ObjectStore(
        lambda tries: s3_client(given["url"], given["access_key"], given["secret_key"], tries=tries),
        bound["MEMORY_BUCKET"]["bucket_name"],
    )
    ports = Ports(
        objects,
        D1RestCatalog(client, bound["MEMORY_DB"]["id"]),
        VectorizeRestIndex(client, bound["MEMORY_VECTOR"]["index_name"], embedder.model.dimensions),
        queue,
        embedder,
        SystemClock(),
        SystemIds(),
        None,
        WORKER_CONVERSATION_BYTES,
    )

    async def close() -> None:
        objects.close()
        await client.aclose()

    return ports, queue, close


def service_of(given: dict[str, Any], ports: Any) -> Any:
    """The service with the settings that the Worker's variables and secrets are."""
    from mempersist.sealing import parse_keys
    from mempersist.service import Service, Settings

    texts = {each["name"]: each["text"] for each in given["bindings"] if each["type"] == "plain_text"}
    texts |= given["secrets"]
    settings = Settings(
        texts["PUBLIC_URL"].rstrip("/"),
        tuple(texts.get("ALLOWED_ORIGINS", "").split()),
        texts.get("API_TOKEN_SHA256"),
        alert_address=texts.get("ALERT_ADDRESS"),
        owner_address=texts.get("OWNER_ADDRESS"),
        sign_up=tuple(texts.get("SIGN_UP", "").split()),
        cursor_keys=parse_keys(texts.get("CURSOR_KEYS", "")),
    )
    return Service(ports, settings)


async def work(ports: Any, queue: Any, given: dict[str, Any]) -> None:
    """What Cloudflare calls a Worker for beside requests."""
    from mempersist.background import deliver
    from mempersist.recovery.sweep import sweep

    loop = asyncio.get_running_loop()
    swept = loop.time()
    while True:
        busy = False
        for name in given["queues"]:
            deliveries = await queue.receive(name, limit=given["batch"], lease_seconds=120)
            if deliveries:
                busy = True
                await queue.settle(await deliver(ports, name, deliveries))
        if given["scheduled"] and loop.time() - swept >= given["sweep_seconds"]:
            swept = loop.time()
            await sweep(ports)
        if not busy:
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    main()
