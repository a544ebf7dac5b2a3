"""What the Worker imports is on a list, so that nothing heavy or useless enters its start unnoticed."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mempersist_ops import bundle
from mempersist_ops.bundle import Module, find_sources, refuse
from mempersist_ops.bundle.build import tree
from tests.rigs.bundles import LOCKED, sources

_NAMES = """
__future__ array ast asyncio base64 binascii bisect codecs collections contextlib dataclasses datetime enum functools
hashlib heapq hmac html http itertools json logging math operator pathlib re secrets string struct sys time traceback
typing unicodedata urllib uuid zlib
"""
STANDARD_LIBRARY = frozenset(_NAMES.split())
"""Each of these is in Pyodide's snapshot or costs less than a millisecond to import there."""
RUNTIME = frozenset({"js", "pyodide", "workers"})


def own_modules() -> list[Module]:
    found = find_sources()
    modules = [Module("entry.py", "text/x-python", found.main.read_bytes())]
    for package in found.packages:
        modules += [module for module in tree(package, package.name) if module.name.endswith(".py")]
    return modules


def test_nothing_outside_the_list_enters_the_import_graph() -> None:
    found = refuse.reachable(own_modules())
    foreign = {name for name in found if not name.endswith(".py")}
    assert foreign - RUNTIME <= STANDARD_LIBRARY
    assert foreign >= RUNTIME
    assert sys.stdlib_module_names >= STANDARD_LIBRARY


def test_only_what_is_used_is_shipped(tmp_path: Path) -> None:
    made = bundle.build(sources(tmp_path, mempersist__unused_py="import json\n"), LOCKED)
    shipped = {module.name for module in made.modules}
    assert "mempersist/core.py" in shipped
    assert "mempersist/page.html" in shipped
    assert "mempersist/unused.py" not in shipped


def test_the_core_does_not_know_the_runtime() -> None:
    core = [module for module in own_modules() if module.name.startswith("mempersist/")]
    for module in core:
        assert not {name.split(".")[0] for name in refuse.imports(module)} & {"js", "pyodide", "workers", "bindings"}


def test_a_new_import_would_be_noticed(tmp_path: Path) -> None:
    modules = [Module("entry.py", "text/x-python", b"def late():\n    import difflib.sub\n")]
    assert refuse.reachable(modules) == {"entry.py", "difflib"}
    assert not re.match("difflib", " ".join(STANDARD_LIBRARY))
