"""The emulator: one ASGI application for the REST API, R2's S3 API and the calls that steer it."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mempersist.ports import Clock
from mempersist.system import SystemClock
from tests.emulator.ai import WorkersAi
from tests.emulator.auth import REQUESTS_PER_WINDOW, Token, Tokens
from tests.emulator.bucket_rules import BucketRules
from tests.emulator.buckets import Buckets
from tests.emulator.d1 import Databases
from tests.emulator.faults import Fault, Faults
from tests.emulator.queues import Queues
from tests.emulator.routing import Call, find
from tests.emulator.s3 import S3
from tests.emulator.targets import Targets
from tests.emulator.vectorize import Vectorize
from tests.emulator.wire import ApiError, Receive, Request, Response, Send, failed, read, succeeded, write
from tests.emulator.workers import Workers

ACCOUNT = "0123456789abcdef0123456789abcdef"
TOKEN = Token("f00dfeedf00dfeedf00dfeedf00dfeed", "emulated-token-of-the-operator", ACCOUNT)
RUNTIME = Token("beefbeefbeefbeefbeefbeefbeefbeef", "emulated-token-of-the-runtime", ACCOUNT, is_runtime=True)
REST = "/client/v4"
_CONTROL = "/emulator/"


class Emulator:
    """An ASGI 3 application with one account and :data:`TOKEN`, which may do everything.

    :param directory: where databases, queues and buckets lie.
    :param seconds: a clock for the rate limit.
    :param vectorize_delay_ms: how late Vectorize's mutations are seen.
    """

    def __init__(
        self,
        directory: Path,
        *,
        clock: Clock | None = None,
        seconds: Callable[[], float] = time.monotonic,
        requests_per_window: int = REQUESTS_PER_WINDOW,
        vectorize_delay_ms: int = 0,
    ) -> None:
        clock = clock or SystemClock()
        for name in ("d1", "r2"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        self.tokens = Tokens(seconds, requests_per_window)
        self.tokens.add(TOKEN)
        self.tokens.add(RUNTIME)
        self.faults = Faults()
        self.peers: set[tuple[str, int]] = set()
        """The address of every connection that was made."""
        self.calls: Counter[str] = Counter()
        """How often each method and path was asked for, with the answer's status: ``GET /accounts/… 200``."""
        self._databases = Databases(directory / "d1", clock)
        self._buckets = Buckets(directory / "r2", clock)
        self._s3 = S3(self._buckets, self.tokens, lambda: datetime.now(UTC))
        vectorize = Vectorize(clock, vectorize_delay_ms)
        self._queues = Queues(directory / "queues.sqlite3", clock)
        self.ai = WorkersAi()
        targets = Targets(self._databases, self._buckets, vectorize, self._queues)
        self.workers = Workers(clock, targets.exist, self._queues.consumed_by)
        products = (
            *(self._databases, self._buckets, BucketRules(self._buckets), vectorize, self._queues),
            *(self.ai, self.workers),
        )
        self._routes = [route for product in products for route in product.routes()]

    def queue_id(self, account: str, name: str) -> str:
        return self._queues.id_of(account, name)

    def close(self) -> None:
        self._databases.close()
        self._buckets.close()
        self._queues.close()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        self.peers.add(scope["client"])
        request = await read(scope, receive)
        fault = None if request.path.startswith(_CONTROL) else self.faults.take(request.method, request.path)
        if fault is None:
            response = await self.answer(request)
        elif fault.kind == "silence":
            while (await receive())["type"] != "http.disconnect":
                pass
            return
        else:
            done = None if fault.kind == "instead" else await self.answer(request)
            response = _faulty(fault) if done is None or fault.kind == "afterwards" else done
        self.calls[f"{request.method} {request.path} {response.status}"] += 1
        if fault is not None and fault.kind == "lose":
            headers = [(b"content-length", b"1000000")]
            await send({"type": "http.response.start", "status": response.status, "headers": headers})
            return
        await write(response, send)

    async def answer(self, request: Request) -> Response:
        if request.path.startswith(_CONTROL):
            return self._steer(request)
        if request.path.startswith(f"{REST}/") and not request.headers.get("authorization", "").startswith("AWS4"):
            return await self._rest(request)
        return await self._s3.answer(request)

    async def _rest(self, request: Request) -> Response:
        limits: dict[str, str] = {}
        try:
            token = self.tokens.bearer(request.headers)
            limits = self.tokens.count(token)
            account, path = _account(request.path)
            if account != token.account:
                raise ApiError(403, 10000, "Authentication error")
            route, names = find(self._routes, request.method, path)
            if not token.allows(route.product, route.access):
                raise ApiError(403, 10000, "Authentication error")
            response = succeeded(await route.handler(Call(account, request, token), **names))
        except ApiError as error:
            response = failed(error)
        return Response(response.status, response.body, {**limits, **response.headers})

    def _steer(self, request: Request) -> Response:
        """``POST`` and ``DELETE /emulator/faults``, ``GET /emulator/calls``."""
        what = (request.method, request.path.removeprefix(_CONTROL))
        if what == ("POST", "faults"):
            self.faults.add_json(request.json_object())
        elif what == ("DELETE", "faults"):
            self.faults.clear()
        elif what != ("GET", "calls"):
            return Response(404)
        return Response(200, json.dumps(self.calls).encode(), {"content-type": "application/json"})


def _account(path: str) -> tuple[str, str]:
    """The account that a path names, and what follows it. :raises ApiError: 7003"""
    if path.startswith(f"{REST}/accounts/"):
        account, slash, rest = path.removeprefix(f"{REST}/accounts/").partition("/")
        return account, slash + rest
    raise ApiError(404, 7003, f"Could not route to {path.removeprefix(REST)}")


def _faulty(fault: Fault) -> Response:
    return Response(fault.status, fault.body.encode(), {"content-type": "application/json", **fault.headers})
