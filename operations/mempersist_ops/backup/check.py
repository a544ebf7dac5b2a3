"""Reading a backup back: every byte, every list, every signature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from mempersist import canonical
from mempersist.errors import MempersistError
from mempersist.imports.bodies import object_sha256
from mempersist.ports import ObjectNotFound, ObjectStore
from mempersist_ops.archive_file import scratch
from mempersist_ops.archive_file.layout import ObjectLine
from mempersist_ops.backup import layout, repository
from mempersist_ops.backup.layout import Snapshot

PROBLEMS: Final = {
    "SNAPSHOT_DAMAGED": "a snapshot cannot be read",
    "SIGNATURE_WRONG": "a snapshot was changed after it was signed, or signed with another key",
    "SIGNATURE_UNKNOWN": "a snapshot is signed with a key that is not here, so its signature was not checked",
    "LIST_DAMAGED": "a part of a snapshot's list is missing or damaged",
    "BLOB_MISSING": "the bytes of an object are not there",
    "BLOB_DAMAGED": "the bytes of an object are not those that were copied",
    "DIGEST_DIFFERS": "the objects do not fold to the catalog that the snapshot names",
    "EXTRA": "no snapshot names this object; it takes room and does no harm",
}
HARMLESS: Final = frozenset({"SIGNATURE_UNKNOWN", "EXTRA"})


@dataclass(slots=True)
class Checked:
    """``problems`` are codes of :data:`PROBLEMS` with what they are about: a snapshot's id, or a key of the backup."""

    snapshots: int = 0
    objects: int = 0
    hashed: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def counts(self) -> Counter[str]:
        return Counter(code for code, _ in self.problems)

    @property
    def good(self) -> bool:
        return not self.counts.keys() - HARMLESS


async def check(store: ObjectStore, key: bytes | None, progress: Callable[[int], None] = lambda _: None) -> Checked:
    """Read everything. The newest readable snapshot is also folded, which proves that it can be restored.

    :param key: what snapshots are signed with; None where it is not at hand.
    """
    await repository.require(store)
    report = Checked()
    named: dict[str, int] = {}
    parts: set[str] = set()
    newest: tuple[Snapshot, dict[str, ObjectLine]] | None = None
    for snapshot_id in await repository.snapshot_ids(store):
        report.snapshots += 1
        try:
            of = await repository.snapshot(store, snapshot_id)
        except MempersistError:
            report.problems.append(("SNAPSHOT_DAMAGED", snapshot_id))
            continue
        _check_signature(of, key, report)
        try:
            listed = {line.key: line async for line in repository.lines(store, of)}
        except MempersistError:
            report.problems.append(("LIST_DAMAGED", snapshot_id))
            parts.update(of.parts)
            continue
        parts.update(of.parts)
        named.update({line.sha256: line.size for line in listed.values()})
        newest = (of, listed)
    await _check_blobs(store, named, report, progress)
    known = {layout.list_part(part) for part in parts} | {layout.blob(sha256) for sha256 in named}
    await _find_extra(store, known, report)
    if newest is not None and not report.counts["BLOB_MISSING"] and not report.counts["BLOB_DAMAGED"]:
        of, listed = newest
        if await _digest(store, listed) != of.catalog_digest:
            report.problems.append(("DIGEST_DIFFERS", of.id))
    return report


def _check_signature(of: Snapshot, key: bytes | None, report: Checked) -> None:
    if key is None or of.key_id != layout.key_id_of(key):
        report.problems.append(("SIGNATURE_UNKNOWN", of.id))
    elif not of.is_signed_by(key):
        report.problems.append(("SIGNATURE_WRONG", of.id))


async def _check_blobs(
    store: ObjectStore, named: dict[str, int], report: Checked, progress: Callable[[int], None]
) -> None:
    for done, (sha256, size) in enumerate(sorted(named.items())):
        progress(done)
        problem = await blob_problem(store, sha256, size)
        if problem is not None:
            report.problems.append((problem, layout.blob(sha256)))
        report.objects += 1
        report.hashed += size


async def blob_problem(store: ObjectStore, sha256: str, size: int) -> str | None:
    """What is wrong with the bytes under this hash, if anything."""
    where = layout.blob(sha256)
    info = await store.head(where)
    if info is None:
        return "BLOB_MISSING"
    if info.size != size:
        return "BLOB_DAMAGED"
    try:
        found = await object_sha256(store, where, size) if size else canonical.sha256_hex(b"")
    except ObjectNotFound:
        return "BLOB_MISSING"
    return None if found == sha256 else "BLOB_DAMAGED"


async def _find_extra(store: ObjectStore, named: set[str], report: Checked) -> None:
    cursor: str | None = None
    while True:
        page = await store.list("", cursor=cursor)
        for info in page.objects:
            ours = info.key == layout.FORMAT_KEY or info.key.startswith(layout.SNAPSHOTS)
            if not ours and info.key not in named:
                report.problems.append(("EXTRA", info.key))
        cursor = page.cursor
        if cursor is None:
            return


async def _digest(store: ObjectStore, listed: dict[str, ObjectLine]) -> str | None:
    try:
        return (await scratch.digest_of(repository.ObjectsThen(store, listed))).total
    except MempersistError:
        return None
