"""One conversation's objects: its head log, the revisions that it names, and their segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mempersist import canonical
from mempersist.archive import codec, keys
from mempersist.archive.model import HeadEntry, Manifest
from mempersist.ports import ObjectInfo, ObjectNotFound, Ports
from mempersist.recovery.verify.chains import check_chain
from mempersist.recovery.verify.findings import Slice, Verification


@dataclass(frozen=True, slots=True)
class Found:
    """What the archive says of a conversation. ``head`` is None where no log can be read."""

    conversation_id: str
    head: HeadEntry | None
    head_hash: str | None
    manifest: Manifest | None


async def check(
    ports: Ports, conversation_id: str, objects: Sequence[ObjectInfo], part: Slice, report: Verification
) -> Found:
    """Check the objects of a conversation, given in the order of their keys."""
    root = keys.conversation(conversation_id)
    present = {info.key: info for info in objects}
    log = [info for info in objects if info.key.startswith(f"{root}head/")]
    chain = await check_chain(
        ports,
        log,
        codec.decode_head,
        lambda entry: entry.conversation_id == conversation_id,
        report,
        begins=lambda entry: entry.deleted,
    )
    named = {info.key for info in log}
    current: dict[str, Manifest] = {}
    for entry, _ in _since_the_last_tombstone(chain):
        revision = entry.revision_id
        if revision is not None and revision not in current:
            found = await _revision(ports, conversation_id, revision, present, named, report)
            if found is not None:
                current[revision] = found
    for manifest in current.values():
        for ref in manifest.segments:
            named.add(keys.segment(conversation_id, ref.sha256))
    sizes = {ref.sha256: ref.size_bytes for manifest in current.values() for ref in manifest.segments}
    for sha256, size in sizes.items():
        await _segment(ports, keys.segment(conversation_id, sha256), sha256, size, present, part, report)
    for key in present.keys() - named:
        known = key.startswith((f"{root}segments/", f"{root}revisions/"))
        report.found("UNCOMMITTED" if known else "STRANGER", key)
    if not chain:
        return Found(conversation_id, None, None, None)
    head, head_hash = chain[-1]
    report.tombstones += head.deleted
    report.conversations += not head.deleted
    return Found(conversation_id, head, head_hash, current.get(head.revision_id or ""))


def _since_the_last_tombstone(chain: Sequence[tuple[HeadEntry, str]]) -> Sequence[tuple[HeadEntry, str]]:
    """Entries whose bodies must be there: those of before a deletion are purged."""
    last = max((place for place, (entry, _) in enumerate(chain) if entry.deleted), default=-1)
    return chain[last + 1 :]


async def _revision(
    ports: Ports,
    conversation_id: str,
    revision_id: str,
    present: dict[str, ObjectInfo],
    named: set[str],
    report: Verification,
) -> Manifest | None:
    """The newest form of a revision's manifest; every form is named, since a compaction leaves the earlier one."""
    first = keys.manifest(conversation_id, revision_id)
    forms = sorted(
        (key for key in present if key == first or key.startswith(first.removesuffix("json"))),
        key=lambda key: (len(key), key),
    )
    named.update(forms)
    if not forms:
        report.found("REVISION_MISSING", first)
        return None
    try:
        manifest = codec.decode_manifest(await ports.objects.get(forms[-1]))
    except (codec.UnreadableObject, ObjectNotFound):
        report.found("REVISION_UNREADABLE", forms[-1])
        return None
    if manifest.conversation_id != conversation_id or manifest.revision_id != revision_id:
        report.found("REVISION_UNREADABLE", forms[-1])
        return None
    return manifest


async def _segment(
    ports: Ports,
    key: str,
    sha256: str,
    size: int,
    present: dict[str, ObjectInfo],
    part: Slice,
    report: Verification,
) -> None:
    info = present.get(key)
    if info is None:
        report.found("SEGMENT_MISSING", key)
    elif info.size != size:
        report.found("SEGMENT_DAMAGED", key)
    elif part.holds(key):
        try:
            data = await ports.objects.get(key)
        except ObjectNotFound:
            report.found("SEGMENT_MISSING", key)
            return
        report.hashed += len(data)
        if canonical.sha256_hex(data) != sha256:
            report.found("SEGMENT_DAMAGED", key)
