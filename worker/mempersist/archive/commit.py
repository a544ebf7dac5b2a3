"""The commit: how a prepared change of a conversation becomes durable, projected and queued for indexing.

Order: intent row, segments, manifests, head entries, one catalog batch, queue messages. The head entry is the commit
point and the lock: it is created only if absent, so of two writers one wins and the other sees a conflict. Whatever
fails after it is repaired by :func:`refold` or the sweeper and never reported as a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mempersist import canonical, jobs, timestamps
from mempersist.archive import codec, keys, load
from mempersist.archive.model import HeadEntry
from mempersist.archive.segments import Segment
from mempersist.catalog import fold, intents
from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError
from mempersist.index.generation import enqueue_statements, generation_of
from mempersist.ports import (
    AccountId,
    CatalogError,
    ObjectNotFound,
    Ports,
    PreconditionFailed,
    QueueUnavailable,
    Statement,
    StorageError,
)

_PUT_CONCURRENCY = 64


@dataclass(frozen=True, slots=True)
class Draft:
    """The next head entry of a conversation, prepared and not yet written.

    :param segments: to be written before the manifest; empty where no node is new.
    :param new_manifest: the revision is new, so its manifest is written too.
    :param messages: rows to add, or with ``replace_messages`` all rows of the conversation.
    """

    entry: HeadEntry
    stored: fold.StoredManifest | None
    segments: tuple[Segment, ...] = ()
    new_manifest: bool = False
    messages: Sequence[fold.MessageRow] = ()
    replace_messages: bool = False


@dataclass(frozen=True, slots=True)
class Committed:
    """What became of a batch of drafts, which are durable but for those in ``conflicts``.

    :param conflicts: ids of conversations where another writer's entry came first; nothing of the draft counts.
    :param index_jobs: conversation id to the id of its index job.
    :param projected: the catalog has the change; when False the sweeper will see to it.
    :param queued: the index messages were accepted; when False the sweeper will send them.
    """

    conflicts: frozenset[str] = frozenset()
    index_jobs: dict[str, str] = field(default_factory=dict)
    projected: bool = True
    queued: bool = True


def index_job_id(ports: Ports, conversation_id: str) -> str:
    return canonical.job_id("index", conversation_id, generation_of(ports).id)


def pending_index(ports: Ports, entry: HeadEntry) -> list[Statement]:
    """Statements that mark a conversation's new head as waiting for the index."""
    now = timestamps.from_ms(ports.clock.now_ms())
    generation = generation_of(ports).id
    return [
        *enqueue_statements(entry.account_id, entry.conversation_id, entry.seq, entry.revision_id, generation, now),
        jobs.upsert(index_job_id(ports, entry.conversation_id), "index", entry.account_id, entry.conversation_id, now),
    ]


async def commit(
    ports: Ports,
    account: AccountId,
    drafts: Sequence[Draft],
    *,
    extra: Callable[[frozenset[str]], Sequence[Statement]] | None = None,
) -> Committed:
    """Make ``drafts``, each of another conversation, durable.

    :param extra: gets the ids in conflict and gives statements for the same catalog batch as the fold.
    :raises MempersistError: CANONICAL_STORAGE when an object could not be written; entries written before stay, and
        the sweeper folds them.
    :raises CatalogError: when the intent could not be recorded; nothing was written then.
    """
    intent = ports.ids.token(16)
    now = timestamps.from_ms(ports.clock.now_ms())
    if drafts:
        touched = [draft.entry.conversation_id for draft in drafts]
        await ports.catalog.batch([intents.begin(intent, account, touched, now)])
    try:
        drafts = await _put_bodies(ports, drafts)
        written = await gather((_put_head(ports, draft.entry) for draft in drafts), limit=_PUT_CONCURRENCY)
    except StorageError as error:
        raise MempersistError(
            Code.CANONICAL_STORAGE, "the object store did not take the write; it is not acknowledged, try again"
        ) from error
    committed = [(draft, head_hash) for draft, head_hash in zip(drafts, written, strict=True) if head_hash is not None]
    conflicts = frozenset(
        draft.entry.conversation_id for draft, head_hash in zip(drafts, written, strict=True) if head_hash is None
    )
    settled = [] if conflicts else [intents.settled(intent)]
    projected = await _project(ports, account, committed, settled, extra(conflicts) if extra else ())
    if conflicts:
        await _give_way(ports, account, conflicts, intent)
    index_jobs = {
        draft.entry.conversation_id: index_job_id(ports, draft.entry.conversation_id) for draft, _ in committed
    }
    queued = await send_index_jobs(ports, list(index_jobs.values()))
    return Committed(conflicts, index_jobs, projected, queued)


async def _put_bodies(ports: Ports, drafts: Sequence[Draft]) -> list[Draft]:
    """Segments first, manifests after them: a manifest that exists always has its segments."""
    await gather(
        (
            _put_if_absent(ports, keys.segment(draft.entry.conversation_id, segment.ref.sha256), segment.data)
            for draft in drafts
            for segment in draft.segments
        ),
        limit=_PUT_CONCURRENCY,
    )
    return await gather((_put_manifest(ports, draft) for draft in drafts), limit=_PUT_CONCURRENCY)


async def _put_if_absent(ports: Ports, key: str, data: bytes) -> bool:
    try:
        await ports.objects.put(key, data, if_absent=True)
    except PreconditionFailed:
        return False
    return True


async def _put_manifest(ports: Ports, draft: Draft) -> Draft:
    """Write the draft's manifest, or take the one that stands there: the same revision, perhaps in other segments."""
    if draft.stored is None or not draft.new_manifest:
        return draft
    if await _put_if_absent(ports, draft.stored.key, codec.encode_manifest(draft.stored.manifest)):
        return draft
    newest = (await load.manifests(ports.objects, draft.entry.conversation_id))[draft.stored.manifest.revision_id]
    loaded = await load.revision(ports.objects, newest)
    return Draft(
        draft.entry,
        newest,
        messages=fold.message_rows(loaded.placements, loaded.active),
        replace_messages=True,
    )


async def _put_head(ports: Ports, entry: HeadEntry) -> str | None:
    """The entry's hash, or None when another writer's entry stands there already."""
    key, data = keys.head(entry.conversation_id, entry.seq), codec.encode_head(entry)
    try:
        await ports.objects.put(key, data, if_absent=True)
    except PreconditionFailed:
        # The store may have taken the write and lost the answer; a repeated put then meets itself.
        if not await _stands(ports, key, data):
            return None
    except StorageError:
        if not await _stands(ports, key, data):
            raise
    return canonical.sha256_hex(data)


async def _stands(ports: Ports, key: str, data: bytes) -> bool:
    try:
        return await ports.objects.get(key) == data
    except ObjectNotFound:
        return False


async def _give_way(ports: Ports, account: AccountId, conflicts: frozenset[str], intent: str) -> None:
    """Fold what came first. Where that is a deletion, what was written here beside it is purged with the rest."""
    try:
        for conversation_id in sorted(conflicts):
            await refold(ports, account, conversation_id, after_losing=True)
        await ports.catalog.batch([intents.settled(intent)])
    except (CatalogError, StorageError, ObjectNotFound, codec.UnreadableObject):
        return  # the intent stays, and the sweeper does the same


async def _project(
    ports: Ports,
    account: AccountId,
    committed: Sequence[tuple[Draft, str]],
    settled: Sequence[Statement],
    extra: Sequence[Statement],
) -> bool:
    changes = [
        fold.Change(draft.entry, head_hash, draft.stored, draft.messages, draft.replace_messages)
        for draft, head_hash in committed
    ]
    waiting = [statement for draft, _ in committed for statement in pending_index(ports, draft.entry)]
    try:
        await _batch(ports, [*fold.advance(changes), *waiting, *extra, *settled])
    except CatalogError:
        if extra:
            raise  # the caller's own rows belong to this batch; it repeats the whole turn
        try:
            for draft, _ in committed:
                await refold(ports, account, draft.entry.conversation_id)
            await _batch(ports, settled)
        except CatalogError:
            return False
    return True


async def _batch(ports: Ports, statements: Sequence[Statement]) -> None:
    """D1 takes no empty batch."""
    if statements:
        await ports.catalog.batch(statements)


async def refold(
    ports: Ports, account: AccountId, conversation_id: str, *, force: bool = False, after_losing: bool = False
) -> bool:
    """Set a conversation's rows to what the archive says of it, and queue it for the index, if they are behind.

    :param force: do so even if they know the newest entry, because something else about them is in doubt.
    :param after_losing: bodies were written for an entry that did not come about, so do so if it is deleted.
    :returns: whether the archive knows the conversation and it is ``account``'s.
    :raises CatalogError: / :raises StorageError:
    """
    log = await load.head_log(ports.objects, conversation_id)
    if not log or log[-1][0].account_id != account:
        return False
    head = log[-1][0]
    rows = await ports.catalog.query(
        "SELECT head_seq FROM conversations WHERE account_id = ? AND conversation_id = ?", (account, conversation_id)
    )
    if rows and rows[0]["head_seq"] >= head.seq and not force and not (after_losing and head.deleted):
        return True
    try:
        statements = await projection(ports, conversation_id, log)
        await ports.catalog.batch([*statements, *pending_index(ports, head)])
    except CatalogError:
        rows = await ports.catalog.query(
            "SELECT head_seq FROM conversations WHERE account_id = ? AND conversation_id = ? AND head_seq >= ?",
            (account, conversation_id, head.seq),
        )
        if not rows:
            raise
        return True  # another writer has folded this entry, or a newer one, meanwhile
    await send_index_jobs(ports, [index_job_id(ports, conversation_id)])
    return True


async def projection(ports: Ports, conversation_id: str, log: Sequence[tuple[HeadEntry, str]]) -> list[Statement]:
    """Statements for all of a conversation's rows, from its objects alone."""
    head = log[-1][0]
    if head.revision_id is None:
        return fold.replace(log, {}, ())
    revisions = await load.manifests(ports.objects, conversation_id)
    loaded = await load.revision(ports.objects, revisions[head.revision_id])
    return fold.replace(log, revisions, fold.message_rows(loaded.placements, loaded.active))


async def send_index_jobs(ports: Ports, job_ids: Sequence[str]) -> bool:
    """Tell the index queue; False when it did not take the messages, which the sweeper then sends."""
    try:
        for start in range(0, len(job_ids), 100):
            await ports.queue.send(
                "index", [{"version": 1, "job_id": job_id} for job_id in job_ids[start : start + 100]]
            )
    except QueueUnavailable:
        return False
    return True
