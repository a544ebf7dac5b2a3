"""Replacing a conversation's transcript, and going back to an earlier one. History is never lost."""

from __future__ import annotations

from collections.abc import Sequence

from mempersist import limits
from mempersist.archive import codec, load, requests, revisions, writing
from mempersist.archive.commit import Draft
from mempersist.archive.writing import NewMessage, Prepared, Standing, Written
from mempersist.catalog.fold import message_rows
from mempersist.ports import AccountId, ObjectNotFound, Ports, StorageError


async def replace_transcript(
    ports: Ports,
    account: AccountId,
    *,
    conversation_id: str,
    base_revision_id: str,
    messages: Sequence[NewMessage],
    idempotency_key: str | None = None,
) -> Written:
    """Make ``messages`` the whole conversation, as a new revision. Id, namespace, title and tags stay; other branches
    and the earlier transcript stay in the revisions before. Messages that are as they were keep their node ids.

    :raises MempersistError: VALIDATION; NOT_FOUND; IMPORT_CONFLICT; CANONICAL_STORAGE.
    """
    checked = writing.checked(messages, limits.MAX_STORE_MESSAGES)
    material = writing.material((), checked)
    request = requests.of("replace", idempotency_key, conversation_id, base_revision_id, material)
    nodes = writing.transcript(checked)

    async def prepare(standing: Standing, now: str) -> Prepared:
        stored = await writing.manifest(ports, standing.row["manifest_key"])
        revision = revisions.rewritten(stored, nodes, now)
        entry = standing.next_entry(request, now, revision_id=revision.manifest.revision_id)
        draft = Draft(
            entry,
            revision.stored,
            segments=revision.segments,
            new_manifest=True,
            messages=revision.messages,
            replace_messages=True,
        )
        return Prepared(draft, 0, len(checked))

    return await writing.change(ports, account, request, conversation_id, base_revision_id, prepare)


async def restore_revision(
    ports: Ports,
    account: AccountId,
    *,
    conversation_id: str,
    revision_id: str,
    base_revision_id: str,
    idempotency_key: str | None = None,
) -> Written:
    """Make an earlier revision current again. Only the head moves: no segment, no manifest and no revision is new.

    A call that repeats the last move succeeds and changes nothing.

    :raises MempersistError: NOT_FOUND for the conversation or the revision; IMPORT_CONFLICT; CANONICAL_STORAGE.
    """
    request = requests.of("restore", idempotency_key, conversation_id, base_revision_id, revision_id)

    async def prepare(standing: Standing, now: str) -> Prepared:
        stored = await writing.revision(ports, account, conversation_id, revision_id)
        entry = standing.next_entry(request, now, revision_id=revision_id)
        if revision_id == base_revision_id:
            return Prepared(Draft(entry, stored), 0, stored.manifest.message_count)
        try:
            loaded = await load.revision(ports.objects, stored)
        except (ObjectNotFound, StorageError, codec.UnreadableObject) as error:
            raise writing.unreadable(error) from error
        draft = Draft(entry, stored, messages=message_rows(loaded.placements, loaded.active), replace_messages=True)
        return Prepared(draft, 0, stored.manifest.message_count)

    async def repeated(standing: Standing) -> Written | None:
        if standing.row["revision_id"] != revision_id or not await _moved_last(ports, standing, base_revision_id):
            return None
        stored = await writing.revision(ports, account, conversation_id, revision_id)
        return writing.unchanged(ports, standing, base_revision_id, stored.manifest.message_count)

    return await writing.change(ports, account, request, conversation_id, base_revision_id, prepare, repeated=repeated)


async def _moved_last(ports: Ports, standing: Standing, base_revision_id: str) -> bool:
    """Whether the conversation came to its current revision by a restore from ``base_revision_id``."""
    current = standing.row["revision_id"]
    log = await load.head_log(ports.objects, standing.row["conversation_id"])
    for (entry, _), (before, _) in zip(reversed(log), reversed(log[:-1]), strict=False):
        if entry.revision_id != current:
            return False
        if before.revision_id != current:
            return entry.operation == "restore" and before.revision_id == base_revision_id
    return False
