"""What a backup is made of.

::

    mempersist-backup.json       the format
    blobs/<2 hex>/<sha256>       the bytes of objects, by their hash: what two snapshots share is there once
    lists/<sha256>.jsonl         parts of a snapshot's list, one line an object: {"key", "sha256", "size"}
    snapshots/<id>.json          a snapshot: when, how much, its parts in order, the catalog's digest, a signature

A snapshot's id begins with its time, so the names sort by age. Lists are cut by conversation, so a day's snapshot
writes only the parts in which something changed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from mempersist import canonical
from mempersist.archive import keys
from mempersist.errors import Code, MempersistError
from mempersist_ops.archive_file.layout import ObjectLine, in_order

FORMAT: Final = "mempersist.backup.v1"
FORMAT_KEY: Final = "mempersist-backup.json"
FORMAT_DATA: Final = canonical.dumps({"format": FORMAT})
BLOBS: Final = "blobs/"
LISTS: Final = "lists/"
SNAPSHOTS: Final = "snapshots/"
_SNAPSHOT_FORMAT: Final = "mempersist.snapshot.v1"
_GROUP_DIGITS: Final = 2


def blob(sha256: str) -> str:
    return f"{BLOBS}{sha256[:2]}/{sha256}"


def list_part(sha256: str) -> str:
    return f"{LISTS}{sha256}.jsonl"


def snapshot_key(snapshot_id: str) -> str:
    return f"{SNAPSHOTS}{snapshot_id}.json"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """An archive as it was. ``catalog_digest`` is that of the catalog that exactly these objects fold to.

    :param new_objects: copied by this snapshot; the others were there. :param new_bytes: the same in bytes.
    :param signature: HMAC-SHA256 over all the rest, in hex, under the key with ``key_id``.
    """

    id: str
    created_at: str
    account: str
    objects: int
    size_bytes: int
    parts: tuple[str, ...]
    catalog_digest: str
    new_objects: int
    new_bytes: int
    key_id: str = ""
    signature: str = ""

    def _signed_part(self) -> bytes:
        return canonical.dumps(
            {
                "format": _SNAPSHOT_FORMAT,
                "id": self.id,
                "createdAt": self.created_at,
                "account": self.account,
                "objects": self.objects,
                "sizeBytes": self.size_bytes,
                "parts": list(self.parts),
                "catalogDigest": self.catalog_digest,
                "newObjects": self.new_objects,
                "newBytes": self.new_bytes,
                "keyId": self.key_id,
            }
        )

    def signed(self, key: bytes) -> Snapshot:
        named = replace(self, key_id=key_id_of(key))
        return replace(named, signature=named._mac(key))

    def is_signed_by(self, key: bytes) -> bool:
        return hmac.compare_digest(self.signature, self._mac(key))

    def _mac(self, key: bytes) -> str:
        return hmac.new(key, self._signed_part(), hashlib.sha256).hexdigest()

    def encode(self) -> bytes:
        value = canonical.loads(self._signed_part())
        return canonical.dumps({**value, "signature": self.signature})


def decode_snapshot(data: bytes) -> Snapshot:
    """:raises ValueError: for what is no snapshot, such as one that was cut."""
    try:
        value: Any = canonical.loads(data)
        if value["format"] != _SNAPSHOT_FORMAT:
            raise ValueError("of another format")
        return Snapshot(
            str(value["id"]),
            str(value["createdAt"]),
            str(value["account"]),
            int(value["objects"]),
            int(value["sizeBytes"]),
            tuple(map(str, value["parts"])),
            str(value["catalogDigest"]),
            int(value["newObjects"]),
            int(value["newBytes"]),
            str(value["keyId"]),
            str(value["signature"]),
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise ValueError("not a snapshot") from error


def key_id_of(key: bytes) -> str:
    """Names a key without telling it."""
    return hashlib.sha256(b"mempersist-backup-key" + key).hexdigest()[:16]


def cut(lines: Iterable[ObjectLine]) -> Iterator[bytes]:
    """The parts of a list, in an order in which nothing refers to what is in a later part."""
    by_key = {line.key: line for line in lines}
    held: list[bytes] = []
    group = ""
    for key in in_order(by_key):
        if _group(key) != group and held:
            yield b"".join(held)
            held = []
        group = _group(key)
        held.append(by_key[key].encode())
    if held:
        yield b"".join(held)


def _group(key: str) -> str:
    """Lines of one group are in one part: a kind of object, and a few digits of the conversation's id."""
    if key.startswith(keys.CONVERSATIONS):
        conversation, kind = key[len(keys.CONVERSATIONS) :].split("/")[:2]
        return f"{kind}/{conversation[:_GROUP_DIGITS]}"
    return "/".join(key.split("/")[:2])


def damaged(what: str, problem: str) -> MempersistError:
    return MempersistError(Code.CANONICAL_STORAGE, f"backup: {what} {problem}")


def newest(snapshot_ids: Sequence[str]) -> str | None:
    return max(snapshot_ids, default=None)
