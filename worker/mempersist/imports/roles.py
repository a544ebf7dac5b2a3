"""What each file of an export is, by its name alone; and whose export a JSON file is, by its first keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from mempersist.imports.media import asset_id_of_member

Role = Literal["conversations", "manifest", "name_map", "library", "asset", "archive", "known", "litter", "unknown"]

CONVERSATIONS = re.compile(r"conversations(?:[-_](\d{1,6}))?\.json", re.IGNORECASE)
_ASSET_FOLDER = re.compile(r"(?:.*/)?(?:dalle-generations|user-[^/]+|audio)/[^/]+", re.IGNORECASE)
_LITTER = re.compile(r"(?:.*/)?(?:__MACOSX/.*|\.[^/]*|Thumbs\.db|desktop\.ini)", re.IGNORECASE)
_SITES = re.compile(r"(?:.*/)?sites/.+", re.IGNORECASE)

_SETTINGS = "account data and settings are not conversations"
_FEEDBACK = "ratings of answers are not conversations"
_INDEX = "it lists conversations that the export holds itself"
_SUPPORT = "this part of an export cannot be imported yet"
KNOWN_FILES = {
    "ads.json": _SETTINGS,
    "chat.html": "a readable copy of the conversations",
    "custom_gpts.json": _SUPPORT,
    "gizmos.json": _SUPPORT,
    "group_chats.json": _SUPPORT,
    "memories.json": _SUPPORT,
    "message_feedback.json": _FEEDBACK,
    "model_comparisons.json": _FEEDBACK,
    "projects.json": _SUPPORT,
    "report.html": _SETTINGS,
    "sectioned_conversations.json": _INDEX,
    "shared_conversations.json": _INDEX,
    "shopping.json": _SETTINGS,
    "sora.json": _SUPPORT,
    "tasks.json": _SUPPORT,
    "user.json": _SETTINGS,
    "user_settings.json": _SETTINGS,
    "users.json": _SETTINGS,
}
"""Files that exports are known to hold and that are not imported, each with the reason."""

_HEAD_TOKENS = re.compile(rb'"([^"\\]*)"[ \t\r\n]*(:)?|"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)
_KEY_DEPTH = 4
_CLAUDE_LIST = re.compile(rb"conversations-\d+\.zip")


@dataclass(frozen=True, slots=True)
class Vendor:
    reason: str
    name: str

    @property
    def message(self) -> str:
        return f"this is an export of {self.name}, which is not supported yet; ChatGPT exports are"


CLAUDE = Vendor("CLAUDE_EXPORT", "Claude")
GROK = Vendor("GROK_EXPORT", "Grok")
GEMINI = Vendor("GEMINI_EXPORT", "Google Gemini")


def role_of(name: str) -> Role:
    """The role of a file in an export, whatever folder it is in."""
    base = name.rpartition("/")[2]
    lower = base.lower()
    if not base or _LITTER.fullmatch(name):
        return "litter"
    if lower in KNOWN_FILES or _SITES.fullmatch(name):
        return "known"
    exact: dict[str, Role] = {
        "export_manifest.json": "manifest",
        "conversation_asset_file_names.json": "name_map",
        "library_files.json": "library",
    }
    if lower in exact:
        return exact[lower]
    if CONVERSATIONS.fullmatch(base):
        return "conversations"
    if asset_id_of_member(name) or _ASSET_FOLDER.fullmatch(name):
        return "asset"
    return "archive" if lower.endswith(".zip") else "unknown"


def vendor_of_name(name: str) -> Vendor | None:
    """Whose export an archive with such a file is, where a name is enough."""
    lower = name.lower()
    if lower.endswith("prod-grok-backend.json"):
        return GROK
    if lower.startswith("takeout/") and "gemini" in lower:
        return GEMINI
    return None


def vendor_of_json(head: bytes) -> Vendor | None:
    """Whose export a JSON file is that begins with ``head``, if it is surely not ChatGPT's."""
    keys = set(_keys(head))
    if b"mapping" in keys:
        return None
    if b"chat_messages" in keys or _CLAUDE_LIST.search(head):
        return CLAUDE
    if b"responses" in keys and b"conversation" in keys:
        return GROK
    if {b"header", b"products"} <= keys or {b"header", b"titleUrl"} <= keys:
        return GEMINI
    return None


def _keys(head: bytes) -> Iterator[bytes]:
    """The keys of the outer objects."""
    depth = 0
    for token in _HEAD_TOKENS.finditer(head):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
        elif token[2] and depth <= _KEY_DEPTH:
            yield token[1]
