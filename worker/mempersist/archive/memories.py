"""Intentional writes: a new conversation, or messages behind an existing one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mempersist import limits, names, timestamps
from mempersist.archive import accounts, requests, revisions, writing
from mempersist.archive.commit import Draft, refold
from mempersist.archive.deletion import require_purged
from mempersist.archive.model import HeadEntry
from mempersist.archive.revisions import NewRevision
from mempersist.archive.verifying import Verification, verify_written
from mempersist.archive.writing import NewMessage, Prepared, Standing, Written
from mempersist.ports import AccountId, Ports

__all__ = ["NewMessage", "Verification", "Written", "append", "store", "verify_written"]


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
    checked = writing.checked(messages, limits.MAX_STORE_MESSAGES)
    space = names.namespace(namespace) if namespace is not None else await accounts.default_namespace(ports, account)
    request = requests.of("store", idempotency_key, space, title, writing.material(live_tags, checked))
    conversation_id = writing.same_uuid("store", account, request.key) if request.key else ports.ids.uuid()
    nodes = writing.transcript(checked)
    for _ in range(writing.MAX_RACES):
        done = await writing.replayed(ports, account, request)
        if done is not None:
            return done
        await accounts.claim_namespace(ports, account, space)
        row = await writing.row_of(ports, account, conversation_id) if request.key else None
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
            idempotency_key=request.key,
            request_hash=request.hash,
        )
        revision = revisions.extended(conversation_id, None, nodes, now)
        written = await writing.write(ports, _prepared(entry, revision, 0), None)
        if written is not None:
            return written
        await refold(ports, account, conversation_id)
    raise writing.contended()


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
    checked = writing.checked(messages, limits.MAX_APPEND_MESSAGES)
    request = requests.of(
        "append", idempotency_key, conversation_id, base_revision_id, writing.material(new_tags, checked)
    )
    key = request.key
    node_ids = [
        f"append-{writing.same_uuid('append', account, key, str(index)) if key else ports.ids.uuid()}"
        for index in range(len(checked))
    ]

    async def prepare(standing: Standing, now: str) -> Prepared:
        stored = await writing.manifest(ports, standing.row["manifest_key"])
        nodes = writing.chain(stored.manifest.current_source_node_id, node_ids, checked)
        revision = revisions.extended(conversation_id, stored, nodes, now)
        entry = standing.next_entry(request, now, revision_id=revision.manifest.revision_id)
        entry = replace(entry, tags=names.tags([*standing.tags, *new_tags]))
        return _prepared(entry, revision, stored.manifest.message_count)

    return await writing.change(ports, account, request, conversation_id, base_revision_id, prepare)


def _prepared(entry: HeadEntry, revision: NewRevision, first_offset: int) -> Prepared:
    entry = replace(entry, revision_id=revision.manifest.revision_id)
    draft = Draft(entry, revision.stored, segments=revision.segments, new_manifest=True, messages=revision.messages)
    return Prepared(draft, first_offset, len(revision.messages))
