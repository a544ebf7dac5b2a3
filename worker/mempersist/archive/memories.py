"""Intentional writes: a new conversation, or messages behind an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mempersist import canonical, limits, names, timestamps
from mempersist.archive import accounts, codec, load, revisions
from mempersist.archive.commit import Draft, commit, index_job_id, refold
from mempersist.archive.deletion import require_purged
from mempersist.archive.model import HeadEntry, Node
from mempersist.archive.revisions import NewRevision
from mempersist.catalog.fold import StoredManifest
from mempersist.errors import Code, MempersistError, not_found, validation
from mempersist.ports import AccountId, CatalogError, ObjectNotFound, Ports, Row, StorageError
from mempersist.text import utf8_safe

_MAX_RACES = 5


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be written. ``timestamp`` is any ISO 8601 time; none is ever invented for it."""

    role: str
    content: str
    timestamp: str | None = None


@dataclass(frozen=True, slots=True)
class Written:
    """A durable write.

    :param first_offset: place of the first new message on the active branch.
    :param message_count: how many messages the call wrote.
    :param index_job_id: the job that will index it; ``index_error`` says why it is not queued yet, if it is not.
    :param replayed: an earlier call with the same idempotency key did it.
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


@dataclass(frozen=True, slots=True)
class Verification:
    """A read-back of committed messages from the object store. ``problem`` says what did not match, without text."""

    passed: bool
    checked_messages: int
    problem: str | None = None


async def store(
    ports: Ports,
    account: AccountId,
    *,
    title: str,
    namespace: str | None,
    tags: Sequence[str],
    messages: Sequence[NewMessage],
    idempotency_key: str | None = None,
) -> Written:
    """Write a new conversation: one chain of ``messages``. The first write to a namespace claims it.

    :raises MempersistError: VALIDATION; IMPORT_CONFLICT when the idempotency key stands for another request;
        CANONICAL_STORAGE when it could not be written.
    """
    title = names.title(title)
    live_tags = names.tags(tags)
    checked = _checked(messages, limits.MAX_STORE_MESSAGES)
    key = _idempotency_key(idempotency_key)
    space = names.namespace(namespace) if namespace is not None else await accounts.default_namespace(ports, account)
    request_hash = canonical.identity("store", space, title, _material(live_tags, checked)) if key else None
    conversation_id = _uuid("store", account, key) if key else ports.ids.uuid()
    nodes = _chain(None, [f"mcp-{index}-{_mark(message)}" for index, message in enumerate(checked)], checked)
    for _ in range(_MAX_RACES):
        if key is not None:
            done = await _replayed(ports, account, key, request_hash)
            if done is not None:
                return done
        await accounts.claim_namespace(ports, account, space)
        row = await _row(ports, account, conversation_id) if key else None
        if row is not None:
            await require_purged(ports, account, [conversation_id])
        now = timestamps.from_ms(ports.clock.now_ms())
        entry = HeadEntry(
            conversation_id=conversation_id,
            seq=row["head_seq"] + 1 if row else 0,
            operation="store",
            account_id=account,
            namespace=space,
            title=title,
            tags=live_tags,
            revision_id=None,
            source_type="mcp",
            source_id=None,
            created_at=now,
            updated_at=now,
            at=now,
            previous_hash=row["head_hash"] if row else None,
            idempotency_key=key,
            request_hash=request_hash,
        )
        written = await _write(ports, entry, revisions.extended(conversation_id, None, nodes, now), None)
        if written is not None:
            return written
        await refold(ports, account, conversation_id)
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the conversation is being written elsewhere; try again")


async def append(
    ports: Ports,
    account: AccountId,
    *,
    conversation_id: str,
    base_revision_id: str,
    messages: Sequence[NewMessage],
    tags: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> Written:
    """Write ``messages`` behind the current one. ``tags`` join the live ones; removed tags do not come back.

    :raises MempersistError: VALIDATION; NOT_FOUND; IMPORT_CONFLICT when ``base_revision_id`` is not the current
        revision, or the idempotency key stands for another request; CANONICAL_STORAGE.
    """
    new_tags = names.tags(tags)
    checked = _checked(messages, limits.MAX_APPEND_MESSAGES)
    key = _idempotency_key(idempotency_key)
    material = _material(new_tags, checked)
    request_hash = canonical.identity("append", conversation_id, base_revision_id, material) if key else None
    if key is not None:
        done = await _replayed(ports, account, key, request_hash)
        if done is not None:
            return done
    row = await _live_row(ports, account, conversation_id)
    if row["revision_id"] != base_revision_id and await load.head_entry(
        ports.objects, conversation_id, row["head_seq"] + 1
    ):
        await refold(ports, account, conversation_id)  # the catalog had missed an entry
        row = await _live_row(ports, account, conversation_id)
    if row["revision_id"] != base_revision_id:
        raise _stale(row["revision_id"])
    live_tags = await _live_tags(ports, account, conversation_id)
    stored = await _manifest(ports, row["manifest_key"])
    now = timestamps.from_ms(ports.clock.now_ms())
    names_of_nodes = [
        f"append-{_uuid('append', account, key, str(index)) if key else ports.ids.uuid()}"
        for index in range(len(checked))
    ]
    nodes = _chain(stored.manifest.current_source_node_id, names_of_nodes, checked)
    entry = HeadEntry(
        conversation_id=conversation_id,
        seq=row["head_seq"] + 1,
        operation="append",
        account_id=account,
        namespace=row["namespace"],
        title=row["title"],
        tags=names.tags([*live_tags, *new_tags]),
        revision_id=None,
        source_type=row["source_type"],
        source_id=row["source_id"],
        created_at=row["created_at"],
        updated_at=max(now, row["updated_at"]),
        at=now,
        previous_hash=row["head_hash"],
        idempotency_key=key,
        request_hash=request_hash,
    )
    written = await _write(ports, entry, revisions.extended(conversation_id, stored, nodes, now), stored)
    if written is not None:
        return written
    await refold(ports, account, conversation_id)
    if key is not None:
        done = await _replayed(ports, account, key, request_hash)
        if done is not None:
            return done
    raise _stale((await _live_row(ports, account, conversation_id))["revision_id"])


async def verify_written(
    ports: Ports, account: AccountId, written: Written, messages: Sequence[NewMessage]
) -> Verification:
    """Reload the committed revision from the object store, re-hash its segments and compare every intended message."""
    try:
        log = await load.head_log(ports.objects, written.conversation_id)
        if not any(entry.account_id == account and entry.revision_id == written.revision_id for entry, _ in log):
            return Verification(False, 0, "no head entry of this account names the revision")
        found = await load.manifests(ports.objects, written.conversation_id)
        loaded = await load.revision(ports.objects, found[written.revision_id])
    except (ObjectNotFound, StorageError, codec.UnreadableObject, KeyError) as error:
        return Verification(False, 0, f"the revision could not be reloaded ({type(error).__name__})")
    by_id = {node.source_node_id: node for node in loaded.nodes}
    shown = [by_id[node_id] for node_id in loaded.active if by_id[node_id].is_message]
    there = shown[written.first_offset : written.first_offset + len(messages)]
    if len(there) != len(messages):
        return Verification(False, len(there), f"{len(messages)} messages were written, {len(there)} were read back")
    for index, (message, node) in enumerate(zip(messages, there, strict=True)):
        intended = (message.role, message.content, _timestamp(message.timestamp, f"messages[{index}].timestamp"))
        if intended != (node.role, node.text, node.created_at):
            return Verification(False, index, f"message {index} differs from what was written")
    return Verification(True, len(messages))


# ------------------------------------------------------------------ parts


async def _write(ports: Ports, entry: HeadEntry, revision: NewRevision, base: StoredManifest | None) -> Written | None:
    """Commit, or None when another writer's entry came first."""
    entry = replace(entry, revision_id=revision.manifest.revision_id)
    draft = Draft(entry, revision.stored, segments=revision.segments, new_manifest=True, messages=revision.messages)
    try:
        result = await commit(ports, entry.account_id, [draft])
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
        revision_id=revision.manifest.revision_id,
        previous_revision_id=base.manifest.revision_id if base else None,
        first_offset=base.manifest.message_count if base else 0,
        message_count=len(revision.messages),
        index_job_id=result.index_jobs[entry.conversation_id] if result.projected else None,
        index_queued=problem is None,
        index_error=problem,
    )


async def _replayed(ports: Ports, account: AccountId, key: str, request_hash: str | None) -> Written | None:
    """What the earlier call with this key wrote. :raises MempersistError: IMPORT_CONFLICT for another request."""
    rows = await ports.catalog.query(
        "SELECT request_hash, conversation_id, head_seq FROM idempotency_keys"
        " WHERE account_id = ? AND idempotency_key = ?",
        (account, key),
    )
    if not rows:
        return None
    if rows[0]["request_hash"] != request_hash:
        raise MempersistError(
            Code.IMPORT_CONFLICT,
            "idempotency_key: was used for another request; repeat that request unchanged or choose a new key",
        )
    conversation_id = rows[0]["conversation_id"]
    entry = await _entry_at(ports, conversation_id, rows[0]["head_seq"])
    before = await _entry_at(ports, conversation_id, entry.seq - 1) if entry.operation != "store" else None
    count = await _message_count(ports, account, entry)
    count_before = await _message_count(ports, account, before) if before else 0
    return Written(
        conversation_id=conversation_id,
        revision_id=entry.revision_id or "",
        previous_revision_id=before.revision_id if before else None,
        first_offset=count_before,
        message_count=count - count_before,
        index_job_id=index_job_id(ports, conversation_id),
        index_queued=True,
        index_error=None,
        replayed=True,
    )


async def _entry_at(ports: Ports, conversation_id: str, seq: int) -> HeadEntry:
    found = await load.head_entry(ports.objects, conversation_id, seq)
    if found is None:
        raise MempersistError(Code.CANONICAL_STORAGE, f"head entry {seq} is missing; verify tells more", status=500)
    return found[0]


async def _message_count(ports: Ports, account: AccountId, entry: HeadEntry) -> int:
    rows = await ports.catalog.query(
        "SELECT manifest_key FROM revisions WHERE account_id = ? AND conversation_id = ? AND revision_id = ?",
        (account, entry.conversation_id, entry.revision_id),
    )
    if not rows:
        raise not_found("revision")
    return (await _manifest(ports, rows[0]["manifest_key"])).manifest.message_count


async def _row(ports: Ports, account: AccountId, conversation_id: str) -> Row | None:
    rows = await ports.catalog.query(
        "SELECT c.namespace, c.title, c.source_type, c.source_id, c.created_at, c.updated_at, c.head_seq, c.head_hash,"
        " c.revision_id, c.deleted_at, r.manifest_key FROM conversations AS c LEFT JOIN revisions AS r"
        " ON r.conversation_id = c.conversation_id AND r.revision_id = c.revision_id"
        " WHERE c.account_id = ? AND c.conversation_id = ?",
        (account, conversation_id),
    )
    return rows[0] if rows else None


async def _live_row(ports: Ports, account: AccountId, conversation_id: str) -> Row:
    row = await _row(ports, account, conversation_id)
    if row is None or row["deleted_at"] is not None:
        raise not_found("conversation")
    return row


async def _live_tags(ports: Ports, account: AccountId, conversation_id: str) -> list[str]:
    rows = await ports.catalog.query(
        "SELECT tag FROM conversation_tags WHERE account_id = ? AND conversation_id = ? ORDER BY position",
        (account, conversation_id),
    )
    return [row["tag"] for row in rows]


async def _manifest(ports: Ports, key: str) -> StoredManifest:
    try:
        return await load.manifest(ports.objects, key)
    except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
        raise MempersistError(
            Code.CANONICAL_STORAGE, f"the current revision could not be read ({type(error).__name__}); nothing changed"
        ) from error


def _stale(current: str) -> MempersistError:
    return MempersistError(
        Code.IMPORT_CONFLICT,
        f"base_revision_id: is not the current revision, which is {current}; read what changed and append to that",
        details={"current_revision_id": current},
    )


def _checked(messages: Sequence[NewMessage], most: int) -> tuple[NewMessage, ...]:
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
        result.append(NewMessage(role, message.content, _timestamp(message.timestamp, f"{field}.timestamp")))
    if not any(message.content.strip() for message in result):
        raise validation("messages", "hold no text at all; there is nothing to remember")
    return tuple(result)


def _timestamp(value: str | None, field: str) -> str | None:
    if value is None:
        return None
    try:
        return timestamps.normalise(value)
    except (ValueError, OverflowError):
        raise validation(field, "must be an ISO 8601 time such as 2026-05-01T12:00:00Z") from None


def _idempotency_key(value: str | None) -> str | None:
    if value is None:
        return None
    if not value.strip() or len(value) > limits.MAX_IDEMPOTENCY_KEY_CHARS or utf8_safe(value) != value:
        most = limits.MAX_IDEMPOTENCY_KEY_CHARS
        raise validation("idempotency_key", f"must have 1 to {most} characters of valid Unicode, not blank")
    return value


def _chain(parent: str | None, node_ids: Sequence[str], messages: Sequence[NewMessage]) -> list[Node]:
    nodes = []
    for node_id, message in zip(node_ids, messages, strict=True):
        nodes.append(Node(node_id, parent, message.role, message.content, created_at=message.timestamp))
        parent = node_id
    return nodes


def _mark(message: NewMessage) -> str:
    return canonical.identity("mcp-node", message.role, message.timestamp, message.content)[:32]


def _material(tags: Sequence[str], messages: Sequence[NewMessage]) -> str:
    return canonical.dumps([list(tags), [[item.role, item.content, item.timestamp] for item in messages]]).decode()


def _uuid(*parts: str | None) -> str:
    """A UUID that is the same for the same parts, so that a repeated request writes the same objects."""
    digest = canonical.identity("uuid", *parts)
    # Version 8 is the one whose bits are the application's own (RFC 9562).
    return f"{digest[:8]}-{digest[8:12]}-8{digest[13:16]}-8{digest[17:20]}-{digest[20:32]}"
