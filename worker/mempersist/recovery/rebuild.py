"""The catalog from the object store alone, into an empty database or over a live one.

Each conversation's rows are replaced in one batch, guarded against a live writer that is further on, so a rebuild may
run while the service works. Running it again changes nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field

from mempersist.archive import accounts, codec, keys, load
from mempersist.archive.commit import index_job_id, pending_index, projection, send_index_jobs
from mempersist.archive.model import HeadEntry
from mempersist.catalog import account_fold, bulk
from mempersist.concurrency import gather
from mempersist.imports import projection as import_projection
from mempersist.index.generation import generation_of
from mempersist.ports import AccountId, CatalogError, ObjectNotFound, Ports, Statement

_BATCH_CONVERSATIONS = 20


@dataclass(frozen=True, slots=True)
class Damage:
    """An object that could not be folded; the rest was."""

    key: str
    problem: str


@dataclass(slots=True)
class RebuildReport:
    """What a rebuild found. ``uncommitted`` conversations have bodies but no head entry: writes that never ended.
    ``removed`` rows stood for conversations that the store does not have."""

    accounts: int = 0
    conversations: int = 0
    tombstones: int = 0
    assets: int = 0
    imports: int = 0
    uncommitted: int = 0
    removed: int = 0
    damaged: list[Damage] = field(default_factory=list)


async def rebuild_catalog(ports: Ports, *, progress: Callable[[int], None] | None = None) -> RebuildReport:
    """Fold every canonical object into the catalog.

    :param progress: called with the number of conversations done so far.
    :raises UnreadableObject: if the bucket is of a format this program does not know.
    :raises StorageError: / :raises CatalogError: when a store is out of reach; run it again.
    """
    await accounts.ensure_format(ports.objects)
    report = RebuildReport()
    await _accounts(ports, report)
    previous = ""
    async for names in _folders(ports, keys.CONVERSATIONS):
        for start in range(0, len(names), _BATCH_CONVERSATIONS):
            await _conversations(ports, names[start : start + _BATCH_CONVERSATIONS], report)
            if progress:
                progress(report.conversations + report.tombstones)
        await _remove_strangers(ports, names, previous, names[-1], report)
        previous = names[-1]
    await _remove_strangers(ports, [], previous, None, report)
    await _assets(ports, report)
    await _imports(ports, report)
    return report


async def _folders(ports: Ports, prefix: str) -> AsyncIterator[list[str]]:
    """The names directly below ``prefix`` in ascending order, a page at a time; never an empty page."""
    cursor: str | None = None
    while True:
        page = await ports.objects.list(prefix, cursor=cursor, delimiter="/")
        if page.prefixes:
            yield [name.removeprefix(prefix).rstrip("/") for name in page.prefixes]
        cursor = page.cursor
        if cursor is None:
            return


async def _accounts(ports: Ports, report: RebuildReport) -> None:
    async for names in _folders(ports, keys.ACCOUNTS):
        for name in names:
            try:
                entries = await accounts.log(ports.objects, AccountId(name))
            except codec.UnreadableObject as error:
                report.damaged.append(Damage(keys.account_log_prefix(name), str(error)))
                continue
            for entry, entry_hash in entries:
                await ports.catalog.batch(account_fold.statements(entry, entry_hash))
            report.accounts += 1


async def _conversations(ports: Ports, names: Sequence[str], report: RebuildReport) -> None:
    folded = [item for item in await gather(_fold(ports, name, report) for name in names) if item]
    indexed = await _indexed(ports, [head.conversation_id for head, _ in folded])
    jobs: list[str] = []
    for head, statements in folded:
        waiting: list[Statement] = []
        if await _is_unfinished(ports, head) if head.deleted else indexed.get(head.conversation_id) != head.seq:
            waiting = pending_index(ports, head)
        try:
            await ports.catalog.batch([*statements, *waiting])
        except CatalogError as error:
            if not await _is_newer(ports, head):
                report.damaged.append(Damage(keys.head(head.conversation_id, head.seq), f"not folded: {error}"))
                continue
        if waiting:
            jobs.append(index_job_id(ports, head.conversation_id))
        if head.deleted:
            report.tombstones += 1
        else:
            report.conversations += 1
    await send_index_jobs(ports, jobs)


async def _fold(ports: Ports, name: str, report: RebuildReport) -> tuple[HeadEntry, list[Statement]] | None:
    try:
        log = await load.head_log(ports.objects, name)
        if not log:
            report.uncommitted += 1
            return None
        return log[-1][0], await projection(ports, name, log)
    except (codec.UnreadableObject, ObjectNotFound, KeyError) as error:
        report.damaged.append(Damage(keys.conversation(name), f"{type(error).__name__}: {error}"[:300]))
        return None


async def _is_unfinished(ports: Ports, tombstone: HeadEntry) -> bool:
    """Whether a deleted conversation still has objects besides its tombstone."""
    page = await ports.objects.list(keys.conversation(tombstone.conversation_id), limit=2)
    return len(page.objects) > 1


async def _indexed(ports: Ports, conversation_ids: Sequence[str]) -> dict[str, int]:
    """Up to which head entry the active generation holds each conversation."""
    found: dict[str, int] = {}
    for parameter in bulk.json_parameters(conversation_ids):
        rows = await ports.catalog.query(
            "SELECT conversation_id, head_seq FROM index_state WHERE generation = ? AND status = 'indexed'"
            " AND conversation_id IN (SELECT value FROM json_each(?))",
            (generation_of(ports).id, parameter),
        )
        found.update({row["conversation_id"]: row["head_seq"] for row in rows})
    return found


async def _is_newer(ports: Ports, head: HeadEntry) -> bool:
    rows = await ports.catalog.query(
        "SELECT 1 FROM conversations WHERE conversation_id = ? AND head_seq > ?", (head.conversation_id, head.seq)
    )
    return bool(rows)


async def _remove_strangers(
    ports: Ports, known: Sequence[str], after: str, to: str | None, report: RebuildReport
) -> None:
    """Remove rows with ``after < id <= to`` for which the store has no head entry."""
    rows = await ports.catalog.query(
        "SELECT conversation_id FROM conversations WHERE conversation_id > ?1"
        " AND (?2 IS NULL OR conversation_id <= ?2) AND conversation_id NOT IN (SELECT value FROM json_each(?3))",
        (after, to, next(bulk.json_parameters(known), "[]")),
    )
    for row in rows:
        # A row follows its head entry; if that is not there now, it never will be.
        if not await load.head_log(ports.objects, row["conversation_id"]):
            await ports.catalog.batch(bulk.delete("conversations", "conversation_id", [row["conversation_id"]]))
            report.removed += 1


async def _assets(ports: Ports, report: RebuildReport) -> None:
    async for key in _keys(ports, keys.ASSETS, ".json"):
        try:
            record = codec.decode_asset_record(await ports.objects.get(key))
            await ports.catalog.batch(import_projection.asset_statements(record))
            report.assets += 1
        except (codec.UnreadableObject, ObjectNotFound, CatalogError) as error:
            report.damaged.append(Damage(key, f"{type(error).__name__}: {error}"[:300]))


async def _imports(ports: Ports, report: RebuildReport) -> None:
    async for names in _folders(ports, keys.IMPORTS):
        for name in names:
            key = keys.import_receipt(name)
            try:
                await ports.catalog.batch(import_projection.import_statements(await ports.objects.get(key)))
                report.imports += 1
            except ObjectNotFound:
                continue  # it has not ended; the sweeper starts it again
            except (ValueError, CatalogError) as error:
                report.damaged.append(Damage(key, f"{type(error).__name__}: {error}"[:300]))


async def _keys(ports: Ports, prefix: str, suffix: str) -> AsyncIterator[str]:
    cursor: str | None = None
    while True:
        page = await ports.objects.list(prefix, cursor=cursor)
        for info in page.objects:
            if info.key.endswith(suffix):
                yield info.key
        cursor = page.cursor
        if cursor is None:
            return
