"""Runs what is deployed: a Worker's deployed version in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.emulator.app import ACCOUNT, RUNTIME, Emulator
from tests.emulator.workers import Script, Version

_ROOT = Path(__file__).resolve().parents[2]


class NotDeployed(Exception):
    """The Worker has no deployed version, or its code does not start; the message holds what it said."""


@contextmanager
def running(emulator: Emulator, url: str, name: str, *, sweep_seconds: float = 60.0) -> Iterator[str]:
    """Run the deployed version of a Worker of :data:`ACCOUNT`; gives the URL under which it answers.

    :param url: of the emulator.
    """
    script = emulator.workers.named(ACCOUNT, name)
    version = script.deployed
    if version is None:
        raise NotDeployed(f"{name} has no deployment")
    with tempfile.TemporaryDirectory() as scratch:
        modules = Path(scratch)
        for path, (_, data) in version.modules.items():
            (modules / path).parent.mkdir(parents=True, exist_ok=True)
            (modules / path).write_bytes(data)
        told = {**_told(emulator, script, version), "url": url, "modules": scratch, "sweep_seconds": sweep_seconds}
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.emulator.worker_process"],
            cwd=_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdin.write(json.dumps(told) + "\n")
            process.stdin.flush()
            ready = process.stdout.readline()
            if not ready:
                raise NotDeployed(f"{name} did not start:\n{process.stderr.read()}")
            yield f"http://127.0.0.1:{json.loads(ready)['port']}"
        finally:
            process.stdin.close()
            try:
                process.wait(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
            process.stderr.close()


def _told(emulator: Emulator, script: Script, version: Version) -> dict[str, Any]:
    bindings = version.body["bindings"]
    producers = {each["name"]: each["queue_name"] for each in bindings if each["type"] == "queue"}
    queues = {
        "import": emulator.queue_id(ACCOUNT, producers["IMPORT_QUEUE"]),
        "index": emulator.queue_id(ACCOUNT, producers["INDEX_QUEUE"]),
    }
    return {
        "account": ACCOUNT,
        "token": RUNTIME.value,
        "access_key": RUNTIME.id,
        "secret_key": RUNTIME.s3_secret,
        "bindings": bindings,
        "secrets": version.secrets,
        "queues": queues,
        "batch": 5,
        "scheduled": bool(script.schedules),
        "migrations": [name.removeprefix("migrations/") for name in version.modules if name.startswith("migrations/")],
    }
