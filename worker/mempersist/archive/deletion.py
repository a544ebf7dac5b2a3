"""Deleting a conversation: first a tombstone in its head log, which hides it at once, then its bodies.

The tombstone holds no title, tag or text. A rebuild honours it; a later import or store may begin the conversation
anew behind it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from mempersist import jobs, timestamps
from mempersist.archive import keys
from mempersist.archive.commit import Draft, commit, refold
from mempersist.archive.model import HeadEntry
from mempersist.catalog import bulk
from mempersist.errors import Code, MempersistError, not_found
from mempersist.jobs import Job
from mempersist.ports import AccountId, Ports, Row

_MAX_RACES = 5
_DELETE_AT_ONCE = 1000


async def delete_conversation(ports: Ports, account: AccountId, conversation_id: str) -> None:
    """Write the tombstone and queue the removal of bodies and index entries.

    :raises MempersistError: NOT_FOUND for a missing, deleted or foreign one; CANONICAL_STORAGE.
    """
    for _ in range(_MAX_RACES):
        row = await _row(ports, account, conversation_id)
        if row is None or row["deleted_at"] is not None:
            raise not_found("conversation")
        now = timestamps.from_ms(ports.clock.now_ms())
        tombstone = HeadEntry(
            conversation_id=conversation_id,
            seq=row["head_seq"] + 1,
            operation="delete",
            account_id=account,
            namespace=row["namespace"],
            title="",
            tags=(),
            revision_id=None,
            source_type=row["source_type"],
            source_id=None,
            created_at=None,
            updated_at=now,
            at=now,
            previous_hash=row["head_hash"],
        )
        if not (await commit(ports, account, [Draft(tombstone, None)])).conflicts:
            return
        await refold(ports, account, conversation_id)
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the conversation is being written elsewhere; try again")


async def purge_if_deleted(ports: Ports, job: Job) -> bool:
    """Delete what a deleted conversation, the subject of ``job``, left in the store: all but the tombstone.

    While the job exists, :func:`require_purged` keeps anyone from beginning the conversation anew, so nothing new can
    be among what is deleted; a turn that lost its lease stops.

    :returns: whether the conversation is deleted.
    :raises MempersistError: RETRYABLE_INFRASTRUCTURE if the lease was lost.
    :raises StorageError: / :raises CatalogError:
    """
    conversation_id = job.subject_id
    row = await _row(ports, job.account, conversation_id)
    if row is None or row["deleted_at"] is None:
        return False
    tombstone = keys.head(conversation_id, row["head_seq"])
    doomed = [key async for key in _keys(ports, keys.conversation(conversation_id)) if key != tombstone]
    for start in range(0, len(doomed), _DELETE_AT_ONCE):
        if not await jobs.renew(ports, job):
            raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "another turn has taken over the deletion")
        await ports.objects.delete(doomed[start : start + _DELETE_AT_ONCE])
    return True


async def require_purged(ports: Ports, account: AccountId, conversation_ids: Sequence[str]) -> None:
    """:raises MempersistError: RETRYABLE_INFRASTRUCTURE while one of these deleted conversations is being purged."""
    for parameter in bulk.json_parameters(conversation_ids):
        rows = await ports.catalog.query(
            "SELECT 1 FROM jobs WHERE account_id = ? AND kind = 'index'"
            " AND subject_id IN (SELECT value FROM json_each(?)) LIMIT 1",
            (account, parameter),
        )
        if rows:
            raise MempersistError(
                Code.RETRYABLE_INFRASTRUCTURE, "the deletion of this conversation is still under way; try again shortly"
            )


async def _keys(ports: Ports, prefix: str) -> AsyncIterator[str]:
    cursor: str | None = None
    while True:
        page = await ports.objects.list(prefix, cursor=cursor)
        for info in page.objects:
            yield info.key
        cursor = page.cursor
        if cursor is None:
            return


async def _row(ports: Ports, account: AccountId, conversation_id: str) -> Row | None:
    rows = await ports.catalog.query(
        "SELECT namespace, source_type, head_seq, head_hash, deleted_at FROM conversations"
        " WHERE account_id = ? AND conversation_id = ?",
        (account, conversation_id),
    )
    return rows[0] if rows else None
