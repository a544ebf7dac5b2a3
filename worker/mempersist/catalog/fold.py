"""The fold: head logs, account logs and manifests become rows.

Live writes call :func:`advance` with the entry they have just committed; a rebuild calls :func:`replace` with a whole
log. Both build each row with the same functions, and every value stems from the archive, so the two cannot drift: the
property test in ``tests/test_rebuild_equals_live_catalog.py`` holds them to it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mempersist.archive.model import HeadEntry, Manifest, SegmentRef
from mempersist.archive.segments import Placement
from mempersist.catalog import bulk
from mempersist.ports import AccountId, SqlValue, Statement
from mempersist.text import utf8_safe

_CONVERSATION = (
    "conversation_id",
    "account_id",
    "namespace",
    "title",
    "source_type",
    "source_id",
    "created_at",
    "updated_at",
    "stored_at",
    "head_seq",
    "head_hash",
    "revision_id",
    "current_source_node_id",
    "node_count",
    "message_count",
    "deleted_at",
)
_REVISION = (
    "conversation_id",
    "revision_id",
    "account_id",
    "first_seq",
    "operation",
    "import_id",
    "content_hash",
    "nodes_digest",
    "manifest_key",
    "node_count",
    "segment_count",
    "created_at",
)
_TAG = ("conversation_id", "tag", "account_id", "position")
_KEY = ("account_id", "idempotency_key", "request_hash", "conversation_id", "head_seq", "revision_id")
_MESSAGE = (
    "conversation_id",
    "source_node_id",
    "account_id",
    "ordinal",
    "parent_source_node_id",
    "role",
    "sequence",
    "created_at",
    "segment_sha256",
    "byte_offset",
    "byte_length",
)
# stored_at is when the conversation came to be: a deletion ends that, and what is stored after one starts anew.
_UPSERT_CONVERSATION = (
    "ON CONFLICT (conversation_id) DO UPDATE SET "
    + ", ".join(
        f"{column} = excluded.{column}" for column in _CONVERSATION if column not in {_CONVERSATION[0], "stored_at"}
    )
    + ", stored_at = CASE WHEN excluded.deleted_at IS NOT NULL OR conversations.deleted_at IS NOT NULL"
    " THEN excluded.stored_at ELSE conversations.stored_at END"
)
# Two writes at the same moment can commit one key to two conversations. The smaller id has the row, so that a rebuild,
# which sees them in another order, comes to the same.
_FIRST_HAS_THE_KEY = (
    "ON CONFLICT (account_id, idempotency_key) DO UPDATE SET "
    + ", ".join(f"{column} = excluded.{column}" for column in _KEY[2:])
    + " WHERE excluded.conversation_id < idempotency_keys.conversation_id"
)


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest and the key it was read from or written to."""

    manifest: Manifest
    key: str


@dataclass(frozen=True, slots=True)
class MessageRow:
    """A node's place: ``ordinal`` among all, ``sequence`` among the messages shown on the active branch."""

    placement: Placement
    ordinal: int
    sequence: int | None


@dataclass(frozen=True, slots=True)
class Change:
    """One committed head entry with what it needs to become rows.

    :param messages: rows to add, or with ``replace_messages`` all rows of the conversation.
    """

    entry: HeadEntry
    entry_hash: str
    stored: StoredManifest | None
    messages: Sequence[MessageRow] = ()
    replace_messages: bool = False


def message_rows(placements: Sequence[Placement], active: Sequence[str]) -> tuple[MessageRow, ...]:
    """Rows of a whole revision: ``placements`` in the order of its nodes, ``active`` from root to current node."""
    shown = {placement.node.source_node_id: placement.node.is_message for placement in placements}
    sequence = {node_id: index for index, node_id in enumerate(node_id for node_id in active if shown[node_id])}
    return tuple(
        MessageRow(placement, ordinal, sequence.get(placement.node.source_node_id))
        for ordinal, placement in enumerate(placements)
    )


# ------------------------------------------------------------------ rows


def _conversation_row(entry: HeadEntry, entry_hash: str, manifest: Manifest | None, stored_at: str) -> list[SqlValue]:
    return [
        entry.conversation_id,
        entry.account_id,
        entry.namespace,
        utf8_safe(entry.title),
        entry.source_type,
        entry.source_id,
        entry.created_at,
        entry.updated_at,
        stored_at,
        entry.seq,
        entry_hash,
        entry.revision_id,
        manifest.current_source_node_id if manifest else None,
        manifest.node_count if manifest else 0,
        manifest.message_count if manifest else 0,
        entry.at if entry.deleted else None,
    ]


def _revision_row(first: HeadEntry, stored: StoredManifest) -> list[SqlValue]:
    manifest = stored.manifest
    return [
        manifest.conversation_id,
        manifest.revision_id,
        first.account_id,
        first.seq,
        first.operation,
        first.import_id,
        manifest.content_hash,
        manifest.nodes_digest,
        stored.key,
        manifest.node_count,
        len(manifest.segments),
        first.at,
    ]


def _tag_rows(entry: HeadEntry) -> list[list[SqlValue]]:
    return [[entry.conversation_id, tag, entry.account_id, position] for position, tag in enumerate(entry.tags)]


def _key_rows(entries: Iterable[HeadEntry]) -> list[list[SqlValue]]:
    return [
        [
            entry.account_id,
            entry.idempotency_key,
            entry.request_hash,
            entry.conversation_id,
            entry.seq,
            entry.revision_id,
        ]
        for entry in entries
        if entry.idempotency_key is not None
    ]


def _message_row(entry: HeadEntry, row: MessageRow) -> list[SqlValue]:
    node = row.placement.node
    return [
        entry.conversation_id,
        node.source_node_id,
        entry.account_id,
        row.ordinal,
        node.parent_source_node_id,
        node.role,
        row.sequence,
        node.created_at,
        row.placement.sha256,
        row.placement.offset,
        row.placement.length,
    ]


# ------------------------------------------------------------------ statements


def advance(changes: Sequence[Change]) -> list[Statement]:
    """Statements that move the catalog over ``changes``, each the next head entry of another conversation.

    The first one makes the whole batch fail unless every conversation stands exactly one entry behind; the caller then
    folds that conversation again from the archive.
    """
    if not changes:
        return []
    deleted = [change.entry.conversation_id for change in changes if change.entry.deleted]
    replaced = [change.entry.conversation_id for change in changes if change.replace_messages or change.entry.deleted]
    return [
        *_expect_previous(change.entry for change in changes),
        *bulk.insert(
            "conversations",
            _CONVERSATION,
            (
                _conversation_row(
                    change.entry,
                    change.entry_hash,
                    change.stored.manifest if change.stored else None,
                    change.entry.at,
                )
                for change in changes
            ),
            on_conflict=_UPSERT_CONVERSATION,
        ),
        *bulk.delete("revisions", "conversation_id", deleted),
        *bulk.delete("idempotency_keys", "conversation_id", deleted),
        *bulk.insert(
            "revisions",
            _REVISION,
            (_revision_row(change.entry, change.stored) for change in changes if change.stored),
            on_conflict="ON CONFLICT (conversation_id, revision_id) DO NOTHING",
        ),
        *bulk.delete(
            "conversation_tags",
            "conversation_id",
            [change.entry.conversation_id for change in changes if change.entry.seq],
        ),
        *bulk.insert("conversation_tags", _TAG, (row for change in changes for row in _tag_rows(change.entry))),
        *bulk.insert(
            "idempotency_keys",
            _KEY,
            _key_rows(change.entry for change in changes),
            on_conflict=_FIRST_HAS_THE_KEY,
        ),
        *bulk.delete("messages", "conversation_id", replaced),
        *bulk.insert(
            "messages",
            _MESSAGE,
            (_message_row(change.entry, row) for change in changes for row in change.messages),
        ),
    ]


def _expect_previous(entries: Iterable[HeadEntry]) -> list[Statement]:
    """Statements that fail, and their batch with them, when a conversation's row is not at the entry before."""
    sql = (
        "SELECT json(CASE WHEN EXISTS (SELECT 1 FROM json_each(?) AS expected LEFT JOIN conversations AS c"
        " ON c.conversation_id = expected.value ->> 0 WHERE coalesce(c.head_seq, -1) <> expected.value ->> 1)"
        " THEN 'the catalog stands at another head entry' ELSE '0' END)"
    )
    expected = ([entry.conversation_id, entry.seq - 1] for entry in entries)
    return [Statement(sql, (parameter,)) for parameter in bulk.json_parameters(expected)]


def _expect_not_newer(head: HeadEntry) -> Statement:
    """A statement that fails, and its batch with it, when the conversation's row is past ``head``."""
    return Statement(
        "SELECT json(CASE WHEN EXISTS (SELECT 1 FROM conversations WHERE conversation_id = ? AND head_seq > ?)"
        " THEN 'the catalog is newer' ELSE '0' END)",
        (head.conversation_id, head.seq),
    )


def replace(
    log: Sequence[tuple[HeadEntry, str]],
    revisions: Mapping[str, StoredManifest],
    messages: Sequence[MessageRow],
) -> list[Statement]:
    """Statements that set one conversation's rows to what its whole log says, whatever they were.

    The first one makes the batch fail when the rows already know a newer entry than ``log`` does.

    :param log: the entries in order with their hashes; it may begin with a deletion, what came before being purged.
    :param revisions: manifests of the revisions named since the last deletion.
    :param messages: rows of the current revision; empty for a tombstone.
    """
    life = _since_last_deletion(log)
    head, head_hash = log[-1]
    stored_at = life[0].at
    conversation = head.conversation_id
    current = revisions[head.revision_id].manifest if head.revision_id is not None else None
    first_named: dict[str, HeadEntry] = {}
    for entry in life:
        if entry.revision_id is not None:
            first_named.setdefault(entry.revision_id, entry)
    on_conflict = (
        _UPSERT_CONVERSATION[: _UPSERT_CONVERSATION.rindex(", stored_at")] + ", stored_at = excluded.stored_at"
    )
    return [
        _expect_not_newer(head),
        *bulk.insert(
            "conversations",
            _CONVERSATION,
            [_conversation_row(head, head_hash, current, stored_at)],
            on_conflict=on_conflict,
        ),
        *(
            statement
            for table in ("revisions", "conversation_tags", "idempotency_keys", "messages")
            for statement in bulk.delete(table, "conversation_id", [conversation])
        ),
        *bulk.insert(
            "revisions",
            _REVISION,
            (_revision_row(first, revisions[revision]) for revision, first in first_named.items()),
        ),
        *bulk.insert("conversation_tags", _TAG, _tag_rows(head)),
        *bulk.insert(
            "idempotency_keys",
            _KEY,
            _key_rows(entry for entry in life if not entry.deleted),
            on_conflict=_FIRST_HAS_THE_KEY,
        ),
        *bulk.insert("messages", _MESSAGE, (_message_row(head, row) for row in messages)),
    ]


def with_segments(manifest: Manifest, segments: tuple[SegmentRef, ...]) -> Manifest:
    """The same revision in other segments."""
    return dataclasses.replace(manifest, segments=segments)


def move_to_segments(
    account: AccountId, head_seq: int, stored: StoredManifest, messages: Sequence[MessageRow]
) -> list[Statement]:
    """Statements that point the rows of a conversation, still at ``head_seq``, to a compacted manifest."""
    manifest = stored.manifest
    conversation = manifest.conversation_id
    located = (
        [row.placement.node.source_node_id, row.placement.sha256, row.placement.offset, row.placement.length]
        for row in messages
    )
    return [
        Statement(
            "SELECT json(CASE WHEN EXISTS (SELECT 1 FROM conversations WHERE account_id = ? AND conversation_id = ?"
            " AND head_seq = ?) THEN '0' ELSE 'the catalog stands at another head entry' END)",
            (account, conversation, head_seq),
        ),
        Statement(
            "UPDATE revisions SET manifest_key = ?, segment_count = ?"
            " WHERE account_id = ? AND conversation_id = ? AND revision_id = ?",
            (stored.key, len(manifest.segments), account, conversation, manifest.revision_id),
        ),
        *(
            Statement(
                "UPDATE messages SET segment_sha256 = moved.value ->> 1, byte_offset = moved.value ->> 2,"
                " byte_length = moved.value ->> 3 FROM json_each(?) AS moved"
                " WHERE messages.account_id = ? AND messages.conversation_id = ?"
                " AND messages.source_node_id = moved.value ->> 0",
                (parameter, account, conversation),
            )
            for parameter in bulk.json_parameters(located)
        ),
    ]


def _since_last_deletion(log: Sequence[tuple[HeadEntry, str]]) -> list[HeadEntry]:
    """The entries of the conversation's present life; for a tombstone, the tombstone alone."""
    entries = [entry for entry, _ in log]
    if entries[-1].deleted:
        return entries[-1:]
    last = max((index for index, entry in enumerate(entries) if entry.deleted), default=-1)
    return entries[last + 1 :]
