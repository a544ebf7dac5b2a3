"""A loopback proxy that adds the bearer token, for tools that cannot send one."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP = {"connection", "transfer-encoding", "content-length", "date", "server"}


@contextmanager
def with_token(upstream: str, token: str) -> Iterator[str]:
    """The URL of a proxy of ``upstream``. Its own name in ``Host`` becomes the server's; another is passed on."""
    target = urlsplit(upstream).netloc

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in {"host", "connection"}
            }
            named = self.headers.get("host", "")
            headers["Host"] = target if named.rpartition(":")[2] == str(self.server.server_address[1]) else named
            headers.setdefault("Authorization", f"Bearer {token}")
            connection = http.client.HTTPConnection(target, timeout=30)
            try:
                connection.request(self.command, self.path, body or None, headers)
                answer = connection.getresponse()
                data = answer.read()
            finally:
                connection.close()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP:
                    self.send_header(name, value)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = do_DELETE = do_OPTIONS = do_HEAD = forward  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
