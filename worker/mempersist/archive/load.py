"""Reading canonical objects: head logs, manifests, and the nodes of a revision in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mempersist import canonical
from mempersist.archive import codec, graph, keys, segments
from mempersist.archive.model import HeadEntry, Manifest, Node
from mempersist.archive.segments import Placement
from mempersist.catalog.fold import StoredManifest
from mempersist.concurrency import gather
from mempersist.ports import ObjectNotFound, ObjectStore


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    """A revision with all its nodes. ``active`` is the path from the root to the current node."""

    stored: StoredManifest
    placements: tuple[Placement, ...]
    active: tuple[str, ...]

    @property
    def nodes(self) -> tuple[Node, ...]:
        return tuple(placement.node for placement in self.placements)


async def head_log(objects: ObjectStore, conversation_id: str, *, after: int = -1) -> list[tuple[HeadEntry, str]]:
    """The head entries with ``seq > after``, in order, each with its hash.

    :raises UnreadableObject: for a damaged entry.
    """
    log: list[tuple[HeadEntry, str]] = []
    cursor: str | None = None
    while True:
        page = await objects.list(keys.head_prefix(conversation_id), cursor=cursor)
        for info in page.objects:
            if int(info.key.rsplit("/", 1)[1].removesuffix(".json")) > after:
                data = await objects.get(info.key)
                log.append((codec.decode_head(data), canonical.sha256_hex(data)))
        cursor = page.cursor
        if cursor is None:
            return log


async def head_entry(objects: ObjectStore, conversation_id: str, seq: int) -> tuple[HeadEntry, str] | None:
    try:
        data = await objects.get(keys.head(conversation_id, seq))
    except ObjectNotFound:
        return None
    return codec.decode_head(data), canonical.sha256_hex(data)


async def manifest(objects: ObjectStore, key: str) -> StoredManifest:
    """:raises ObjectNotFound: / :raises UnreadableObject:"""
    return StoredManifest(codec.decode_manifest(await objects.get(key)), key)


async def manifests(objects: ObjectStore, conversation_id: str) -> dict[str, StoredManifest]:
    """Every revision's manifest as last compacted, by revision id."""
    newest: dict[str, tuple[int, str]] = {}
    cursor: str | None = None
    while True:
        page = await objects.list(f"{keys.conversation(conversation_id)}revisions/", cursor=cursor)
        for info in page.objects:
            revision, _, compaction = info.key.rsplit("/", 1)[1].removesuffix(".json").partition(".")
            candidate = (int(compaction or 0), info.key)
            newest[revision] = max(newest.get(revision, candidate), candidate)
        cursor = page.cursor
        if cursor is None:
            break
    stored = await gather(manifest(objects, key) for _, key in newest.values())
    return {item.manifest.revision_id: item for item in stored}


def in_order(placements: Iterable[Placement]) -> tuple[Placement, ...]:
    """The nodes of a revision in canonical order, a later placement of a node standing for an earlier one.

    Nodes of a source come first, by id, whatever the order of the exports that brought them; nodes written through
    the service follow in the order in which they were written.
    """
    latest: dict[str, Placement] = {}
    for placement in placements:
        latest[placement.node.source_node_id] = placement
    imported = sorted(
        (item for item in latest.values() if item.node.raw is not None), key=lambda item: item.node.source_node_id
    )
    return (*imported, *(item for item in latest.values() if item.node.raw is None))


async def revision(objects: ObjectStore, stored: StoredManifest) -> LoadedRevision:
    """All nodes of a revision. :raises ObjectNotFound: / :raises UnreadableObject:"""
    conversation_id = stored.manifest.conversation_id
    blobs = await gather(objects.get(keys.segment(conversation_id, ref.sha256)) for ref in stored.manifest.segments)
    placements = in_order(
        placement
        for ref, data in zip(stored.manifest.segments, blobs, strict=True)
        for placement in segments.parse(data, ref.sha256)
    )
    return LoadedRevision(stored, placements, active_ids(placements, stored.manifest))


def active_ids(placements: Sequence[Placement], of: Manifest) -> tuple[str, ...]:
    parents = graph.parents_of(placement.node for placement in placements)
    return graph.active_path(parents, of.current_source_node_id).node_ids
