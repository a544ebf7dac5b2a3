"""What a batch still has to read, and its form inside a sealed cursor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist import sealing
from mempersist.archive.model import Branch
from mempersist.ports import AccountId
from mempersist.sealing import Keys

_KIND: Final = "batch.1"
_UUID_BYTES: Final = 16
_HASH_BYTES: Final = 32
_UUID_FLAG: Final = 1
_ALL_FLAG: Final = 2


@dataclass(frozen=True, slots=True)
class Pending:
    """The part of a request that is still to be read: ``limit`` messages from ``offset`` of a pinned revision."""

    index: int
    conversation_id: str
    revision_id: str
    offset: int
    limit: int
    branch: Branch


@dataclass(frozen=True, slots=True)
class Batch:
    """``pending`` in the order in which they are served next; ``total`` counts all requests of the first call."""

    batch_id: str
    max_bytes: int
    total: int
    pending: tuple[Pending, ...]


def seal(keys: Keys, account: AccountId, batch: Batch, now_ms: int) -> str:
    """The cursor that goes on with ``batch``. :raises MempersistError: if the server has no keys."""
    return sealing.seal(keys, _KIND, account, _packed(batch), now_ms)


def unseal(keys: Keys, account: AccountId, cursor: str, now_ms: int) -> Batch:
    """:raises MempersistError: VALIDATION ``Invalid cursor``."""
    return _unpacked(sealing.unseal(keys, _KIND, account, cursor, now_ms))


def cursor_length(pending: Sequence[Pending]) -> int:
    """Characters of a cursor that holds ``pending``; one that holds fewer is shorter."""
    return sealing.sealed_length(_UUID_BYTES + 3 + sum(len(_packed_item(item)) for item in pending))


def _packed(batch: Batch) -> bytes:
    head = bytes.fromhex(batch.batch_id.replace("-", "")) + batch.max_bytes.to_bytes(2, "big") + bytes((batch.total,))
    return head + b"".join(_packed_item(item) for item in batch.pending)


def _packed_item(item: Pending) -> bytes:
    is_uuid = "-" in item.conversation_id
    flags = _UUID_FLAG * is_uuid + _ALL_FLAG * (item.branch == "all")
    return b"".join(
        (
            bytes((item.index, flags)),
            bytes.fromhex(item.conversation_id.replace("-", "")),
            bytes.fromhex(item.revision_id),
            item.offset.to_bytes(4, "big"),
            bytes((item.limit,)),
        )
    )


def _unpacked(data: bytes) -> Batch:
    batch_id, max_bytes, total = data[:_UUID_BYTES], int.from_bytes(data[_UUID_BYTES:18], "big"), data[18]
    pending: list[Pending] = []
    place = 19
    while place < len(data):
        index, flags = data[place], data[place + 1]
        place += 2
        id_bytes = _UUID_BYTES if flags & _UUID_FLAG else _HASH_BYTES
        raw_id, revision = data[place : place + id_bytes], data[place + id_bytes : place + id_bytes + _HASH_BYTES]
        place += id_bytes + _HASH_BYTES
        offset, limit = int.from_bytes(data[place : place + 4], "big"), data[place + 4]
        place += 5
        conversation_id = _dashed(raw_id.hex()) if flags & _UUID_FLAG else raw_id.hex()
        branch: Branch = "all" if flags & _ALL_FLAG else "active"
        pending.append(Pending(index, conversation_id, revision.hex(), offset, limit, branch))
    return Batch(_dashed(batch_id.hex()), max_bytes, total, tuple(pending))


def _dashed(digits: str) -> str:
    """32 hexadecimal digits in the form of a UUID."""
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
