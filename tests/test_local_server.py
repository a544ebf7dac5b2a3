"""`mempersist serve` as a process: it says where it is, answers clients, works in the background and stops cleanly."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mempersist_ops.host import serve
from tests.rigs.command import Server, answer, environment, mempersist, read_until, serving, start


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(tmp_path_factory.mktemp("server") / "data") as running:
        yield running


def client(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=30)


def tool(server: Server, name: str, **arguments: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    with client(server) as calls:
        return calls.post("/mcp", json=message).json()["result"]["structuredContent"]


def test_it_says_how_to_connect_the_usual_clients_and_keeps_the_token_to_itself(server: Server) -> None:
    assert f"claude mcp add --transport http mempersist {server.url}/mcp --header" in server.said
    assert f'{{"mcpServers": {{"mempersist": {{"url": "{server.url}/mcp"' in server.said
    assert f"npx @modelcontextprotocol/inspector --cli {server.url}/mcp" in server.said
    assert server.token not in server.said
    assert len(server.token) >= 43


def test_two_programs_share_a_directory(server: Server, tmp_path: Path) -> None:
    data_dir = server.said.split("MemPersist serves ")[1].splitlines()[0]
    (tmp_path / "conversations.json").write_text(
        '[{"id": "z", "title": "Zebra", "mapping": {"n": {"id": "n", "message": {"content": {"parts": ["stripes"]}}}}}]'
    )
    answer("import", tmp_path / "conversations.json", "--data-dir", data_dir)
    assert [hit["title"] for hit in tool(server, "memory_search", query="stripes")["results"]] == ["Zebra"]
    mempersist("export", tmp_path / "archive.zip", "--data-dir", data_dir)
    refused = mempersist("import", tmp_path / "archive.zip", "--data-dir", data_dir)
    assert (refused.returncode, "stop that one first" in refused.stderr) == (1, True)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(signum: int, tmp_path: Path) -> None:
    with start("serve", "--port", "0", "--data-dir", tmp_path / "data") as process:
        read_until(process, "Stop with Ctrl-C")
        process.send_signal(signum)
        assert process.wait(30) == 0


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        done = mempersist("serve", "--port", port, "--data-dir", tmp_path / "data", env=environment())
    assert (done.returncode, f"port {port}" in done.stderr, "--port" in done.stderr) == (1, True, True)


def test_no_answer_waits_for_the_acknowledgement_of_its_own_headers() -> None:
    listener = serve._listen(serve.Address(port=0))
    with listener, socket.create_connection(listener.getsockname()) as caller:
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.proto == socket.IPPROTO_TCP, "asyncio leaves Nagle's algorithm on for any other"
            assert caller.fileno() >= 0
