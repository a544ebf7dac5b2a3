"""What cannot run on Cloudflare is refused here, where the message can still name it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from mempersist_ops.bundle.modules import MAIN, VENDORED, BundleError, Module

MAX_BYTES: Final = 64 * 1024 * 1024
"""Cloudflare's limit for a Worker, unpacked, on every plan."""

_NATIVE: Final = frozenset({".so", ".pyd", ".dylib", ".dll", ".a", ".o"})
_USELESS: Final = frozenset({".pyc", ".pyo"})
_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
_RUNTIME: Final = frozenset({"js", "pyodide", "workers", "asgi"})
_BUILT_IN: Final = frozenset(
    {
        "js",
        "pyodide",
        "pyodide_js",
        "_pyodide",
        "_pyodide_core",
        "_pyodide_entrypoint_helper",
        "_cloudflare_compat_flags",
    }
)
_MAY_SEE_THE_RUNTIME: Final = frozenset({"entry", "bindings"})
_MISSING_NAMES: Final = """
aifc asynchat asyncore audioop cgi cgitb chunk crypt curses dbm distutils ensurepip fcntl grp idlelib imghdr imp lib2to3
mailcap mmap msilib msvcrt multiprocessing nis nntplib nt ossaudiodev pipes pty pwd pydoc_data readline resource signal
smtpd sndhdr socket socketserver spwd sqlite3 ssl subprocess sunau syslog telnetlib termios threading tkinter turtle
turtledemo uu venv webbrowser winreg winsound xdrlib
"""
_MISSING: Final = frozenset(_MISSING_NAMES.split())
"""Modules of the standard library that are absent there, or present and without a use: no processes, threads, sockets,
files of its own or TLS. Those that left it before Python 3.14 are among them: an older Python builds the bundle."""
_STANDARD_LIBRARY: Final = sys.stdlib_module_names | {"annotationlib", "compression"}
"""With what Python 3.14 added."""


def check(modules: Sequence[Module]) -> None:
    """:raises BundleError: for the first thing that could not be uploaded or could not run."""
    names = [module.name for module in modules]
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise BundleError(f"{min(repeated)}: two modules have this name; rename or drop one")
    if MAIN not in names:
        raise BundleError(f"{MAIN} is missing; it is where Cloudflare enters")
    own = own_packages(modules)
    vendored = {top for top in (_top(name) for name in names if _is_vendored(name)) if top}
    _check_tops(own, vendored)
    for module in modules:
        _check_name(module.name)
        if not _is_vendored(module.name) and module.name.endswith(".py"):
            _check_imports(module, own, vendored)
    size = sum(len(module.data) for module in modules)
    if size > MAX_BYTES:
        raise BundleError(f"the bundle has {size} bytes; Cloudflare takes at most {MAX_BYTES}")


def own_packages(modules: Sequence[Module]) -> frozenset[str]:
    """Top-level names of the Worker's own Python code."""
    code = [module.name for module in modules if not _is_vendored(module.name) and module.name.endswith(".py")]
    return frozenset(filter(None, map(_top, code)))


def imports(module: Module) -> Iterator[str]:
    """The modules that a Python module names in its import statements, wherever those stand.

    :raises BundleError: for source that is not UTF-8 or not Python.
    """
    try:
        tree = ast.parse(module.data.decode("utf-8"), module.name)
        compile(tree, module.name, "exec", dont_inherit=True)
    except UnicodeDecodeError:
        raise BundleError(f"{module.name}: is not UTF-8; save it as UTF-8") from None
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None) or 1
        raise BundleError(f"{module.name} line {line}: is not Python") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level:
            raise BundleError(f"{module.name} line {node.lineno}: write the import in full, not relative")
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def reachable(modules: Sequence[Module], start: str = MAIN) -> frozenset[str]:
    """What the import of ``start`` leads to: own modules by their path, all others by their top-level name."""
    own = _by_import_name(modules)
    found: set[str] = set()
    waiting = [start]
    by_name = {module.name: module for module in modules}
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found.add(name)
        for imported in imports(by_name[name]):
            parts = imported.split(".")
            own_paths = [own[".".join(parts[:end])] for end in range(1, len(parts) + 1) if ".".join(parts[:end]) in own]
            waiting += own_paths
            if not own_paths:
                found.add(parts[0])
    return frozenset(found)


def _by_import_name(modules: Sequence[Module]) -> Mapping[str, str]:
    names = {}
    for module in modules:
        path = PurePosixPath(module.name)
        if path.suffix == ".py" and not _is_vendored(module.name):
            parts = path.with_suffix("").parts
            names[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = module.name
    return names


def _check_name(name: str) -> None:
    path = PurePosixPath(name)
    if path.is_absolute() or str(path) != name or any(not _NAME.fullmatch(part) for part in path.parts):
        raise BundleError(f"{name[:80]}: a module's name is a relative path of letters, digits and . _ + -")
    if path.suffix in _NATIVE or ".so." in path.name:
        raise BundleError(f"{name}: compiled code does not run there; vendor a pure Python package")
    if path.suffix in _USELESS:
        raise BundleError(f"{name}: compiled Python is of another version; ship the source")


def _check_tops(own: frozenset[str], vendored: set[str]) -> None:
    clash = own & vendored
    if clash:
        raise BundleError(f"{min(clash)}: is both our own and vendored; one would hide the other")
    runtime = (own & _RUNTIME) | ((own | vendored) & _BUILT_IN)
    if runtime:
        raise BundleError(f"{min(runtime)}: would hide a module of Cloudflare's runtime; rename it")
    hidden = (own | vendored) & _STANDARD_LIBRARY
    if hidden:
        raise BundleError(f"{min(hidden)}: would hide a module of the standard library; rename it")


def _check_imports(module: Module, own: frozenset[str], vendored: set[str]) -> None:
    top = _top(module.name)
    for name in imports(module):
        first = name.split(".")[0]
        if first in _RUNTIME:
            if top not in _MAY_SEE_THE_RUNTIME:
                raise BundleError(f"{module.name}: imports {first}; only entry.py and bindings/ may know the runtime")
        elif first in _MISSING:
            raise BundleError(f"{module.name}: imports {first}, which is of no use on Cloudflare")
        elif first not in own and first not in vendored and first not in _STANDARD_LIBRARY:
            raise BundleError(f"{module.name}: imports {first}, which is not in the bundle; vendor it or do without")


def _is_vendored(name: str) -> bool:
    return name.startswith(f"{VENDORED}/")


def _top(name: str) -> str:
    """The top-level import name of a module; empty for what is no import, such as metadata and data."""
    parts = PurePosixPath(name.removeprefix(f"{VENDORED}/")).parts
    if parts[0].endswith(".dist-info"):
        return ""
    return parts[0].removesuffix(".py") if len(parts) > 1 or parts[0].endswith(".py") else ""
