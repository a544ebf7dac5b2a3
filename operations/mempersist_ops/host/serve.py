"""The local server: uvicorn for the doors, a second thread for the work behind them."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import uvicorn

from mempersist.errors import Code, MempersistError
from mempersist.service import Service, Settings
from mempersist_ops.host import datadir
from mempersist_ops.host.asgi import asgi_app
from mempersist_ops.host.background import BackgroundWork
from mempersist_ops.host.datadir import DataDirectory
from mempersist_ops.host.runtime import opened

DEFAULT_PORT: Final = 8787
_BACKLOG: Final = 128
_GRACE_SECONDS: Final = 10


@dataclass(frozen=True, slots=True)
class Address:
    """Where to listen. ``port`` 0 takes any free one.

    :param public_url: scheme and host that clients use; the address itself when None.
    :param origins: values of ``Origin`` that a browser may send, besides the server's own.
    """

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    public_url: str | None = None
    origins: Sequence[str] = ()


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def serve(directory: DataDirectory, token: str, address: Address, ready: Callable[[str], None]) -> None:
    """Serve until a signal stops it; then finish the requests and the turn that run.

    :param ready: is told the public URL once connections are accepted.
    :raises MempersistError: VALIDATION if the address cannot be had, or what :func:`opened` raises.
    """
    _log_to_stderr()
    listener = _listen(address)
    with listener:
        url = address.public_url or _url(address.host, listener.getsockname()[1])
        asyncio.run(_serve(directory, token, url, address, listener, ready))


async def _serve(
    directory: DataDirectory,
    token: str,
    url: str,
    address: Address,
    listener: socket.socket,
    ready: Callable[[str], None],
) -> None:
    settings = Settings(
        public_url=url,
        allowed_origins=tuple(address.origins),
        api_token_sha256=hashlib.sha256(token.encode()).hexdigest(),
        cursor_keys=datadir.cursor_keys(directory),
        owner_address=os.environ.get("OWNER_ADDRESS", "").strip().lower() or None,
        sign_up=tuple(os.environ.get("SIGN_UP", "").lower().split()),
    )
    async with opened(directory) as host:
        background = BackgroundWork(directory)
        background.start()
        try:
            config = uvicorn.Config(
                asgi_app(Service(host.ports, settings)),
                log_config=None,
                access_log=False,
                server_header=False,
                date_header=True,
                timeout_graceful_shutdown=_GRACE_SECONDS,
                lifespan="off",
                ws="none",
            )
            server = _Server(config)
            loop = asyncio.get_running_loop()
            for signum in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(signum, server.handle_exit, signum, None)
            ready(url)
            await server.serve(sockets=[listener])
        finally:
            await asyncio.to_thread(background.stop)


class _Server(uvicorn.Server):
    """Without uvicorn's own signal handling, which ends the process before the background work has stopped."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _listen(address: Address) -> socket.socket:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    # asyncio turns Nagle's algorithm off for sockets that say they are TCP. Left on, it holds every answer on a kept
    # connection back for 40 ms, until the client has acknowledged the headers.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((address.host, address.port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        message = f"cannot listen on {address.host} port {address.port} ({error.strerror}); choose another with --port"
        raise MempersistError(Code.VALIDATION, message) from error
    return listener


def _url(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _log_to_stderr() -> None:
    """One line a record, as it is: the service's own lines are JSON already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    logger = logging.getLogger("mempersist")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
