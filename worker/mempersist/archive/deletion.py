"""Deleting conversations: first a tombstone in the head log, which hides it at once, then, in the background, its
bodies and index entries.

The tombstone holds no title, tag or text. A rebuild honours it; a later import or store may begin the conversation
anew behind it.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Literal

from mempersist import jobs, timestamps
from mempersist.archive import keys, requests
from mempersist.archive.commit import Committed, Draft, commit, refold
from mempersist.archive.model import HeadEntry
from mempersist.archive.requests import Record
from mempersist.catalog import bulk
from mempersist.catalog.conversations import require_namespace
from mempersist.errors import Code, MempersistError, not_found
from mempersist.jobs import Job
from mempersist.limits import MAX_EMPTY_CONVERSATIONS
from mempersist.ports import AccountId, CatalogError, Ports, Row

_MAX_RACES = 5
_BURY_TOGETHER = 100
_DELETE_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class FailedDeletion:
    """A conversation that could not be deleted now; the same call goes on with it.

    :param stage: ``tombstone``: nothing was written. ``catalog``: it may be written, and the catalog will follow.
    """

    conversation_id: str
    stage: Literal["tombstone", "catalog"]
    message: str


@dataclass(frozen=True, slots=True)
class Deletion:
    """What became of the conversations of a call, each list in the order in which they were named."""

    deleted: tuple[str, ...]
    missing: tuple[str, ...]
    failed: tuple[FailedDeletion, ...]


@dataclass(frozen=True, slots=True)
class Emptied:
    """A step of emptying a namespace: what it took on, what became of that, and how many ``remaining`` are in it."""

    namespace: str
    requested: int
    deleted: int
    failed: int
    remaining: int


async def delete_conversation(ports: Ports, account: AccountId, conversation_id: str) -> Committed:
    """Write the tombstone and queue the removal of bodies and index entries.

    :raises MempersistError: NOT_FOUND for a missing, deleted or foreign one; CANONICAL_STORAGE.
    :raises CatalogError: when the catalog is out of reach.
    """
    for _ in range(_MAX_RACES):
        if not await _live(ports, account, [conversation_id]):
            raise not_found("conversation")
        result = await _bury(ports, account, [conversation_id])
        if not result.conflicts:
            return result
        await refold(ports, account, conversation_id)
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the conversation is being written elsewhere; try again")


async def delete_conversations(
    ports: Ports, account: AccountId, conversation_ids: Sequence[str], *, idempotency_key: str | None = None
) -> Deletion:
    """Delete each of ``conversation_ids``; trouble with one leaves the others alone. Another account's are missing.

    :raises MempersistError: VALIDATION; IMPORT_CONFLICT when the key stands for another request; CANONICAL_STORAGE.
    """
    request = requests.of("delete", idempotency_key, *conversation_ids)
    kept = await requests.earlier(ports, account, request)
    if kept is None:
        live = await _live(ports, account, conversation_ids)
        kept = await requests.record(
            ports, account, request, {"live": [item for item in conversation_ids if item in live]}
        )
    wanted: list[str] = kept.values["live"]
    failed = await _delete_all(ports, account, await _not_begun_anew(ports, account, wanted, kept))
    return Deletion(
        deleted=tuple(item for item in wanted if item not in failed),
        missing=tuple(item for item in conversation_ids if item not in wanted),
        failed=tuple(failed.values()),
    )


async def empty_namespace(
    ports: Ports, account: AccountId, namespace: str, *, idempotency_key: str | None = None
) -> Emptied:
    """Delete up to ``MAX_EMPTY_CONVERSATIONS`` of a namespace, which stays the account's. Uploads stay as they are.

    :raises MempersistError: AUTHENTICATION for a namespace that the account does not own; otherwise as
        :func:`delete_conversations`.
    """
    await require_namespace(ports, account, namespace)
    request = requests.of("delete", idempotency_key, "namespace", namespace)
    kept = await requests.earlier(ports, account, request)
    if kept is None:
        rows = await ports.catalog.query(
            "SELECT conversation_id FROM conversations WHERE account_id = ? AND namespace = ? AND deleted_at IS NULL"
            " ORDER BY updated_at DESC, conversation_id LIMIT ?",
            (account, namespace, MAX_EMPTY_CONVERSATIONS),
        )
        kept = await requests.record(ports, account, request, {"live": [row["conversation_id"] for row in rows]})
    wanted: list[str] = kept.values["live"]
    failed = await _delete_all(ports, account, await _not_begun_anew(ports, account, wanted, kept))
    (left,) = await ports.catalog.query(
        "SELECT count(*) AS live FROM conversations WHERE account_id = ? AND namespace = ? AND deleted_at IS NULL",
        (account, namespace),
    )
    return Emptied(namespace, len(wanted), len(wanted) - len(failed), len(failed), left["live"])


async def _not_begun_anew(ports: Ports, account: AccountId, wanted: Sequence[str], kept: Record) -> Sequence[str]:
    """``wanted`` without what was stored again after the call that this one repeats, which never meant that."""
    if not kept.repeated:
        return wanted
    anew = {row["conversation_id"] for row in await _rows(ports, account, wanted) if row["stored_at"] > kept.at}
    return [item for item in wanted if item not in anew]


async def _delete_all(ports: Ports, account: AccountId, wanted: Sequence[str]) -> dict[str, FailedDeletion]:
    """Delete ``wanted``, many in one commit and what is left of them one by one; those that could not be, by id."""
    failed: dict[str, FailedDeletion] = {}
    for start in range(0, len(wanted), _BURY_TOGETHER):
        group = wanted[start : start + _BURY_TOGETHER]
        with contextlib.suppress(MempersistError, CatalogError):
            await _bury(ports, account, group)
        try:
            left = await _live(ports, account, group)
        except CatalogError:
            failed.update({item: _catalog_is_behind(item) for item in group})
            continue
        for conversation_id in sorted(left):
            problem = await _delete_alone(ports, account, conversation_id)
            if problem is not None:
                failed[conversation_id] = problem
    return failed


async def _delete_alone(ports: Ports, account: AccountId, conversation_id: str) -> FailedDeletion | None:
    try:
        result = await delete_conversation(ports, account, conversation_id)
    except MempersistError as error:
        if error.code is Code.NOT_FOUND:
            return None  # it is gone: an entry that the catalog had missed, or another call
        return FailedDeletion(conversation_id, "tombstone", error.message)
    except CatalogError:
        return _catalog_is_behind(conversation_id)
    return None if result.projected else _catalog_is_behind(conversation_id)


def _catalog_is_behind(conversation_id: str) -> FailedDeletion:
    message = "the catalog is out of reach; if the deletion is recorded it will take effect by itself, try again"
    return FailedDeletion(conversation_id, "catalog", message)


async def _live(ports: Ports, account: AccountId, conversation_ids: Sequence[str]) -> frozenset[str]:
    return frozenset(
        [row["conversation_id"] for row in await _rows(ports, account, conversation_ids) if row["deleted_at"] is None]
    )


async def _bury(ports: Ports, account: AccountId, conversation_ids: Sequence[str]) -> Committed:
    """Write the tombstones of those that are live, in one commit."""
    now = timestamps.from_ms(ports.clock.now_ms())
    drafts = [
        Draft(
            HeadEntry(
                conversation_id=row["conversation_id"],
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
            ),
            None,
        )
        for row in await _rows(ports, account, conversation_ids)
        if row["deleted_at"] is None
    ]
    return await commit(ports, account, drafts) if drafts else Committed()


async def purge_if_deleted(ports: Ports, job: Job) -> bool:
    """Delete what a deleted conversation, the subject of ``job``, left in the store: all but the tombstone.

    While the job exists, :func:`require_purged` keeps anyone from beginning the conversation anew, so nothing new can
    be among what is deleted; a turn that lost its lease stops.

    :returns: whether the conversation is deleted.
    :raises MempersistError: RETRYABLE_INFRASTRUCTURE if the lease was lost.
    :raises StorageError: / :raises CatalogError:
    """
    conversation_id = job.subject_id
    rows = await _rows(ports, job.account, [conversation_id])
    if not rows or rows[0]["deleted_at"] is None:
        return False
    tombstone = keys.head(conversation_id, rows[0]["head_seq"])
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


async def _rows(ports: Ports, account: AccountId, conversation_ids: Sequence[str]) -> list[Row]:
    found: list[Row] = []
    for parameter in bulk.json_parameters(conversation_ids):
        found += await ports.catalog.query(
            "SELECT c.conversation_id, c.namespace, c.source_type, c.head_seq, c.head_hash, c.stored_at,"
            " c.deleted_at"
            " FROM json_each(?) AS wanted CROSS JOIN conversations AS c ON c.conversation_id = wanted.value"
            " WHERE c.account_id = ? ORDER BY wanted.key",
            (parameter, account),
        )
    return found
