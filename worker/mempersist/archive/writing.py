"""What intentional writes share: their checks, their idempotency keys, and the commit at a base revision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from mempersist import canonical, limits, timestamps
from mempersist.archive import codec, load, requests
from mempersist.archive.commit import Draft, commit, index_job_id, refold
from mempersist.archive.model import HeadEntry, Node
from mempersist.archive.requests import Request
from mempersist.catalog.fold import StoredManifest
from mempersist.errors import Code, MempersistError, not_found, validation
from mempersist.ports import AccountId, CatalogError, ObjectNotFound, Ports, Row, StorageError

MAX_RACES: Final = 5


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be written. ``timestamp`` is any ISO 8601 time; none is ever invented for it."""

    role: str
    content: str
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A durable write.

    :param first_offset: place of the first message written on the active branch.
    :param message_count: how many messages the call wrote.
    :param index_job_id: the job that will index it; ``index_error`` says why it is not queued yet, if it is not.
    :param replayed: what was asked for stands already, so this call wrote nothing.
    :param tags: the live tags after a change of tags; empty for other writes.
    """

    conversation_id: str
    revision_id: str
    previous_revision_id: str | None
    first_offset: int
    message_count: int
    index_job_id: str | None
    index_queued: bool
    index_error: str | None
    replayed: bool = False
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a conversation stands: its row, the key of its manifest among it, and its live tags."""

    row: Row
    tags: tuple[str, ...]

    def next_entry(self, request: Request, now: str, *, revision_id: str) -> HeadEntry:
        """The head entry after the current one; everything that ``request`` does not name stays as it is."""
        row = self.row
        moved = revision_id != row["revision_id"]
        return HeadEntry(
            conversation_id=row["conversation_id"],
            seq=row["head_seq"] + 1,
            operation=request.operation,
            account_id=AccountId(row["account_id"]),
            namespace=row["namespace"],
            title=row["title"],
            tags=self.tags,
            revision_id=revision_id,
            source_type=row["source_type"],
            source_id=row["source_id"],
            created_at=row["created_at"],
            updated_at=max(now, row["updated_at"]) if moved else row["updated_at"],
            at=now,
            previous_hash=row["head_hash"],
            idempotency_key=request.key,
            request_hash=request.hash,
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A change that is ready to be committed, and the messages it brings to the active branch."""

    draft: Draft
    first_offset: int
    message_count: int


Prepare = Callable[[Standing, str], Awaitable[Prepared]]
"""Makes the change of a conversation as it stands, at a time."""


async def change(
    ports: Ports,
    account: AccountId,
    request: Request,
    conversation_id: str,
    base_revision_id: str,
    prepare: Prepare,
    *,
    repeated: Callable[[Standing], Awaitable[Written | None]] | None = None,
) -> Written:
    """Commit what ``prepare`` makes of the conversation, as long as ``base_revision_id`` is its current revision.

    A change that changes nothing is written only if its key has to be remembered. A writer that comes first without
    touching the revision, such as a change of tags, is no conflict: the change is prepared again behind it.

    :param repeated: tells, when the base is not current, whether an earlier call did exactly this.
    :raises MempersistError: NOT_FOUND; IMPORT_CONFLICT with the current revision; CANONICAL_STORAGE;
        RETRYABLE_INFRASTRUCTURE
    """
    for _ in range(MAX_RACES):
        done = await replayed(ports, account, request)
        if done is not None:
            return done
        standing = await standing_of(ports, account, conversation_id)
        if standing.row["revision_id"] != base_revision_id:
            if await load.head_entry(ports.objects, conversation_id, standing.row["head_seq"] + 1):
                await refold(ports, account, conversation_id)  # the catalog had missed an entry
                continue
            done = await repeated(standing) if repeated else None
            if done is not None:
                return done
            raise _stale(standing.row["revision_id"])
        try:
            prepared = await prepare(standing, timestamps.from_ms(ports.clock.now_ms()))
        except MempersistError as error:
            if error.code is Code.CANONICAL_STORAGE:
                await standing_of(ports, account, conversation_id)  # deleted meanwhile: then that is told, no damage
            raise
        entry = prepared.draft.entry
        if request.key is None and (entry.revision_id, entry.tags) == (base_revision_id, standing.tags):
            return unchanged(ports, standing, base_revision_id, prepared.message_count)
        written = await write(ports, prepared, base_revision_id)
        if written is not None:
            return written
        await refold(ports, account, conversation_id)
    raise contended()


def unchanged(ports: Ports, standing: Standing, previous_revision_id: str, message_count: int) -> Written:
    """What a call answers that has nothing to do, the current revision being what it asks for."""
    row = standing.row
    return Written(
        conversation_id=row["conversation_id"],
        revision_id=row["revision_id"],
        previous_revision_id=previous_revision_id,
        first_offset=0,
        message_count=message_count,
        index_job_id=index_job_id(ports, row["conversation_id"]),
        index_queued=True,
        index_error=None,
        replayed=True,
        tags=standing.tags,
    )


async def write(ports: Ports, prepared: Prepared, previous_revision_id: str | None) -> Written | None:
    """Commit, or None when another writer's entry came first.

    :raises MempersistError: CANONICAL_STORAGE; RETRYABLE_INFRASTRUCTURE
    """
    entry = prepared.draft.entry
    try:
        result = await commit(ports, entry.account_id, [prepared.draft])
    except CatalogError as error:
        raise MempersistError(
            Code.RETRYABLE_INFRASTRUCTURE, "the catalog is out of reach; nothing was written, try again"
        ) from error
    if result.conflicts:
        return None
    problem = None
    if not result.projected:
        problem = "the catalog did not take the change; it will be repeated by itself"
    elif not result.queued:
        problem = "the index queue did not take the job; it will be sent again by itself"
    return Written(
        conversation_id=entry.conversation_id,
        revision_id=entry.revision_id or "",
        previous_revision_id=previous_revision_id,
        first_offset=prepared.first_offset,
        message_count=prepared.message_count,
        index_job_id=result.index_jobs[entry.conversation_id] if result.projected else None,
        index_queued=problem is None,
        index_error=problem,
        tags=entry.tags,
    )


async def replayed(ports: Ports, account: AccountId, request: Request) -> Written | None:
    """What the earlier call with this key wrote. :raises MempersistError: IMPORT_CONFLICT for another request."""
    if request.key is None:
        return None
    rows = await ports.catalog.query(
        "SELECT request_hash, conversation_id, head_seq FROM idempotency_keys"
        " WHERE account_id = ? AND idempotency_key = ?",
        (account, request.key),
    )
    if not rows:
        await requests.require_unused(ports, account, request)
        return None
    if rows[0]["request_hash"] != request.hash:
        raise requests.key_conflict()
    conversation_id = rows[0]["conversation_id"]
    entry = await _entry_at(ports, conversation_id, rows[0]["head_seq"])
    before = await _entry_at(ports, conversation_id, entry.seq - 1) if entry.operation != "store" else None
    count = await _message_count(ports, account, entry) if entry.operation != "tags" else 0
    first = await _message_count(ports, account, before) if before and entry.operation == "append" else 0
    return Written(
        conversation_id=conversation_id,
        revision_id=entry.revision_id or "",
        previous_revision_id=before.revision_id if before else None,
        first_offset=first,
        message_count=count - first,
        index_job_id=index_job_id(ports, conversation_id),
        index_queued=True,
        index_error=None,
        replayed=True,
        tags=entry.tags,
    )


async def row_of(ports: Ports, account: AccountId, conversation_id: str) -> Row | None:
    """The conversation's row with its manifest's key; a deleted one's too."""
    rows = await ports.catalog.query(
        "SELECT c.conversation_id, c.account_id, c.namespace, c.title, c.source_type, c.source_id, c.created_at,"
        " c.updated_at, c.head_seq, c.head_hash, c.revision_id, c.deleted_at, r.manifest_key FROM conversations AS c"
        " LEFT JOIN revisions AS r ON r.conversation_id = c.conversation_id AND r.revision_id = c.revision_id"
        " WHERE c.account_id = ? AND c.conversation_id = ?",
        (account, conversation_id),
    )
    return rows[0] if rows else None


async def standing_of(ports: Ports, account: AccountId, conversation_id: str) -> Standing:
    """:raises MempersistError: NOT_FOUND for a missing, deleted or foreign conversation."""
    row = await row_of(ports, account, conversation_id)
    if row is None or row["deleted_at"] is not None:
        raise not_found("conversation")
    tags = await ports.catalog.query(
        "SELECT tag FROM conversation_tags WHERE account_id = ? AND conversation_id = ? ORDER BY position",
        (account, conversation_id),
    )
    return Standing(row, tuple(tag["tag"] for tag in tags))


async def manifest_key(ports: Ports, account: AccountId, conversation_id: str, revision_id: str) -> str:
    """Where a revision's manifest is. :raises MempersistError: NOT_FOUND"""
    rows = await ports.catalog.query(
        "SELECT manifest_key FROM revisions WHERE account_id = ? AND conversation_id = ? AND revision_id = ?",
        (account, conversation_id, revision_id),
    )
    if not rows:
        raise not_found("revision")
    return str(rows[0]["manifest_key"])


async def revision(ports: Ports, account: AccountId, conversation_id: str, revision_id: str) -> StoredManifest:
    """:raises MempersistError: NOT_FOUND; CANONICAL_STORAGE"""
    return await manifest(ports, await manifest_key(ports, account, conversation_id, revision_id))


async def manifest(ports: Ports, key: str) -> StoredManifest:
    """:raises MempersistError: CANONICAL_STORAGE"""
    try:
        return await load.manifest(ports.objects, key)
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise unreadable(error) from error


def unreadable(error: Exception) -> MempersistError:
    return MempersistError(
        Code.CANONICAL_STORAGE, f"the revision could not be read ({type(error).__name__}); nothing changed"
    )


def contended() -> MempersistError:
    return MempersistError(
        Code.RETRYABLE_INFRASTRUCTURE, "the conversation is being written elsewhere; nothing was written, try again"
    )


# ------------------------------------------------------------------ checks


def checked(messages: Sequence[NewMessage], most: int) -> tuple[NewMessage, ...]:
    """The messages in their stored form. :raises MempersistError: VALIDATION naming the field and its bound."""
    if not 1 <= len(messages) <= most:
        raise validation("messages", f"has {len(messages)} items; 1 to {most} are allowed")
    result = []
    for index, message in enumerate(messages):
        field = f"messages[{index}]"
        role = message.role.strip()
        if not 1 <= len(role) <= limits.MAX_ROLE_CHARS:
            raise validation(f"{field}.role", f"must have 1 to {limits.MAX_ROLE_CHARS} characters")
        if len(message.content) > limits.MAX_MESSAGE_CONTENT_CHARS:
            raise validation(
                f"{field}.content",
                f"has {len(message.content)} characters; at most {limits.MAX_MESSAGE_CONTENT_CHARS} are allowed,"
                " split it into several messages",
            )
        result.append(NewMessage(role, message.content, timestamp(message.timestamp, f"{field}.timestamp")))
    if not any(message.content.strip() for message in result):
        raise validation("messages", "hold no text at all; there is nothing to remember")
    return tuple(result)


def timestamp(value: str | None, field: str) -> str | None:
    if value is None:
        return None
    try:
        return timestamps.normalise(value)
    except (ValueError, OverflowError):
        raise validation(field, "must be an ISO 8601 time such as 2026-05-01T12:00:00Z") from None


# ------------------------------------------------------------------ nodes


def transcript(messages: Sequence[NewMessage]) -> list[Node]:
    """The nodes of a whole conversation. Equal messages at equal places are equal nodes, whoever writes them when."""
    return chain(None, [f"mcp-{index}-{_mark(message)}" for index, message in enumerate(messages)], messages)


def chain(parent: str | None, node_ids: Sequence[str], messages: Sequence[NewMessage]) -> list[Node]:
    """Nodes of ``messages`` one behind the other, the first behind ``parent``."""
    nodes = []
    for node_id, message in zip(node_ids, messages, strict=True):
        nodes.append(Node(node_id, parent, message.role, message.content, created_at=message.timestamp))
        parent = node_id
    return nodes


def material(tags: Sequence[str], messages: Sequence[NewMessage]) -> str:
    """What tells one request from another, as text."""
    return canonical.dumps([list(tags), [[item.role, item.content, item.timestamp] for item in messages]]).decode()


def same_uuid(*parts: str | None) -> str:
    """A UUID that is the same for the same parts, so that a repeated request writes the same objects."""
    digest = canonical.identity("uuid", *parts)
    # Version 8 is the one whose bits are the application's own (RFC 9562).
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"


def _mark(message: NewMessage) -> str:
    return canonical.identity("mcp-node", message.role, message.timestamp, message.content)[:32]


# ------------------------------------------------------------------ parts


async def _entry_at(ports: Ports, conversation_id: str, seq: int) -> HeadEntry:
    found = await load.head_entry(ports.objects, conversation_id, seq)
    if found is None:
        raise MempersistError(Code.CANONICAL_STORAGE, f"head entry {seq} is missing; verify tells more", status=500)
    return found[0]


async def _message_count(ports: Ports, account: AccountId, entry: HeadEntry) -> int:
    stored = await revision(ports, account, entry.conversation_id, entry.revision_id or "")
    return stored.manifest.message_count


def _stale(current: str) -> MempersistError:
    return MempersistError(
        Code.IMPORT_CONFLICT,
        f"base_revision_id: is not the current revision, which is {current}; read what changed and base the write on"
        " that",
        details={"current_revision_id": current},
    )
