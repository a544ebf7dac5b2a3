"""What an archive file is made of, and in which order.

A ZIP whose members are canonical objects under their own keys, followed by two members about them::

    mempersist-export-objects.jsonl   one line an object, in the file's order: {"key", "sha256", "size"}
    mempersist-export.json            format, account, counts, SHA-256 of the list, digest of the catalog

Bodies stand before what refers to them and head entries last, so that a restore which follows the file's order never
leaves a conversation that points at nothing. Nothing in the file depends on when it was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from mempersist import canonical
from mempersist.archive import keys
from mempersist.errors import Code, MempersistError

FORMAT: Final = "mempersist.archive-file.v1"
SUMMARY: Final = "mempersist-export.json"
OBJECTS: Final = "mempersist-export-objects.jsonl"
MEMBER_TIME: Final = (1980, 1, 1, 0, 0, 0)
BLOCK_BYTES: Final = 4 * 1024 * 1024

_NAME = r"[A-Za-z0-9._-]+"
_KEY = re.compile(
    r"canonical/format\.json"
    rf"|canonical/conversations/{_NAME}/segments/[0-9a-f]{{64}}\.jsonl"
    rf"|canonical/conversations/{_NAME}/revisions/[0-9a-f]{{64}}(\.\d+)?\.json"
    rf"|canonical/conversations/{_NAME}/head/\d{{10}}\.json"
    rf"|canonical/accounts/{_NAME}/log/\d{{10}}\.json"
    rf"|canonical/assets/{_NAME}/{_NAME}/[0-9a-f]{{64}}\.(bin|json)"
    rf"|raw/imports/{_NAME}/(import\.json|receipt\.json|source/{_NAME})"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
_MAX_KEY_BYTES = 1024


@dataclass(frozen=True, slots=True)
class ObjectLine:
    """One object of the file: its key, the SHA-256 of its bytes and how many they are."""

    key: str
    sha256: str
    size: int

    def encode(self) -> bytes:
        return canonical.dumps({"key": self.key, "sha256": self.sha256, "size": self.size}) + b"\n"


@dataclass(frozen=True, slots=True)
class Summary:
    """What the file says of itself. ``catalog_digest`` is that of the catalog folded from exactly its objects."""

    account: str
    objects: int
    size_bytes: int
    sources: bool
    objects_sha256: str
    catalog_digest: str

    def encode(self) -> bytes:
        return canonical.dumps(
            {
                "format": FORMAT,
                "account": self.account,
                "objects": self.objects,
                "sizeBytes": self.size_bytes,
                "sources": self.sources,
                "objectsSha256": self.objects_sha256,
                "catalogDigest": self.catalog_digest,
            }
        )


def decode_summary(data: bytes) -> Summary:
    """:raises MempersistError: PERMANENT_PARSER for another format or a damaged summary."""
    try:
        value: Any = canonical.loads(data)
        if value["format"] != FORMAT:
            raise damaged(SUMMARY, f"names a format other than {FORMAT}; use the version of mempersist that wrote it")
        return Summary(
            account=_text(value["account"]),
            objects=int(value["objects"]),
            size_bytes=int(value["sizeBytes"]),
            sources=bool(value["sources"]),
            objects_sha256=_text(value["objectsSha256"]),
            catalog_digest=_text(value["catalogDigest"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(SUMMARY, "is not a valid summary") from None


def decode_line(line: bytes) -> ObjectLine:
    """:raises MempersistError: PERMANENT_PARSER for a line that is damaged or names what no archive holds."""
    try:
        value: Any = canonical.loads(line)
        entry = ObjectLine(_text(value["key"]), _text(value["sha256"]), int(value["size"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise damaged(OBJECTS, "has a line that is not a valid object entry") from None
    if not is_key(entry.key):
        raise damaged(repr(entry.key[:200]), "is not the key of an archive's object")
    if not _SHA256.fullmatch(entry.sha256) or entry.size < 0:
        raise damaged(entry.key, "has an entry without a valid hash or size")
    return entry


def is_key(key: str) -> bool:
    """Whether ``key`` is one of an archive's objects: nothing else is ever written by a restore."""
    named = len(key) <= _MAX_KEY_BYTES and _KEY.fullmatch(key) is not None
    return named and all(segment.strip(".") for segment in key.split("/"))


def in_order(objects: Iterable[str]) -> list[str]:
    """Keys in the order of a file: what is referred to before what refers to it, by key within a rank."""
    return sorted(objects, key=lambda key: (_rank(key), key.encode()))


def _rank(key: str) -> int:
    if key == keys.FORMAT_KEY:
        return 0
    if key.endswith((".jsonl", ".bin")) or "/source/" in key:
        return 1
    if key.startswith(keys.ACCOUNTS) or key.endswith("/receipt.json"):
        return 3
    return 4 if is_head(key) else 2


def sha256_in(key: str) -> str | None:
    """The hash that the key of a content-addressed object holds."""
    if not key.endswith((".jsonl", ".bin")) or "/source/" in key:
        return None
    return key.rsplit("/", 1)[1].partition(".")[0]


def is_head(key: str) -> bool:
    return key.startswith(keys.CONVERSATIONS) and key.split("/")[3:4] == ["head"]


def damaged(what: str, problem: str) -> MempersistError:
    return MempersistError(Code.PERMANENT_PARSER, f"archive file: {what} {problem}; nothing was restored from it")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
