"""Runs the real `pulumi` command for tests, over a state of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.engine.build import ROOT, engine

PASSPHRASE = "correct horse battery staple"


@dataclass(frozen=True)
class Outcome:
    """How a run of the command ended. ``text`` is what it said, on either stream."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def ok(self) -> bool:
        return self.code == 0

    def expect(self, code: int = 0) -> Outcome:
        """This, if it ended with ``code``."""
        assert self.code == code, f"exit code {self.code}\n{self.out}\n{self.err}"
        return self


def checkout(directory: Path) -> Path:
    """A directory that looks like a clone of the repository: what a run writes beside the program stays there."""
    directory.mkdir(parents=True)
    for name in ("infra", "migrations", "operations", "runbooks", "tests", "worker"):
        if (ROOT / name).exists():
            (directory / name).symlink_to(ROOT / name, target_is_directory=True)
    for name in ("Pulumi.yaml", "pyproject.toml"):
        (directory / name).write_bytes((ROOT / name).read_bytes())
    (directory / ".venv").symlink_to(Path(sys.prefix), target_is_directory=True)
    return directory


@dataclass
class Pulumi:
    """One stack of one program.

    :param program: the directory that holds Pulumi.yaml.
    :param scratch: an empty directory for state, home and logs.
    :param env: further environment of the command.
    """

    program: Path
    scratch: Path
    stack: str = "test"
    env: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What the command runs with; nothing of this process's own cloud account is in it."""
        state = self.scratch / "state"
        state.mkdir(parents=True, exist_ok=True)
        kept = {
            key: value for key, value in os.environ.items() if not key.startswith(("PULUMI_", "CLOUDFLARE_", "TF_"))
        }
        return {
            **kept,
            "PATH": f"{engine()}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "PULUMI_BACKEND_URL": f"file://{state}",
            "PULUMI_HOME": str(self.scratch / "home"),
            "PULUMI_CONFIG_PASSPHRASE": PASSPHRASE,
            "PULUMI_SKIP_UPDATE_CHECK": "1",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "1",
            "PULUMI_PYTHON_CMD": sys.executable,
            "STAND_IN_FIRST_WAIT_SECONDS": "0.01",
            **self.env,
        }

    def run(self, *arguments: str, timeout: float = 300.0) -> Outcome:
        """Run `pulumi` with these arguments."""
        done = subprocess.run(
            ["pulumi", *arguments],
            cwd=self.program,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    def on_stack(self, *arguments: str) -> Outcome:
        """Run a command that names the stack."""
        return self.run(*arguments, "--stack", self.stack, "--non-interactive", "--color", "never")

    def init(self, config: Mapping[str, Any]) -> None:
        """Make the stack and set its configuration."""
        self.on_stack("stack", "init").expect()
        for key, value in config.items():
            self.configure(key, value)

    def configure(self, key: str, value: Any) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.on_stack("config", "set", key, text).expect()

    def preview(self, *arguments: str) -> Outcome:
        return self.on_stack("preview", *arguments)

    def up(self, *arguments: str) -> Outcome:
        return self.on_stack("up", "--yes", *arguments)

    def refresh(self, *arguments: str) -> Outcome:
        return self.on_stack("refresh", "--yes", *arguments)

    def destroy(self, *arguments: str) -> Outcome:
        return self.on_stack("destroy", "--yes", *arguments)

    def export(self) -> dict[str, Any]:
        """The stack's state."""
        found: dict[str, Any] = json.loads(self.on_stack("stack", "export").expect().out)
        return found

    def outputs(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.on_stack("stack", "output", "--json").expect().out)
        return found
