"""Reading conversations: pages for people and tools, whole graphs for the index."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from mempersist.archive import codec, keys, load
from mempersist.archive.model import Branch, JsonObject, Manifest, Node
from mempersist.catalog.fold import StoredManifest
from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError, not_found
from mempersist.ports import AccountId, ObjectNotFound, Ports, Row, StorageError

# Lines closer together than this are fetched by one range read.
_COALESCE_GAP_BYTES = 64 * 1024
_MAX_RANGE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ConversationView:
    """A conversation at one revision; namespace, title and tags are always the live ones."""

    id: str
    title: str
    source_type: str
    source_id: str | None
    namespace: str
    tags: tuple[str, ...]
    revision_id: str
    current_source_node_id: str | None
    created_at: str | None
    updated_at: str
    anomalies: tuple[str, ...]
    metadata: JsonObject
    message_count: int


@dataclass(frozen=True, slots=True)
class MessageView:
    """``offset`` is the message's place in the listing it came from."""

    offset: int
    node: Node


@dataclass(frozen=True, slots=True)
class Page:
    conversation: ConversationView
    messages: tuple[MessageView, ...]
    next_offset: int | None
    total: int


@dataclass(frozen=True, slots=True)
class LoadedConversation:
    """A conversation's current revision with every node in order; ``active`` is root to current node.

    :param places: node id to where its line lies, ``segment:offset``; another place means that it was written again.
    """

    view: ConversationView
    nodes: tuple[Node, ...]
    active: tuple[str, ...]
    places: Mapping[str, str]
    head_seq: int


async def read_page(
    ports: Ports,
    account: AccountId,
    conversation_id: str,
    *,
    offset: int = 0,
    limit: int = 20,
    branch: Branch = "active",
    revision_id: str | None = None,
    max_bytes: int | None = None,
) -> Page:
    """Messages ``offset`` .. ``offset + limit`` of a revision, the current one unless named.

    ``active`` counts the messages a reader is shown; ``all`` counts every node.

    :param max_bytes: end the page before the stored lines are more than this together, though never before its first.
    :raises MempersistError: NOT_FOUND; CANONICAL_STORAGE if an object is missing, damaged or out of reach.
    """
    row = await _conversation_row(ports, account, conversation_id)
    stored = await _stored(ports, account, row, revision_id)
    manifest = stored.manifest
    view = await _view(ports, account, row, manifest)
    total = manifest.message_count if branch == "active" else manifest.node_count
    expected = max(0, min(limit, total - offset))
    places = await _places(ports, account, manifest, branch, offset, limit)
    if len(places) != expected and await _is_beginning(ports, account, row, manifest):
        places = await _places(ports, account, manifest, branch, offset, expected, at_revision=row["revision_id"])
    if len(places) == expected:
        nodes = await _read_lines(ports, conversation_id, _within(places, max_bytes))
    else:  # an earlier revision, or one that was overtaken just now: its rows are not in the catalog
        nodes = (await _whole(ports, stored, branch))[offset : offset + limit]
    messages = tuple(MessageView(offset + index, node) for index, node in enumerate(nodes))
    following = offset + len(messages)
    return Page(view, messages, following if messages and following < total else None, total)


def _within(places: Sequence[Row], max_bytes: int | None) -> Sequence[Row]:
    """The leading ``places`` whose lines have ``max_bytes`` together; the first one in any case."""
    if max_bytes is None:
        return places
    used = accumulate(row["byte_length"] for row in places)
    return places[: max(1, sum(1 for total in used if total <= max_bytes))]


async def _is_beginning(ports: Ports, account: AccountId, row: Row, manifest: Manifest) -> bool:
    """Whether the conversation's revision is the manifest's with messages appended and nothing else, so that the rows
    of the one are the first rows of the other."""
    later = await ports.catalog.query(
        "SELECT c.manifest_key, (SELECT count(*) FROM revisions AS o WHERE o.conversation_id = c.conversation_id"
        " AND o.first_seq > p.first_seq AND o.operation <> 'append') AS others FROM revisions AS c"
        " CROSS JOIN revisions AS p ON p.conversation_id = c.conversation_id AND p.revision_id = ?"
        " WHERE c.account_id = ? AND c.conversation_id = ? AND c.revision_id = ? AND c.first_seq > p.first_seq",
        (manifest.revision_id, account, manifest.conversation_id, row["revision_id"]),
    )
    if not later or later[0]["others"]:
        return False
    try:
        current = (await load.manifest(ports.objects, later[0]["manifest_key"])).manifest
    except (ObjectNotFound, StorageError, codec.UnreadableObject):
        return False
    # After a restore, or when one of them was compacted, the one does not begin with the segments of the other.
    return current.segments[: len(manifest.segments)] == manifest.segments


async def _places(
    ports: Ports,
    account: AccountId,
    manifest: Manifest,
    branch: Branch,
    offset: int,
    limit: int,
    *,
    at_revision: str | None = None,
) -> Sequence[Row]:
    """Where the page's lines lie, as long as the catalog still stands at the revision, the manifest's unless named."""
    place = "sequence" if branch == "active" else "ordinal"
    return await ports.catalog.query(
        f"SELECT m.segment_sha256, m.byte_offset, m.byte_length FROM messages AS m CROSS JOIN conversations AS c"
        " ON c.conversation_id = m.conversation_id AND c.revision_id = ?"
        f" WHERE m.account_id = ? AND m.conversation_id = ? AND m.{place} >= ? AND m.{place} < ? ORDER BY m.{place}",
        (at_revision or manifest.revision_id, account, manifest.conversation_id, offset, offset + limit),
    )


async def read_nodes(
    ports: Ports, account: AccountId, conversation_id: str, source_node_ids: Sequence[str]
) -> tuple[Node, ...]:
    """The named nodes of the current revision, in the order named; ids that it does not have are left out.

    :raises MempersistError: CANONICAL_STORAGE
    """
    rows = await ports.catalog.query(
        "SELECT m.segment_sha256, m.byte_offset, m.byte_length FROM json_each(?) AS wanted"
        " CROSS JOIN messages AS m ON m.conversation_id = ? AND m.source_node_id = wanted.value"
        " WHERE m.account_id = ? ORDER BY wanted.key",
        (json.dumps(list(source_node_ids)), conversation_id, account),
    )
    return await _read_lines(ports, conversation_id, rows)


async def load_current(ports: Ports, account: AccountId, conversation_id: str) -> LoadedConversation | None:
    """The whole current revision, or None if it is missing, deleted or another account's.

    :raises MempersistError: CANONICAL_STORAGE
    """
    try:
        row = await _conversation_row(ports, account, conversation_id)
    except MempersistError:
        return None
    stored = await _stored(ports, account, row, None)
    view = await _view(ports, account, row, stored.manifest)
    try:
        loaded = await load.revision(ports.objects, stored)
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise _unreadable(error) from error
    places = {item.node.source_node_id: place(item.sha256, item.offset) for item in loaded.placements}
    return LoadedConversation(view, loaded.nodes, loaded.active, places, row["head_seq"])


def place(segment_sha256: str, byte_offset: int) -> str:
    """Where a node's line lies, in short."""
    return f"{segment_sha256[:16]}:{byte_offset}"


# ------------------------------------------------------------------ parts


async def _conversation_row(ports: Ports, account: AccountId, conversation_id: str) -> Row:
    rows = await ports.catalog.query(
        "SELECT conversation_id, title, source_type, source_id, namespace, revision_id, created_at, updated_at,"
        " head_seq FROM conversations WHERE account_id = ? AND conversation_id = ? AND deleted_at IS NULL",
        (account, conversation_id),
    )
    if not rows:
        raise not_found("conversation")
    return rows[0]


async def _stored(ports: Ports, account: AccountId, row: Row, revision_id: str | None) -> StoredManifest:
    rows = await ports.catalog.query(
        "SELECT manifest_key FROM revisions WHERE account_id = ? AND conversation_id = ? AND revision_id = ?",
        (account, row["conversation_id"], revision_id or row["revision_id"]),
    )
    if not rows:
        raise not_found("conversation" if revision_id is None else "revision")
    try:
        return await load.manifest(ports.objects, rows[0]["manifest_key"])
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise _unreadable(error) from error


async def _view(ports: Ports, account: AccountId, row: Row, manifest: Manifest) -> ConversationView:
    tags = await ports.catalog.query(
        "SELECT tag FROM conversation_tags WHERE account_id = ? AND conversation_id = ? ORDER BY position",
        (account, row["conversation_id"]),
    )
    return ConversationView(
        id=row["conversation_id"],
        title=row["title"],
        source_type=row["source_type"],
        source_id=row["source_id"],
        namespace=row["namespace"],
        tags=tuple(tag["tag"] for tag in tags),
        revision_id=manifest.revision_id,
        current_source_node_id=manifest.current_source_node_id,
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        anomalies=manifest.anomalies,
        metadata=manifest.metadata,
        message_count=manifest.message_count,
    )


async def _whole(ports: Ports, stored: StoredManifest, branch: Branch) -> tuple[Node, ...]:
    try:
        loaded = await load.revision(ports.objects, stored)
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise _unreadable(error) from error
    if branch == "all":
        return loaded.nodes
    by_id = {node.source_node_id: node for node in loaded.nodes}
    return tuple(by_id[node_id] for node_id in loaded.active if by_id[node_id].is_message)


async def _read_lines(ports: Ports, conversation_id: str, rows: Sequence[Row]) -> tuple[Node, ...]:
    """The nodes whose lines ``rows`` locate, in the order of ``rows``, by as few range reads as is sensible."""
    located = sorted({(row["segment_sha256"], row["byte_offset"], row["byte_length"]) for row in rows})
    spans: list[tuple[str, int, int]] = []
    for sha256, start, length in located:
        end = start + length
        if spans:
            last_sha256, last_start, last_end = spans[-1]
            if (
                last_sha256 == sha256
                and start - last_end <= _COALESCE_GAP_BYTES
                and end - last_start <= _MAX_RANGE_BYTES
            ):
                spans[-1] = (sha256, last_start, max(last_end, end))
                continue
        spans.append((sha256, start, end))
    try:
        blobs = await gather(
            ports.objects.get(keys.segment(conversation_id, sha256), offset=start, length=end - start)
            for sha256, start, end in spans
        )
        lines: dict[tuple[str, int], Node] = {}
        for sha256, start, length in located:
            for (span_sha256, span_start, span_end), data in zip(spans, blobs, strict=True):
                if span_sha256 == sha256 and span_start <= start < span_end:
                    lines[sha256, start] = codec.decode_node(data[start - span_start : start - span_start + length])
                    break
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise _unreadable(error) from error
    return tuple(lines[row["segment_sha256"], row["byte_offset"]] for row in rows)


def _unreadable(error: Exception) -> MempersistError:
    return MempersistError(
        Code.CANONICAL_STORAGE,
        f"a canonical object could not be read ({type(error).__name__}); the runbook for missing objects says how to"
        " restore it",
        status=500 if isinstance(error, codec.UnreadableObject) else None,
    )
