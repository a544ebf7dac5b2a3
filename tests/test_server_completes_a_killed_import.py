"""An import stopped in the middle, politely or with kill -9: the server or the same command completes it, once."""

from __future__ import annotations

import json
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.command import answer, serving, start

CONVERSATIONS = 250


def export(path: Path) -> Path:
    conversations = [
        {
            "id": f"conversation-{number}",
            "title": f"Number {number}",
            "create_time": 1_700_000_000 + number,
            "update_time": 1_700_000_100 + number,
            "current_node": "b",
            "mapping": {
                "a": {"id": "a", "parent": None},
                "b": {
                    "id": "b",
                    "parent": "a",
                    "message": {"author": {"role": "user"}, "content": {"parts": [f"walrus number {number}"]}},
                },
            },
        }
        for number in range(CONVERSATIONS)
    ]
    path.write_text(json.dumps(conversations))
    return path


def conversations_in(data_dir: Path) -> int:
    return len(list((data_dir / "objects" / "canonical" / "conversations").glob("*")))


def stop_once_it_has(process: Any, data_dir: Path, count: int, signum: int) -> int:
    """Send the signal when so many conversations are stored; the exit code."""
    deadline = time.monotonic() + 60
    while conversations_in(data_dir) < count:
        assert process.poll() is None, "the import ended before it could be stopped"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.send_signal(signum)
    return int(process.wait(30))


def ended(data_dir: Path) -> Any:
    """The import and the totals, once a server has finished what was begun."""
    with serving(data_dir) as server:
        deadline = time.monotonic() + 60
        while True:
            totals = answer("status", env=server.env)
            (one,) = totals["imports"]
            if one["phase"] is None and not totals["stats"]["indexing"]["pending"]:
                return one, totals
            assert time.monotonic() < deadline, totals
            time.sleep(0.2)


def test_an_import_killed_again_and_again_is_completed_by_the_next_start(tmp_path: Path) -> None:
    path, data_dir = export(tmp_path / "conversations.json"), tmp_path / "data"
    with start("import", path, "--data-dir", data_dir) as process:
        stop_once_it_has(process, data_dir, CONVERSATIONS // 5, signal.SIGKILL)
    with start("serve", "--port", "0", "--data-dir", data_dir) as process:
        stop_once_it_has(process, data_dir, CONVERSATIONS // 2, signal.SIGKILL)
    one, totals = ended(data_dir)
    counts = one["counts"]["conversations"]
    assert one["status"] == "complete"
    assert counts["found"] == counts["imported"] + counts["unchanged"] == CONVERSATIONS
    assert totals["stats"]["totals"] == {"conversations": CONVERSATIONS, "messages": CONVERSATIONS}
    assert answer("rebuild-catalog", "--data-dir", data_dir)["differingTables"] == []


def test_an_interrupted_import_goes_on_when_the_same_command_is_run_again(tmp_path: Path) -> None:
    path, data_dir = export(tmp_path / "conversations.json"), tmp_path / "data"
    with start("import", path, "--data-dir", data_dir) as process:
        assert stop_once_it_has(process, data_dir, CONVERSATIONS // 5, signal.SIGINT) == 130
    receipt = answer("import", path, "--data-dir", data_dir)
    assert receipt["counts"]["conversations"]["found"] == CONVERSATIONS
    assert [item["id"] for item in answer("status", "--data-dir", data_dir)["imports"]] == [receipt["importId"]]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_killed_at_any_moments_the_same_command_still_ends_with_everything_once(tmp_path: Path, seed: int) -> None:
    path, data_dir = export(tmp_path / "conversations.json"), tmp_path / "data"
    moments = random.Random(seed)
    for _ in range(6):
        with start("import", path, "--data-dir", data_dir) as process:
            time.sleep(moments.uniform(0.3, 1.5))
            process.kill()
    assert answer("import", path, "--data-dir", data_dir)["status"] in {"complete", "duplicate"}
    found = answer("status", "--data-dir", data_dir)
    (complete,) = [item for item in found["imports"] if item["status"] != "duplicate"]
    counts = complete["counts"]["conversations"]
    assert counts["found"] == counts["imported"] + counts["unchanged"] == CONVERSATIONS
    assert found["stats"]["totals"] == {"conversations": CONVERSATIONS, "messages": CONVERSATIONS}
    assert answer("rebuild-catalog", "--data-dir", data_dir)["differingTables"] == []
