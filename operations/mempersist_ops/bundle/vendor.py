"""Vendored packages: the wheels that the lock names, checked against its hashes, and what of them is shipped."""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from mempersist_ops.bundle.modules import VENDORED, BundleError, Module, type_of

_LINE: Final = re.compile(r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+)(?P<hashes>(?:\s+--hash=sha256:[0-9a-f]{64})+)")
_LEFT_OUT: Final = frozenset({"RECORD", "INSTALLER", "REQUESTED", "WHEEL", "direct_url.json"})
_TIMEOUT_SECONDS: Final = 300


@dataclass(frozen=True, slots=True)
class Requirement:
    """``sha256``: of every file that may stand for it."""

    name: str
    version: str
    sha256: frozenset[str]


def read_lock(lock: Path) -> tuple[Requirement, ...]:
    """:raises BundleError: for a line that does not pin a version with its hashes."""
    text = lock.read_text(encoding="utf-8").replace("\\\n", " ")
    requirements = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        found = _LINE.fullmatch(line.strip())
        if found is None:
            raise BundleError(f"{lock.name} line {number}: write name==version --hash=sha256:… and nothing else")
        hashes = frozenset(re.findall(r"sha256:([0-9a-f]{64})", found["hashes"]))
        requirements.append(Requirement(found["name"], found["version"], hashes))
    return tuple(requirements)


def vendored(lock: Path, cache: Path) -> list[Module]:
    """The modules of every locked wheel. Wheels are taken from ``cache``, and fetched into it with pip where missing.

    :raises BundleError: when a wheel cannot be had, or is not the locked one.
    """
    requirements = read_lock(lock)
    if any(_cached(requirement, cache) is None for requirement in requirements):
        _fetch(lock, cache)
    modules: list[Module] = []
    for requirement in requirements:
        wheel = _cached(requirement, cache)
        if wheel is None:
            raise BundleError(f"{requirement.name}: pip gave no wheel with a hash of {lock.name}; lock it again")
        modules += _unpacked(wheel)
    return modules


def _cached(requirement: Requirement, cache: Path) -> Path | None:
    distribution = re.sub(r"[-_.]+", "_", requirement.name).lower()
    for path in sorted(cache.glob("*.whl")):
        named = path.name.lower().startswith(f"{distribution}-{requirement.version}-")
        if named and hashlib.sha256(path.read_bytes()).hexdigest() in requirement.sha256:
            return path
    return None


def _fetch(lock: Path, cache: Path) -> None:
    cache.mkdir(parents=True, exist_ok=True)
    options = ["--require-hashes", "--only-binary=:all:", "--no-deps", "--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", "download", *options, "-d", str(cache), "-r", str(lock)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS)  # noqa: S603
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.strip()]
        reason = said[-1] if said else f"pip ended with {error.returncode}"
        raise BundleError(f"the vendored packages could not be fetched: {reason}") from None
    except subprocess.TimeoutExpired:
        raise BundleError(f"pip did not fetch the vendored packages within {_TIMEOUT_SECONDS} s; try again") from None


def _unpacked(wheel: Path) -> Iterator[Module]:
    with zipfile.ZipFile(wheel) as archive:
        for entry in sorted(archive.infolist(), key=lambda info: info.filename):
            path = PurePosixPath(entry.filename)
            if entry.is_dir() or path.suffix == ".pyc" or _is_metadata_left_out(path):
                continue
            name = f"{VENDORED}/{path}"
            yield Module(name, type_of(name), archive.read(entry))


def _is_metadata_left_out(path: PurePosixPath) -> bool:
    return path.parts[0].endswith(".dist-info") and path.name in _LEFT_OUT
