"""The protocol's own conformance scenarios that need no fixture tools, and the Inspector's strict look at the tools."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.clients.conftest import BUNDLED_NODE, HERE, MODULES
from tests.clients.proxy import with_token
from tests.rigs.command import Server, environment
from tests.test_mcp_tool_definitions import NAMES

pytestmark = pytest.mark.clients

SCENARIOS = {
    "2026-07-28": [
        "server-stateless",
        "tools-list",
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "sep-2164-resource-not-found",
        "input-required-result-unsupported-methods",
    ],
    "2025-11-25": ["server-initialize", "ping", "tools-list", "dns-rebinding-protection"],
}


@pytest.mark.parametrize(
    ("version", "scenario"), [(version, scenario) for version, names in SCENARIOS.items() for scenario in names]
)
def test_a_conformance_scenario_passes(server: Server, version: str, scenario: str) -> None:
    with with_token(server.url, server.token) as url:
        done = subprocess.run(
            [
                BUNDLED_NODE,
                MODULES / "conformance" / "dist" / "index.js",
                "server",
                *("--url", f"{url}/mcp", "--scenario", scenario, "--spec-version", version),
                *("--expected-failures", HERE / "expected-failures.yml"),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspectors_strict_mode_finds_nothing(server: Server, era: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            BUNDLED_NODE,
            HERE / "node_modules" / ".bin" / "mcp-inspector",
            *("--cli", f"{server.url}/mcp", "--transport", "http", "--protocol-era", era),
            *("--header", f"Authorization: Bearer {server.token}"),
            *("--method", "tools/list", "--strict", "--format", "json"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment(MCP_INSPECTOR_SECRET_STORE="memory", HOME=str(tmp_path)),
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    listed = json.loads(done.stdout)
    assert [tool["name"] for tool in listed.get("result", listed)["tools"]] == NAMES
