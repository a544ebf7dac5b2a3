"""ChatGPT exports for tests of imports, small and made by hand."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

Raw = dict[str, Any]
EPOCH = 1_760_000_000


def message(text: str, role: str, at: float) -> Raw:
    return {
        "author": {"role": role},
        "create_time": at,
        "content": {"content_type": "text", "parts": [text]},
        "metadata": {},
    }


def image(asset_id: str, at: float) -> Raw:
    """A user's message that holds a picture and no words."""
    part = {"content_type": "image_asset_pointer", "asset_pointer": f"file-service://{asset_id}", "size_bytes": 3}
    return {
        "author": {"role": "user"},
        "create_time": at,
        "content": {"content_type": "multimodal_text", "parts": [part, "see here"]},
        "metadata": {},
    }


def conversation(source_id: str, *texts: str, updated: float = EPOCH, **changes: Any) -> Raw:
    """A conversation without branches: an empty root, then ``texts`` from user and assistant in turn."""
    messages = [message(text, "assistant" if index % 2 else "user", EPOCH + index) for index, text in enumerate(texts)]
    return threaded(source_id, messages, updated=updated, **changes)


def threaded(source_id: str, messages: Sequence[Raw], *, updated: float = EPOCH, **changes: Any) -> Raw:
    mapping: Raw = {"root": {"id": "root", "message": None, "parent": None, "children": ["n0"] if messages else []}}
    parent = "root"
    for index, item in enumerate(messages):
        name = f"n{index}"
        children = [f"n{index + 1}"] if index + 1 < len(messages) else []
        mapping[name] = {"id": name, "message": {"id": name, **item}, "parent": parent, "children": children}
        parent = name
    return {
        "id": source_id,
        "conversation_id": source_id,
        "title": f"About {source_id}",
        "create_time": EPOCH,
        "update_time": updated,
        "current_node": parent,
        "mapping": mapping,
        **changes,
    }


def as_json(conversations: Sequence[Any]) -> bytes:
    return json.dumps(list(conversations)).encode()


def as_zip(files: Mapping[str, bytes], *, stored: bool = False) -> bytes:
    """A ZIP with ``files`` in their order, the same bytes at every call."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            info = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(64))


def ugly_zip() -> bytes:
    """A small export with a bit of everything that goes wrong: two shards and a missing one, a branch, a second copy,
    an empty shell, an item that is no conversation, broken JSON at a shard's end, an asset, and one without bytes.
    """
    branched = conversation("branched", "first", "answer one", "second")
    branched["mapping"]["n9"] = {
        "id": "n9",
        "message": {"id": "n9", **message("answer two", "assistant", EPOCH + 9)},
        "parent": "n0",
        "children": [],
    }
    branched["mapping"]["n0"]["children"].append("n9")
    first = [
        conversation("plain", "hello there", "general greeting", "thanks"),
        branched,
        conversation("unicode", "こんにちは世界", "ยินดีต้อนรับ", "grüße 👋"),
        {"id": "shell", "title": "nothing in it", "create_time": EPOCH},
        ["no conversation"],
        threaded("pictures", [image("file-AAAA1111", EPOCH), image("file-BBBB2222", EPOCH + 1)]),
    ]
    second = [
        conversation("plain", "hello there", "general greeting", "thanks"),
        conversation("long", *(f"message number {index} about gardens" for index in range(40))),
        conversation("dangling", "orphan words", current_node="nowhere"),
    ]
    manifest = {
        "version": 1,
        "logical_files": {
            "conversations.json": {
                "files": ["conversations-000.json", "conversations-001.json", "conversations-002.json"],
                "sharded": True,
            }
        },
        "export_files": [],
    }
    return as_zip(
        {
            "file-AAAA1111-garden.png": PNG,
            "conversations-001.json": as_json(second)[:-1] + b', {"id": "cut", "map',
            "conversations-000.json": as_json(first),
            "export_manifest.json": json.dumps(manifest).encode(),
            "user.json": b'{"id": "user-1"}',
        }
    )


async def chunked(data: bytes, size: int = 1000) -> AsyncIterator[bytes]:
    """``data`` as a request body brings it."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
