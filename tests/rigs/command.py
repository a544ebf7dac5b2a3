"""The `mempersist` command as a real process."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from mempersist_ops.cli.main import cli

_COMMAND = [sys.executable, "-m", "mempersist_ops.cli"]
_TIMEOUT = 120


def environment(**changes: str) -> dict[str, str]:
    """This process's, without what would point the command somewhere else."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MEMPERSIST_", "MEMORY_"))}
    return {**kept, **changes}


def mempersist(*arguments: str | Path, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, whatever that is."""
    return subprocess.run(
        [*_COMMAND, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT,
        env=env or environment(),
        check=False,
    )


def answer(*arguments: str | Path, code: int = 0, env: dict[str, str] | None = None) -> Any:
    """What the command prints with ``--json``, once it has ended with ``code``. Runs in this process, which saves a
    start-up; every command is run as a process of its own somewhere too."""
    wanted = env or environment()
    changed = {name: wanted.get(name) for name in {*wanted, *os.environ} if wanted.get(name) != os.environ.get(name)}
    done = CliRunner().invoke(cli, [*map(str, arguments), "--json"], env=changed, standalone_mode=False)
    assert done.exception is None, done.exception
    assert (done.return_value or 0) == code, done.output
    return json.loads(done.stdout)


@dataclass(frozen=True, slots=True)
class Server:
    process: subprocess.Popen[str]
    url: str
    token: str
    said: str

    @property
    def env(self) -> dict[str, str]:
        return environment(MEMPERSIST_URL=self.url, MEMPERSIST_TOKEN=self.token)


@contextmanager
def serving(data_dir: Path, *options: str) -> Iterator[Server]:
    """`mempersist serve` on a free port, ended with SIGTERM."""
    with start("serve", "--port", "0", "--data-dir", data_dir, *options) as process:
        said = read_until(process, "Stop with Ctrl-C")
        found = re.search(r"http://\S+(?=/mcp)", said)
        assert found, said
        token = mempersist("token", "--show", "--data-dir", data_dir).stdout.strip()
        try:
            yield Server(process, found.group(), token, said)
        finally:
            process.terminate()
            process.wait(30)


def start(*arguments: str | Path) -> subprocess.Popen[str]:
    """The command as a process that runs on; its log is thrown away. It hears SIGINT even where the tests themselves
    run in the background of a shell, which has its children ignore that."""
    return subprocess.Popen(
        [*_COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment(),
        preexec_fn=_hear_interrupts,  # noqa: PLW1509
    )


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read_until(process: subprocess.Popen[str], mark: str) -> str:
    """What the process prints up to the line with ``mark``."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if mark in line:
            return "".join(lines)
    raise AssertionError(f"the process ended before it said {mark!r}: {''.join(lines)}")
