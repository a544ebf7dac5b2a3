"""The emulator behind a real socket."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from tests.emulator.app import Emulator


class _Server(uvicorn.Server):
    """Leaves the signals of the process alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextmanager
def served(emulator: Emulator) -> Iterator[str]:
    """Serve ``emulator`` from a thread; gives its URL, and closes it at the end."""
    # asyncio turns Nagle's algorithm off only for sockets that say they are TCP.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        config = uvicorn.Config(
            emulator, log_config=None, access_log=False, lifespan="off", ws="none", timeout_graceful_shutdown=1
        )
        server = _Server(config)
        thread = threading.Thread(target=server.run, args=([listener],), name="emulator", daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()
            emulator.close()
