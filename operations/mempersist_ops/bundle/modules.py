"""What a bundle is made of, and where its sources lie."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path, PurePosixPath
from typing import Any, Final

MAIN: Final = "entry.py"
VENDORED: Final = "python_modules"
COMPATIBILITY_DATE: Final = "2026-09-08"
"""The first date with Pyodide 314 and Python 3.14."""
COMPATIBILITY_FLAGS: Final = ("python_workers",)

PYTHON: Final = "text/x-python"
TEXT: Final = "text/plain"
DATA: Final = "application/octet-stream"
JAVASCRIPT: Final = "application/javascript+module"
_TEXT_SUFFIXES: Final = frozenset({".html", ".sql", ".txt"})
_SDK_SCRIPTS: Final = PurePosixPath(VENDORED, "workers")


class BundleError(Exception):
    """The bundle cannot be built. The message names the module and the way out."""


@dataclass(frozen=True, slots=True)
class Module:
    """One part of the upload. ``name`` is its path in the Worker's file system, relative and with slashes."""

    name: str
    type: str
    data: bytes


@dataclass(frozen=True)
class Bundle:
    """All modules by name."""

    modules: tuple[Module, ...]

    @property
    def size(self) -> int:
        """Bytes of all modules together, as Cloudflare's limit counts them."""
        return sum(len(module.data) for module in self.modules)

    @cached_property
    def digest(self) -> str:
        """SHA-256 hex over names, types and contents: it changes whenever the upload would."""
        whole = hashlib.sha256()
        for module in self.modules:
            whole.update(f"{module.name}\0{module.type}\0{hashlib.sha256(module.data).hexdigest()}\n".encode())
        return whole.hexdigest()

    def manifest(self) -> Mapping[str, Any]:
        """The bundle in JSON's terms, without its contents."""
        return {
            "digest": self.digest,
            "size_bytes": self.size,
            "main_module": MAIN,
            "compatibility_date": COMPATIBILITY_DATE,
            "compatibility_flags": list(COMPATIBILITY_FLAGS),
            "modules": [
                {
                    "name": module.name,
                    "type": module.type,
                    "size_bytes": len(module.data),
                    "sha256": hashlib.sha256(module.data).hexdigest(),
                }
                for module in self.modules
            ],
        }

    def manifest_json(self) -> str:
        return json.dumps(self.manifest(), indent=2, sort_keys=True) + "\n"


@dataclass(frozen=True, slots=True)
class Sources:
    """Where the parts of a bundle come from.

    :param packages: directories that become packages of the same name beside the main module.
    :param lock: requirements with hashes, of what is vendored.
    """

    main: Path
    packages: tuple[Path, ...]
    migrations: Path
    lock: Path


def find_sources() -> Sources:
    """The service's own sources: inside the installed package, or in the checkout it runs from.

    :raises BundleError: when neither is there.
    """
    data = Path(str(resources.files("mempersist_ops"))) / "data"
    core = Path(str(resources.files("mempersist")))
    root = Path(__file__).resolve().parents[3]
    for worker, package, migrations in (
        (data / "worker", core, data / "migrations"),
        (root / "worker", root / "worker" / "mempersist", root / "migrations"),
    ):
        if (worker / MAIN).is_file():
            packages = (worker / "bindings", package)
            return Sources(worker / MAIN, packages, migrations, worker / "requirements.lock")
    raise BundleError("the Worker's sources are missing from this installation; install mempersist again")


def type_of(name: str) -> str:
    """The media type that Cloudflare is told for a module of this name: what lies below ``python_modules`` is data,
    but for the scripts that the SDK imports."""
    path = PurePosixPath(name)
    if path.parts[0] == VENDORED:
        return JAVASCRIPT if path.parent == _SDK_SCRIPTS and path.suffix in {".js", ".mjs"} else DATA
    if path.suffix == ".py":
        return PYTHON
    return TEXT if path.suffix in _TEXT_SUFFIXES else DATA
