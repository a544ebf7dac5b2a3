"""The `pulumi` command of the tests: the one on PATH, or one built from pinned Go modules into a cache.

Run as ``python -m tests.engine.build`` to have it made and its directory printed.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
CACHE: Final = ROOT / ".cache" / "engine"
VERSION: Final = "v3.274.1"
_SDK: Final = "github.com/pulumi/pulumi/sdk/v3"
_COMMAND: Final = "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi"
_HELPERS: Final = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
_SOURCES: Final = ("go.mod", "go.sum", "build.py")


class EngineMissing(Exception):
    """There is neither a `pulumi` command nor the means to build one. The message says what to install."""


def engine() -> Path:
    """The directory to be put in front of PATH: `pulumi`, its language host and its helpers.

    :raises EngineMissing:
    """
    installed = shutil.which("pulumi")
    if installed is not None and shutil.which("pulumi-language-python") is not None:
        return Path(installed).parent
    if shutil.which("go") is None:
        raise EngineMissing(
            "neither `pulumi` with its Python language host nor `go` to build it is on PATH;"
            " install Pulumi (https://www.pulumi.com/docs/install) or Go 1.26 or newer"
        )
    parts = [*((HERE / name).read_bytes() for name in _SOURCES), sys.executable.encode()]
    key = hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
    directory = CACHE / key
    if not (directory / "complete").exists():
        _build(directory)
    return directory


def _build(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        made = Path(scratch)
        flags = f"-s -w -X {_SDK}/go/common/version.Version={VERSION}"
        tags = "osusergo,grpcnotrace"
        _go("build", "-trimpath", "-tags", tags, "-ldflags", flags, "-o", str(made / "pulumi"), _COMMAND)
        sdk = Path(_go("list", "-m", "-f", "{{.Dir}}", _SDK).strip())
        for helper in _HELPERS:
            shutil.copy(sdk / helper, made / Path(helper).name)
        _script(made / "pulumi-language-python", "language_host")
        _script(made / "pulumi-resource-cloudflare", "stand_in")
        for name in ("pulumi-language-python-exec", "pulumi-resource-pulumi-python"):
            path = made / name
            path.chmod(path.stat().st_mode | stat.S_IWUSR | stat.S_IXUSR)
        (made / "complete").touch()
        shutil.rmtree(directory, ignore_errors=True)
        shutil.copytree(made, directory)


def _go(*arguments: str) -> str:
    done = subprocess.run(["go", *arguments], cwd=HERE, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode:
        raise EngineMissing(f"`go {arguments[0]}` could not make the engine:\n{done.stderr[-2000:]}")
    return done.stdout


def _environment() -> dict[str, str]:
    return {**os.environ, "GOFLAGS": "-mod=readonly"}


def _script(path: Path, module: str) -> None:
    """A command that runs a module of this package with this Python, wherever it is called from."""
    path.write_text(
        "#!/bin/sh\n"
        f'MEMPERSIST_ENGINE=$(dirname "$0") PYTHONPATH="{ROOT}:$PYTHONPATH" '
        f'exec "{sys.executable}" -u -m tests.engine.{module} "$@"\n'
    )
    path.chmod(0o755)


if __name__ == "__main__":
    print(engine())
