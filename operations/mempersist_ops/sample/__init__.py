"""The bundled sample: a ChatGPT export that we wrote, ugly on purpose.

It has the layout of a recent export and most of what makes real ones hard to read: edited questions, voice, images,
documents, code, research reports, broken graphs. What it holds is always the same.
"""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

from mempersist_ops.sample import everyday, languages, oddities, tools
from mempersist_ops.sample.assets import ASSETS

DEMO_QUERY = "why does the borrow checker refuse my push"

_STAMP = (2026, 5, 1, 12, 0, 0)


def build(path: Path) -> Path:
    """Write the sample to ``path`` as the ZIP that a person would download."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in _members():
            archive.writestr(zipfile.ZipInfo(name, _STAMP), data, zipfile.ZIP_DEFLATED, 9)
    return path


def _members() -> list[tuple[str, bytes]]:
    classic = [*everyday.conversations(), *oddities.conversations()]
    slim = [_slim(conversation) for conversation in (*languages.conversations(), *tools.conversations())]
    shards = {"conversations-000.json": classic, "conversations-001.json": slim}
    files = {
        "group_chats.json": [],
        "message_feedback.json": [],
        "user.json": {"id": "user-sample", "email": "sample@example.org"},
        "user_settings.json": {"settings": {}},
    }
    # The name map comes after the files that it names, as in real exports.
    members = [(asset.member, asset.data) for asset in ASSETS]
    members += [(name, _json(shard)) for name, shard in shards.items()]
    members += [(name, _json(value)) for name, value in files.items()]
    members.append(("conversation_asset_file_names.json", _json({asset.member: asset.name for asset in ASSETS})))
    members.append(("export_manifest.json", _json(_manifest(members, list(shards)))))
    return members


def _manifest(members: list[tuple[str, bytes]], shards: list[str]) -> dict[str, Any]:
    return {
        "version": 1,
        "logical_files": {"conversations.json": {"files": shards, "sharded": True}},
        "export_files": [{"path": name, "size_bytes": len(data)} for name, data in members],
    }


def _slim(conversation: dict[str, Any]) -> dict[str, Any]:
    """The newer form of nodes, which do not name their children."""
    mapping = conversation.get("mapping", {})
    slim = {
        key: {name: value for name, value in node.items() if name != "children"} if isinstance(node, dict) else node
        for key, node in mapping.items()
    }
    return {**conversation, "mapping": slim}


def _json(value: Any) -> bytes:
    """As exports are written: on one line, everything outside ASCII escaped."""
    return json.dumps(value).encode("ascii")
