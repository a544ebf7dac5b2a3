"""The whole program on the real engine: from nothing to a service that remembers, and back to nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mempersist_ops.gates.changes import Gate
from tests.emulator.runtime import running
from tests.rigs.deployment import OWNER_TOKEN, Deployment, deployment

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A deployment that was approved and came up."""
    with deployment(tmp_path_factory.mktemp("deployed")) as made:
        made.up()
        yield made


def test_a_preview_asks_cloudflare_for_no_change_and_names_every_gate(tmp_path: Path) -> None:
    with deployment(tmp_path) as made:
        outcome = made.pulumi.preview().expect()
        assert made.writes() == 0
        plan = made.plan()
        assert set(plan.by_gate()) == {Gate.PROVISION, Gate.SECRETS, Gate.MIGRATE, Gate.DEPLOY}
        assert f"PLAN sha256:{plan.digest}" in outcome.text
        assert "create D1 database mempersist-test-catalog" in outcome.text


def test_what_was_deployed_answers_mcp_and_finds_what_it_was_told(deployed: Deployment) -> None:
    with running(deployed.emulator, deployed.url, "mempersist-test") as url:
        _tool(url, "memory_store", title="Tea", messages=[{"role": "user", "content": "I like green tea from Uji."}])
        for _ in range(50):
            (found,) = _tool(url, "memory_search", query="green tea")["results"]
            if found["sources"] != ["recent_canonical"]:
                break
            time.sleep(0.1)
        assert found["title"] == "Tea"
        assert {"lexical", "semantic"} <= set(found["sources"])


def test_a_second_up_changes_nothing_and_asks_for_no_approval(deployed: Deployment) -> None:
    before = deployed.writes()
    outcome = deployed.pulumi.up().expect()
    assert "no changes" in outcome.text
    assert deployed.writes() == before


def test_a_refresh_finds_what_it_left(deployed: Deployment) -> None:
    outcome = deployed.pulumi.refresh("--expect-no-changes").expect()
    assert "updated" not in outcome.text


def test_state_holds_no_secret_and_no_secret_is_said(deployed: Deployment) -> None:
    state = deployed.pulumi.on_stack("stack", "export", "--show-secrets").expect().text
    for value in (*deployed.secret_values.values(), deployed.pulumi.env["CLOUDFLARE_API_TOKEN"]):
        assert value not in state
        assert value not in deployed.places.ledger.read_text()
        assert value not in deployed.places.plan.read_text()


def _tool(url: str, name: str, **arguments: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    headers = {"authorization": f"Bearer {OWNER_TOKEN}", "accept": "application/json, text/event-stream"}
    answer = httpx.post(f"{url}/mcp", json=body, headers=headers, timeout=60).raise_for_status().json()
    assert not answer["result"].get("isError"), answer
    return answer["result"]["structuredContent"]
