"""Copies of conversations: lossless, independent of their sources, and made once however often they are asked for.

What a call found, the revisions it pinned among it, is kept before the first copy is written, so that a repeated call
writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mempersist import canonical, limits, names
from mempersist.archive import accounts, codec, keys, load, requests, segments, tagging, writing
from mempersist.archive.commit import Draft, index_job_id, refold
from mempersist.archive.model import HeadEntry, JsonObject, Manifest
from mempersist.archive.requests import Record
from mempersist.archive.segments import Segment
from mempersist.archive.writing import Prepared, Written
from mempersist.catalog.conversations import require_namespace
from mempersist.catalog.fold import StoredManifest, message_rows
from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError, validation
from mempersist.ports import AccountId, CatalogError, ObjectNotFound, Ports, StorageError


@dataclass(frozen=True, slots=True)
class CopyRequest:
    """One conversation to copy.

    :param revision_id: the revision to copy, the current one unless named. :param title: that of the copy.
    :param tags_mode: ``inherit``: begin with the tags that the revision had; ``replace``: with none.
    """

    conversation_id: str
    revision_id: str | None = None
    title: str | None = None
    tags_mode: Literal["inherit", "replace"] = "inherit"
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CopyOutcome:
    """What became of a request: ``written`` or ``error``.

    :param source_revision_id: the revision that was pinned; None where none was found.
    """

    source_conversation_id: str
    source_revision_id: str | None
    written: Written | None = None
    error: MempersistError | None = None


async def copy_conversations(
    ports: Ports,
    account: AccountId,
    *,
    target_namespace: str,
    create_target_namespace: bool,
    idempotency_key: str,
    wanted: Sequence[CopyRequest],
) -> tuple[CopyOutcome, ...]:
    """Copy each of ``wanted`` with all its branches, source nodes and times; trouble with one leaves the others alone.

    :raises MempersistError: VALIDATION; AUTHENTICATION for a target namespace that the account does not own;
        IMPORT_CONFLICT when the key stands for another request; CANONICAL_STORAGE when nothing could be begun.
    """
    if not 1 <= len(wanted) <= limits.MAX_COPY_REQUESTS:
        raise validation("requests", f"has {len(wanted)} items; 1 to {limits.MAX_COPY_REQUESTS} are allowed")
    target = names.namespace(target_namespace, "target_namespace")
    wanted = [_normal(item, f"requests[{index}]") for index, item in enumerate(wanted)]
    material = canonical.dumps([_material(item) for item in wanted]).decode()
    request = requests.of("copy", idempotency_key, target, str(create_target_namespace), material)
    kept = await requests.earlier(ports, account, request)
    if kept is None:
        if not create_target_namespace:
            await require_namespace(ports, account, target)
        pins = [await _pin(ports, account, item) for item in wanted]
        kept = await requests.record(ports, account, request, {"pins": pins})
    await accounts.claim_namespace(ports, account, target)
    return tuple(
        [
            await _copied(ports, account, target, f"{idempotency_key}\x1e{index}", kept, item, pin)
            for index, (item, pin) in enumerate(zip(wanted, kept.values["pins"], strict=True))
        ]
    )


def _normal(item: CopyRequest, field: str) -> CopyRequest:
    return replace(
        item,
        title=names.title(item.title, f"{field}.title") if item.title is not None else None,
        add=names.tags(item.add, f"{field}.tags.add"),
        remove=names.tags(item.remove, f"{field}.tags.remove"),
    )


def _material(item: CopyRequest) -> list[object]:
    return [item.conversation_id, item.revision_id, item.title, item.tags_mode, list(item.add), list(item.remove)]


# ------------------------------------------------------------------ pins


async def _pin(ports: Ports, account: AccountId, item: CopyRequest) -> JsonObject:
    """Which head entry and revision of the source are copied, or the error that the request ends with.

    It outlives the source, so it holds nothing that a deletion has to take away.
    """
    try:
        row = (await writing.standing_of(ports, account, item.conversation_id)).row
        revision = item.revision_id or row["revision_id"]
        await writing.manifest_key(ports, account, item.conversation_id, revision)
        return {"revisionId": revision, "headSeq": row["head_seq"]}
    except MempersistError as error:
        if error.code is not Code.NOT_FOUND:
            raise
        return {"error": {"code": error.code.value, "message": error.message}}


async def _head(ports: Ports, source: str, pin: JsonObject) -> HeadEntry:
    """The pinned head entry, with the tags of when the pinned revision was last current.

    :raises ObjectNotFound: / :raises StorageError: / :raises UnreadableObject:
    """
    found = await load.head_entry(ports.objects, source, pin["headSeq"])
    if found is None:
        raise ObjectNotFound(keys.head(source, pin["headSeq"]))
    entry = found[0]
    if entry.revision_id == pin["revisionId"]:
        return entry
    log = [earlier for earlier, _ in await load.head_log(ports.objects, source) if earlier.seq <= entry.seq]
    tags = next((earlier.tags for earlier in reversed(log) if earlier.revision_id == pin["revisionId"]), ())
    return replace(entry, tags=tags)


# ------------------------------------------------------------------ one copy


async def _copied(
    ports: Ports, account: AccountId, target: str, name: str, kept: Record, item: CopyRequest, pin: JsonObject
) -> CopyOutcome:
    """:param name: tells this copy from every other of the account."""
    source = item.conversation_id
    if "error" in pin:
        refused = MempersistError(Code(pin["error"]["code"]), pin["error"]["message"])
        return CopyOutcome(source, None, error=refused)
    revision = pin["revisionId"]
    copy_id = canonical.identity("copy", account, name, source, revision, target)
    try:
        written = await _made(ports, account, copy_id)
        if written is None:
            written = await _make(ports, account, target, copy_id, kept.at, item, pin)
    except MempersistError as error:
        return CopyOutcome(source, revision, error=error)
    except (CatalogError, StorageError, codec.UnreadableObject) as error:
        problem = f"the copy could not be made ({type(error).__name__}); repeat the call with the same key"
        return CopyOutcome(source, revision, error=MempersistError(Code.RETRYABLE_INFRASTRUCTURE, problem))
    return CopyOutcome(source, revision, written)


async def _made(ports: Ports, account: AccountId, copy_id: str) -> Written | None:
    """The copy as an earlier call made it. :raises MempersistError: NOT_FOUND if it was deleted since."""
    log = await load.head_log(ports.objects, copy_id)
    if not log:
        return None
    await refold(ports, account, copy_id)
    if log[-1][0].deleted:
        raise MempersistError(Code.NOT_FOUND, "the copy was made by an earlier call and has been deleted since")
    revision = log[0][0].revision_id or ""
    stored = await writing.revision(ports, account, copy_id, revision)
    return Written(
        conversation_id=copy_id,
        revision_id=revision,
        previous_revision_id=None,
        first_offset=0,
        message_count=stored.manifest.message_count,
        index_job_id=index_job_id(ports, copy_id),
        index_queued=True,
        index_error=None,
        replayed=True,
    )


async def _make(
    ports: Ports, account: AccountId, target: str, copy_id: str, at: str, item: CopyRequest, pin: JsonObject
) -> Written:
    source, stored, built = await _read(ports, account, copy_id, item.conversation_id, pin)
    placements = load.in_order(placement for segment in built for placement in segment.placements)
    manifest = _manifest(stored.manifest, copy_id, built, at, source.namespace)
    begun = source.tags if item.tags_mode == "inherit" else ()
    entry = replace(
        source,
        conversation_id=copy_id,
        seq=0,
        operation="copy",
        namespace=target,
        title=item.title if item.title is not None else source.title,
        tags=tagging.changed(begun, remove=item.remove, add=item.add),
        revision_id=manifest.revision_id,
        at=at,
        previous_hash=None,
        import_id=None,
        import_position=None,
        idempotency_key=None,
        request_hash=None,
    )
    draft = Draft(
        entry,
        StoredManifest(manifest, keys.manifest(copy_id, manifest.revision_id)),
        segments=built,
        new_manifest=True,
        messages=message_rows(placements, load.active_ids(placements, manifest)),
    )
    await writing.standing_of(ports, account, item.conversation_id)  # one that was deleted meanwhile is not copied
    written = await writing.write(ports, Prepared(draft, 0, manifest.message_count), None)
    if written is None:
        raise writing.contended()
    return written


async def _read(
    ports: Ports, account: AccountId, copy_id: str, source: str, pin: JsonObject
) -> tuple[HeadEntry, StoredManifest, tuple[Segment, ...]]:
    """The source's head entry and manifest, and its segments as the copy's own."""
    try:
        head = await _head(ports, source, pin)
        stored = await writing.revision(ports, account, source, pin["revisionId"])
        blobs = await gather(ports.objects.get(keys.segment(source, ref.sha256)) for ref in stored.manifest.segments)
        return (
            head,
            stored,
            tuple(
                segments.readdressed(copy_id, data, ref.sha256)
                for ref, data in zip(stored.manifest.segments, blobs, strict=True)
            ),
        )
    except (ObjectNotFound, StorageError, codec.UnreadableObject, MempersistError) as error:
        await writing.standing_of(ports, account, source)  # deleted meanwhile: then that is told, and no damage
        raise error if isinstance(error, MempersistError) else writing.unreadable(error) from error


def _manifest(source: Manifest, copy_id: str, built: Sequence[Segment], at: str, namespace: str) -> Manifest:
    return replace(
        source,
        conversation_id=copy_id,
        revision_id=canonical.revision_id(copy_id, source.content_hash),
        segments=tuple(segment.ref for segment in built),
        derived_from={
            "operation": "copy",
            "conversationId": source.conversation_id,
            "revisionId": source.revision_id,
            "namespace": namespace,
            "copiedAt": at,
        },
        created_at=at,
    )
