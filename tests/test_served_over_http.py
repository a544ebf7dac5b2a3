"""What a client on the network sees, the same of the local server and of the Worker, each as it runs."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mempersist.errors import MempersistError
from mempersist_ops import sample
from mempersist_ops.cli import remote
from tests.rigs import exports
from tests.rigs.adapters import adapters
from tests.rigs.command import Server, answer, mempersist, serving
from tests.rigs.worker.process import TOKEN, running
from tests.rigs.worker.world import rig_world


@pytest.fixture(scope="module", params=adapters(["local", "worker"]))
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == "local":
        with serving(tmp_path_factory.mktemp("server") / "data") as local:
            yield local
        return
    rig = running()
    asyncio.run(rig_world(rig))
    rig.steer("mode", mode="deliver")
    yield Server(rig.process, rig.url, TOKEN, "")


def client(server: Server) -> httpx.Client:
    return httpx.Client(base_url=server.url, headers={"Authorization": f"Bearer {server.token}"}, timeout=30)


def tool(server: Server, name: str, **arguments: Any) -> Any:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    with client(server) as calls:
        return calls.post("/mcp", json=message).json()["result"]["structuredContent"]


def until(server: Server, done: Any) -> Any:
    """Ask ``done`` again and again until it says something."""
    deadline = time.monotonic() + 60
    while not (said := done()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return said


def test_a_client_stores_and_finds_a_memory(server: Server) -> None:
    written = tool(server, "memory_store", title="Sea", messages=[{"role": "user", "content": "a quizzical walrus"}])
    found = tool(server, "memory_search", query="quizzical")
    assert [hit["conversationId"] for hit in found["results"]] == [written["conversation_id"]]


def test_what_was_written_is_indexed_in_the_background(server: Server) -> None:
    tool(server, "memory_store", title="Sea", messages=[{"role": "user", "content": "an otter"}])
    deadline = time.monotonic() + 30
    while tool(server, "memory_stats")["indexing"]["pending"]:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert tool(server, "memory_search", query="otter")["results"][0]["sources"] != ["recent_canonical"]


def test_a_web_page_elsewhere_and_a_rebound_name_are_refused(server: Server) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with client(server) as calls:
        assert calls.post("/mcp", json=message, headers={"Origin": "https://evil.example"}).status_code == 403
        assert calls.post("/mcp", json=message, headers={"Host": "evil.example"}).status_code == 403
        assert calls.post("/mcp", json=message).status_code == 200


def test_a_client_that_leaves_in_the_middle_of_an_upload_leaves_nothing_behind(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        f"POST /api/imports/direct HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n"
        "X-Filename: a.json\r\nContent-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(head.encode() + b"[" * 1000)
    with client(server) as calls:
        assert calls.get("/healthz").json() == {"status": "ok"}
        assert [item["filename"] for item in calls.get("/api/imports").json()["imports"]].count("a.json") == 0


def test_an_upload_that_is_refused_unread_still_gets_its_answer(server: Server) -> None:
    with httpx.Client(base_url=server.url) as stranger:
        answered = stranger.post("/api/imports/direct", content=b"x" * 20_000_000, headers={"X-Filename": "a.json"})
        assert answered.status_code == 401
        assert stranger.get("/healthz").status_code == 200


def test_the_command_works_on_a_server_elsewhere(server: Server, tmp_path: Path) -> None:
    (tmp_path / "conversations.json").write_text(json.dumps([exports.conversation("Pemmican", "dried pemmican keeps")]))
    env = {**server.env, "MEMPERSIST_DATA_DIR": str(tmp_path / "unused")}
    receipt = answer("import", tmp_path / "conversations.json", "--namespace", "elsewhere", env=env)
    assert (receipt["status"], receipt["namespace"]) == ("complete", "elsewhere")
    found = answer("search", "pemmican", "--namespace", "elsewhere", "--limit", "1", env=env)
    assert found == tool(server, "memory_search", query="pemmican", namespace="elsewhere", limit=1)
    assert answer("status", receipt["importId"], env=env)["status"] == "complete"
    assert answer("status", env=env)["stats"] == tool(server, "memory_stats")
    refused = mempersist("status", env={**env, "MEMPERSIST_TOKEN": "wrong"})
    assert (refused.returncode, "bearer token is not valid" in refused.stderr) == (1, True)


class Flaky(httpx.HTTPTransport):
    """Counts the parts that are sent and loses the connection after ``most`` of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most
        self.parts: list[str] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "PUT":
            if len(self.parts) >= self.most:
                raise httpx.ConnectError("the line is dead")
            self.parts.append(request.url.path.rsplit("/", 1)[1])
        return super().handle_request(request)


def send(server: Server, path: Path, line: Flaky) -> str:
    """Upload ``path`` over ``line``; the notes of the upload lie beside the file."""
    headers = {"Authorization": f"Bearer {server.token}"}
    with httpx.Client(base_url=server.url, headers=headers, transport=line, timeout=30) as connection:
        here = remote.Remote(connection, wait=lambda seconds: None)
        return remote.upload(here, path, path.parent / "notes", None, False, lambda done, total: None)


def fill(path: Path, megabytes: int) -> Path:
    path.write_bytes(b"[]" + b" " * (megabytes * 1024 * 1024))
    return path


def test_an_interrupted_upload_sends_only_what_is_missing(server: Server, tmp_path: Path) -> None:
    path = fill(tmp_path / "large.json", 40)
    first, second = Flaky(2), Flaky(9)
    with pytest.raises(MempersistError, match="run the same command again to go on"):
        send(server, path, first)
    import_id = send(server, path, second)
    assert (first.parts, second.parts) == (["1", "2"], ["3"])
    assert list((tmp_path / "notes").iterdir()) == []
    with client(server) as calls:
        assert calls.get(f"/api/imports/{import_id}").json()["size_bytes"] == path.stat().st_size


def test_a_file_that_changed_meanwhile_is_sent_anew(server: Server, tmp_path: Path) -> None:
    first, second = Flaky(1), Flaky(9)
    with pytest.raises(MempersistError):
        send(server, fill(tmp_path / "large.json", 17), first)
    send(server, fill(tmp_path / "large.json", 18), second)
    assert (first.parts, second.parts) == (["1"], ["1", "2"])


def test_an_upload_that_the_server_has_forgotten_is_sent_anew(server: Server, tmp_path: Path) -> None:
    path = fill(tmp_path / "large.json", 17)
    first, second = Flaky(1), Flaky(9)
    with pytest.raises(MempersistError):
        send(server, path, first)
    (note,) = (tmp_path / "notes").iterdir()
    with client(server) as calls:
        assert calls.delete(f"/api/imports/{json.loads(note.read_text())['importId']}").status_code == 200
    send(server, path, second)
    assert second.parts == ["1", "2"]


def test_requests_are_answered_while_others_wait_for_their_bodies(server: Server) -> None:
    host, port = server.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port))) for _ in range(20)]
    try:
        for connection in slow:
            connection.sendall(
                f"POST /api/memories HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {server.token}\r\n"
                "Content-Length: 100\r\n\r\n{".encode()
            )
        answers: list[int] = []
        with client(server) as calls:
            asking = threading.Thread(target=lambda: answers.append(calls.get("/readyz").status_code))
            asking.start()
            asking.join(20)
        assert answers == [200]
    finally:
        for connection in slow:
            connection.close()


def test_the_sample_archive_sent_in_parts_ends_searchable(server: Server, tmp_path: Path) -> None:
    data = sample.build(tmp_path / "sample-export.zip").read_bytes()
    with client(server) as calls:
        begun = calls.post("/api/imports/multipart", json={"filename": "export.zip", "namespace": "parts"}).json()
        assert calls.put(f"/api/imports/{begun['importId']}/parts/1", content=data).status_code == 200
        assert calls.post(f"/api/imports/{begun['importId']}/complete").status_code == 202

        def ended() -> Any:
            found = calls.get(f"/api/imports/{begun['importId']}").json()
            return found if found["phase"] is None else None

        status = until(server, ended)
        until(server, lambda: not tool(server, "memory_stats")["indexing"]["pending"])
    counts = status["counts"]["conversations"]
    assert status["status"] == "complete"
    assert counts["found"] == sum(counts[fate] for fate in ("imported", "unchanged", "skipped", "failed")) == 30
    assert counts["imported"] == 29
    found = tool(server, "memory_search", query=sample.DEMO_QUERY, namespace="parts", limit=3)
    assert (found["degraded"], found["unavailable"]) == (False, [])
    best = found["results"][0]
    assert {"lexical", "semantic"} <= set(best["sources"])
    page = tool(server, "memory_get_conversation", conversation_id=best["conversationId"])
    assert any("borrow" in message["text"] for message in page["messages"])
