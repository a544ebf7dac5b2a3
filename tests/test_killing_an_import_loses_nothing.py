"""Kill -9 in the middle of an import, several times over: the next start completes it, and nothing is doubled."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

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


def kill_once_it_has(process: Any, data_dir: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while conversations_in(data_dir) < count:
        assert process.poll() is None, "the import ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.wait(30)


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
        kill_once_it_has(process, data_dir, CONVERSATIONS // 5)
    with start("serve", "--port", "0", "--data-dir", data_dir) as process:
        kill_once_it_has(process, data_dir, CONVERSATIONS // 2)
    one, totals = ended(data_dir)
    counts = one["counts"]["conversations"]
    assert one["status"] == "complete"
    assert counts["found"] == counts["imported"] + counts["unchanged"] == CONVERSATIONS
    assert totals["stats"]["totals"] == {"conversations": CONVERSATIONS, "messages": CONVERSATIONS}
    assert answer("rebuild-catalog", "--data-dir", data_dir)["differingTables"] == []
