"""A host process killed with SIGKILL at random moments of an import: later starts end it, and nothing is doubled."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mempersist.archive.model import OWNER
from mempersist.catalog.digest import digest
from mempersist.imports import uploads
from mempersist.imports.counts import Tally
from mempersist.imports.status import import_receipt
from mempersist.recovery.rebuild import rebuild_catalog
from tests.rigs import exports
from tests.rigs.worlds import embedded_world, with_empty_catalog

ROOT = Path(__file__).resolve().parent.parent
CONVERSATIONS = 130
TEXTS = 5
KILLS = 4


def export() -> bytes:
    """A deflated shard, an asset, and a few items that fail."""
    shard: list[Any] = [
        exports.conversation(f"c{number}", *(f"message {index} of {number}" for index in range(TEXTS)))
        for number in range(CONVERSATIONS)
    ]
    shard[10:10] = [["bad"], {"id": "shell", "title": "empty", "create_time": 1}]
    return exports.as_zip({"conversations.json": exports.as_json(shard), "file-AAAA1111-x.png": exports.PNG})


def start_process(directory: Path, start: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.rigs.import_process", str(directory), str(start)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def kill_again_and_again(directory: Path, seed: int) -> int:
    """Kill a few processes at random moments, let the last one end; how often the world was started."""
    moments = random.Random(seed)
    for start in range(1, KILLS + 1):
        with start_process(directory, start) as process:
            time.sleep(moments.uniform(0, 0.2))
            process.kill()
    with start_process(directory, KILLS + 1) as process:
        assert process.stdout is not None
        assert process.stdout.read() == "done\n"
    return KILLS + 2


@pytest.mark.parametrize("seed", [1, 2])
async def test_an_import_killed_again_and_again_ends_whole(tmp_path: Path, seed: int) -> None:
    data = export()
    async with embedded_world(tmp_path) as world:
        accepted = await uploads.direct(world.ports, OWNER, filename="export.zip", body=data, size=len(data))
    starts = kill_again_and_again(tmp_path, seed)
    async with embedded_world(tmp_path, start=starts) as world:
        receipt = await import_receipt(world.ports, OWNER, accepted.import_id)
        assert receipt.counts.conversations == Tally(imported=CONVERSATIONS, skipped=1, failed=1)
        assert receipt.counts.messages == Tally(imported=CONVERSATIONS * TEXTS)
        assert receipt.counts.assets == Tally(imported=1)
        assert [finding.position for finding in receipt.findings] == ["conversations.json:10", "conversations.json:11"]
        rows = await world.ports.catalog.query(
            "SELECT (SELECT count(*) FROM conversations) AS conversations,"
            " (SELECT count(*) FROM revisions) AS revisions,"
            " (SELECT count(*) FROM messages) AS nodes, (SELECT max(head_seq) FROM conversations) AS head,"
            " (SELECT count(*) FROM jobs) + (SELECT count(*) FROM intents) + (SELECT count(*) FROM import_runs) AS left"
        )
        assert dict(rows[0]) == {
            "conversations": CONVERSATIONS,
            "revisions": CONVERSATIONS,
            "nodes": CONVERSATIONS * (TEXTS + 1),
            "head": 0,
            "left": 0,
        }
        live = await digest(world.ports.catalog)
        rebuilt = await with_empty_catalog(world)
        await rebuild_catalog(rebuilt.ports)
        assert (await digest(rebuilt.ports.catalog)).total == live.total
