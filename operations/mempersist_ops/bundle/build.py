"""Putting a bundle together, and laying it out on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from mempersist_ops.bundle.modules import MAIN, PYTHON, Bundle, BundleError, Module, Sources, type_of
from mempersist_ops.bundle.refuse import check, reachable
from mempersist_ops.bundle.vendor import vendored

_SKIPPED: Final = frozenset({"__pycache__"})
_SHIPPED: Final = frozenset({".py", ".sql", ".html", ".txt", ".css", ".js", ".json", ".svg", ".png", ".ico", ".woff2"})


def build(sources: Sources, cache: Path) -> Bundle:
    """The bundle of ``sources``; wheels are kept in ``cache``.

    :raises BundleError: for what cannot be had, and for what could not run on Cloudflare.
    """
    _refuse_link(sources.main, MAIN)
    modules = [Module(MAIN, type_of(MAIN), sources.main.read_bytes())]
    for package in sources.packages:
        modules += tree(package, package.name)
    modules += [module for module in tree(sources.migrations, "migrations") if module.name.endswith(".sql")]
    modules += vendored(sources.lock, cache)
    modules.sort(key=lambda module: module.name)
    check(modules)
    return Bundle(tuple(_needed(modules)))


def _needed(modules: Sequence[Module]) -> Iterator[Module]:
    """Without the Worker's own code that nothing of it imports: the core holds what only an operator's jobs use."""
    used = reachable(modules)
    for module in modules:
        if module.type != PYTHON or module.name in used:
            yield module


def write(bundle: Bundle, directory: Path) -> None:
    """Lay the modules out as they lie in the Worker's file system.

    :raises BundleError: if the directory holds anything already.
    """
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise BundleError(f"{directory}: is not empty; name a new directory")
    for module in bundle.modules:
        path = directory / module.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(module.data)


def tree(root: Path, name: str) -> Iterator[Module]:
    """The files below ``root`` that may be shipped, as modules below ``name``. :raises BundleError: for a link."""
    for path in sorted(root.rglob("*")):
        relative = path.relative_to(root)
        if _SKIPPED & set(relative.parts):
            continue
        _refuse_link(path, f"{name}/{relative}")
        if path.is_dir():
            continue
        if path.suffix in _SHIPPED:
            module = f"{name}/{relative.as_posix()}"
            yield Module(module, type_of(module), path.read_bytes())


def _refuse_link(path: Path, name: str) -> None:
    if path.is_symlink():
        raise BundleError(f"{name}: is a symbolic link; put the file itself there")
