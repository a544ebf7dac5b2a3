"""What the archive holds, as values. ``codec`` turns them into bytes and back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from mempersist.ports import AccountId

JsonObject = dict[str, Any]
SourceType = Literal["chatgpt", "mcp"]
HeadOperation = Literal["import", "store", "append", "replace", "restore", "tags", "move", "copy", "delete"]
AccountOperation = Literal["create", "namespace", "profile", "delete"]
Branch = Literal["active", "all"]

OWNER = AccountId("owner")
"""The account of the bearer token."""


@dataclass(frozen=True, slots=True)
class AssetRef:
    """A file that a message points to. Its bytes, if an import held them, are found by ``asset_id``.

    :param asset_id: the pointer without its scheme, such as ``file-AbC123``.
    :param pointer: the pointer as the source wrote it.
    :param kind: ``image``, ``audio``, ``video`` or ``file``.
    """

    asset_id: str
    pointer: str
    kind: str
    name: str | None = None
    media_type: str | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """One node of a conversation graph.

    :param role: the author's role; ``none`` for a node that holds no message.
    :param kind: the source's content type; ``text`` for written messages, ``none`` without a message.
    :param text: what a person would search for and read; exact, possibly with lone surrogates.
    :param hidden: the source's interface did not show it and it holds nothing to find; kept, never indexed.
    :param raw: the node as the source wrote it; None for messages written through the service.
    """

    source_node_id: str
    parent_source_node_id: str | None
    role: str
    text: str
    kind: str = "text"
    created_at: str | None = None
    updated_at: str | None = None
    model_slug: str | None = None
    hidden: bool = False
    assets: tuple[AssetRef, ...] = ()
    raw: JsonObject | None = None

    @property
    def is_message(self) -> bool:
        """Whether this is a message that a reader is shown: not an empty root and not scaffolding."""
        return self.kind != "none" and not self.hidden


@dataclass(frozen=True, slots=True)
class SegmentRef:
    """A segment as a manifest names it. ``sha256`` is of the object's bytes; ``nodes`` counts its node lines."""

    sha256: str
    size_bytes: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """One immutable revision: its segments in order. A node in a later segment replaces the same node of an earlier.

    :param nodes_digest: chain over the node hashes in order, see ``canonical.extend_digest``.
    :param source_digest: digest of what the last import brought, so that an unchanged re-import is known; None for
        conversations that never were imported.
    :param source_updated_at: when the source last changed it, as that import said.
    :param message_count: messages that a reader of the active branch is shown.
    """

    conversation_id: str
    revision_id: str
    content_hash: str
    nodes_digest: str
    source_digest: str | None
    current_source_node_id: str | None
    node_count: int
    message_count: int
    segments: tuple[SegmentRef, ...]
    metadata: JsonObject = field(default_factory=dict)
    anomalies: tuple[str, ...] = ()
    derived_from: JsonObject | None = None
    created_at: str = ""
    source_updated_at: str | None = None


@dataclass(frozen=True, slots=True)
class HeadEntry:
    """Entry ``seq`` of a conversation's head log: the commit point of every change.

    :param at: when it was written. :param updated_at: when the conversation last changed at its source.
    :param previous_hash: SHA-256 of the bytes of the entry before; None for entry 0.
    :param import_position: where in its import the conversation stood, so that a repeated turn knows its own work.
    """

    conversation_id: str
    seq: int
    operation: HeadOperation
    account_id: AccountId
    namespace: str
    title: str
    tags: tuple[str, ...]
    revision_id: str | None
    source_type: str
    source_id: str | None
    created_at: str | None
    updated_at: str
    at: str
    previous_hash: str | None
    import_id: str | None = None
    import_position: str | None = None
    idempotency_key: str | None = None
    request_hash: str | None = None

    @property
    def deleted(self) -> bool:
        return self.operation == "delete"


@dataclass(frozen=True, slots=True)
class AccountEntry:
    """Entry ``seq`` of an account log. ``values`` holds what the operation sets."""

    account_id: AccountId
    seq: int
    operation: AccountOperation
    values: JsonObject
    at: str
    previous_hash: str | None


@dataclass(frozen=True, slots=True)
class AssetRecord:
    """Bytes of an asset that an import held. ``media_type`` is what the bytes are, not what a name claims."""

    account_id: AccountId
    asset_id: str
    sha256: str
    size_bytes: int
    media_type: str
    filename: str | None
    import_id: str


@dataclass(frozen=True, slots=True)
class SourceConversation:
    """A conversation as an import's parser hands it over.

    :param source_key: the source's id, or a hash of the whole object where it has none.
    :param nodes: sorted by ``source_node_id``, unique.
    :param metadata: the source's fields that are not taken apart elsewhere.
    """

    source_type: SourceType
    source_id: str | None
    source_key: str
    title: str
    created_at: str | None
    updated_at: str | None
    current_source_node_id: str | None
    nodes: tuple[Node, ...]
    metadata: JsonObject = field(default_factory=dict)
    anomalies: tuple[str, ...] = ()
