"""Which objects an export takes: exact, though writes go on while it looks.

The store lists a conversation's head log before its revisions and its segments, and whatever a head entry refers to was
written before the entry was. So the objects that the heads seen first refer to are all there, and what newer heads
refer to is left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeVar

from mempersist.archive import codec, keys
from mempersist.archive.codec import UnreadableObject
from mempersist.archive.model import HeadEntry
from mempersist.errors import Code, MempersistError
from mempersist.imports import records
from mempersist.ports import AccountId, ObjectNotFound, ObjectStore
from mempersist_ops.archive_file import layout

T = TypeVar("T")


async def objects_of(store: ObjectStore, account: AccountId, *, sources: bool) -> list[str]:
    """The keys of everything that ``account`` has, in file order.

    :param sources: take the uploads of finished imports too; those of unfinished ones are always taken.
    :raises MempersistError: CANONICAL_STORAGE where something that is referred to is missing or damaged.
    """
    chosen = [keys.FORMAT_KEY]
    chosen += [key async for key in _listed(store, keys.account_log_prefix(account))]
    chosen += [key async for key in _listed(store, f"{keys.ASSETS}{account}/")]
    async for group in _groups(store, keys.CONVERSATIONS):
        chosen += await _conversation(store, account, group)
    async for group in _groups(store, keys.IMPORTS):
        chosen += await _import(store, account, group, sources=sources)
    return layout.in_order(chosen)


async def _listed(store: ObjectStore, prefix: str) -> AsyncIterator[str]:
    cursor: str | None = None
    while True:
        page = await store.list(prefix, cursor=cursor)
        for info in page.objects:
            yield info.key
        cursor = page.cursor
        if cursor is None:
            return


async def _groups(store: ObjectStore, prefix: str) -> AsyncIterator[list[str]]:
    """The keys under ``prefix``, those of one conversation or import at a time."""
    group: list[str] = []
    async for key in _listed(store, prefix):
        if group and _owner(group[0], prefix) != _owner(key, prefix):
            yield group
            group = []
        group.append(key)
    if group:
        yield group


def _owner(key: str, prefix: str) -> str:
    return key[len(prefix) :].partition("/")[0]


async def _conversation(store: ObjectStore, account: AccountId, group: Sequence[str]) -> list[str]:
    by_kind: dict[str, list[str]] = defaultdict(list)
    for key in group:
        by_kind[key.split("/")[3]].append(key)
    heads = by_kind["head"]
    log = [await _read(store, key, codec.decode_head) for key in heads]
    if not log or log[-1].account_id != account:
        return []
    conversation_id = log[-1].conversation_id
    stored = set(by_kind["segments"])
    manifests: dict[str, list[str]] = defaultdict(list)
    for key in by_kind["revisions"]:
        manifests[key.rsplit("/", 1)[1].partition(".")[0]].append(key)
    chosen = list(heads)
    for revision_id in sorted(_living_revisions(log)):
        if not manifests[revision_id]:
            raise _missing(keys.manifest(conversation_id, revision_id))
        newest = max(manifests[revision_id], key=_compaction)
        for key in manifests[revision_id]:
            manifest = await _read(store, key, codec.decode_manifest)
            segments = {keys.segment(conversation_id, ref.sha256) for ref in manifest.segments}
            if key == newest and not segments <= stored:
                raise _missing(min(segments - stored))
            chosen += [key, *(segments & stored)]
    return list(dict.fromkeys(chosen))


def _living_revisions(log: Sequence[HeadEntry]) -> set[str]:
    """The revisions that still have to be there: a deletion purges those before it."""
    living: set[str] = set()
    for entry in log:
        if entry.deleted:
            living.clear()
        elif entry.revision_id is not None:
            living.add(entry.revision_id)
    return living


def _compaction(key: str) -> int:
    return int(key.rsplit("/", 1)[1].removesuffix(".json").partition(".")[2] or 0)


async def _import(store: ObjectStore, account: AccountId, group: Sequence[str], *, sources: bool) -> list[str]:
    import_id = _owner(group[0], keys.IMPORTS)
    if keys.import_record(import_id) not in group:
        return []
    record = await _read(store, keys.import_record(import_id), records.decode_record)
    if record.account != account:
        return []
    finished = keys.import_receipt(import_id) in group
    return [key for key in group if sources or not finished or "/source/" not in key]


async def _read(store: ObjectStore, key: str, decode: Callable[[bytes], T]) -> T:
    try:
        return decode(await store.get(key))
    except ObjectNotFound:
        raise _missing(key) from None
    except UnreadableObject as error:
        raise MempersistError(Code.CANONICAL_STORAGE, f"object {key} is damaged: {error}", status=500) from error


def _missing(key: str) -> MempersistError:
    return MempersistError(Code.CANONICAL_STORAGE, f"object {key} is missing, though the archive refers to it")
