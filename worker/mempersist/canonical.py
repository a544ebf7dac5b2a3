"""Canonical JSON and the identities derived from it.

Canonical JSON has sorted keys, no spaces and UTF-8 bytes; a lone surrogate, which UTF-8 cannot hold, is written as
its JSON escape, so that it survives a round trip. An identity is the lowercase SHA-256 hex of a domain word and its
parts joined by U+001F; a missing part is the empty string.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any

_SEPARATOR = "\x1f"
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), sort_keys=True, allow_nan=False)


def dumps(value: Any) -> bytes:
    """Canonical JSON bytes of ``value``.

    :raises ValueError: for NaN and infinities, which JSON does not have.
    :raises RecursionError: for values nested deeper than the interpreter allows.
    """
    # Inside a JSON string, Python's \udXXX escape of a lone surrogate is also JSON's.
    return _encoder.encode(value).encode("utf-8", "backslashreplace")


def loads(data: bytes | str) -> Any:
    """Parse JSON that :func:`dumps` wrote."""
    return json.loads(data)


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def identity(domain: str, *parts: str | None) -> str:
    """SHA-256 hex over ``domain`` and ``parts`` joined by U+001F."""
    joined = _SEPARATOR.join((domain, *(part or "" for part in parts)))
    return sha256_hex(joined.encode("utf-8", "backslashreplace"))


def conversation_id(account: str, source_type: str, source_key: str) -> str:
    """Id of an imported conversation: the same source conversation in two accounts is two conversations."""
    return identity("conversation", account, source_type, source_key)


def node_id(conversation: str, source_node_id: str) -> str:
    return identity("message-node", conversation, source_node_id)


def segment_id(segment_sha256: str) -> str:
    return identity("segment", segment_sha256)


def content_hash(nodes_digest: str, current_source_node_id: str | None, metadata: Any) -> str:
    """What a revision says, whatever segments it is stored in, so that compaction changes no id."""
    return identity("revision-content", nodes_digest, current_source_node_id, dumps(metadata).decode("utf-8"))


def revision_id(conversation: str, content: str) -> str:
    return identity("revision", conversation, content)


def extend_digest(previous: str, node_hashes: Iterable[str]) -> str:
    """Chain ``node_hashes`` onto a nodes digest; the digest of no nodes is the empty string."""
    digest = previous
    for node_hash in node_hashes:
        digest = identity("nodes", digest, node_hash)
    return digest


def chunk_id(
    strategy: str, generation: str, conversation: str, branch: str, ranges: Iterable[tuple[str, int, int]]
) -> str:
    """Id of a chunk, from what it covers.

    The revision is not a part: an append leaves the ids of all earlier chunks, and so their vectors, as they were.
    """
    covered = "|".join(f"{node}:{start}:{end}" for node, start, end in ranges)
    return identity("chunk", strategy, generation, conversation, branch, covered)


def vector_id(generation: str, chunk: str) -> str:
    return identity("vector", generation, chunk)


def job_id(kind: str, *subject: str) -> str:
    return identity(f"{kind}-job", *subject)
