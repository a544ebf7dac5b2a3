"""New revisions: what changes when messages are written or a newer export arrives.

Every function here is pure. It takes what is there and what is new, and gives the parts of a commit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mempersist import canonical
from mempersist.archive import graph, keys, load, segments
from mempersist.archive.load import LoadedRevision
from mempersist.archive.model import JsonObject, Manifest, Node, SourceConversation
from mempersist.archive.segments import EncodedNode, Placement, Segment
from mempersist.catalog.fold import MessageRow, StoredManifest, message_rows


@dataclass(frozen=True, slots=True)
class NewRevision:
    """A revision that is not written yet: its manifest, the segments that hold its new nodes, its rows."""

    manifest: Manifest
    segments: tuple[Segment, ...]
    messages: tuple[MessageRow, ...]
    replace_messages: bool

    @property
    def stored(self) -> StoredManifest:
        """The manifest with the key it will have."""
        return StoredManifest(self.manifest, keys.manifest(self.manifest.conversation_id, self.manifest.revision_id))


def extended(conversation_id: str, base: StoredManifest | None, nodes: Sequence[Node], at: str) -> NewRevision:
    """``base`` with ``nodes`` behind its current node. Reads and writes only what is new."""
    return _behind(base.manifest if base else _nothing(conversation_id), nodes, at)


def rewritten(base: StoredManifest, nodes: Sequence[Node], at: str) -> NewRevision:
    """``nodes`` alone, in place of all that ``base`` says. What the last import brought is still known as such."""
    before = base.manifest
    kept = replace(
        _nothing(before.conversation_id),
        source_digest=before.source_digest,
        source_updated_at=before.source_updated_at,
        metadata=before.metadata,
        derived_from=before.derived_from,
    )
    return replace(_behind(kept, nodes, at), replace_messages=True)


def _behind(before: Manifest, nodes: Sequence[Node], at: str) -> NewRevision:
    encoded = segments.encode_nodes(nodes)
    built = tuple(segments.build(before.conversation_id, encoded))
    manifest = _identified(
        replace(
            before,
            nodes_digest=canonical.extend_digest(before.nodes_digest, (node.node_hash for node in encoded)),
            current_source_node_id=nodes[-1].source_node_id,
            node_count=before.node_count + len(nodes),
            message_count=before.message_count + len(nodes),
            segments=(*before.segments, *(segment.ref for segment in built)),
            created_at=at,
        )
    )
    rows = tuple(
        MessageRow(placement, before.node_count + index, before.message_count + index)
        for index, placement in enumerate(_placements(built))
    )
    return NewRevision(manifest, built, rows, replace_messages=False)


def imported(conversation_id: str, source: SourceConversation, nodes: Sequence[EncodedNode], at: str) -> NewRevision:
    """The first revision of an imported conversation. ``nodes`` are ``source.nodes`` encoded."""
    return _with_source(
        _nothing(conversation_id), (), nodes, source.current_source_node_id, source_fields(source, nodes), at
    )


def merged(
    base: LoadedRevision, source: SourceConversation, nodes: Sequence[EncodedNode], at: str, *, newer: bool
) -> NewRevision | None:
    """``base`` with what another export of the conversation adds; None if that is nothing.

    No node is ever dropped. A newer export replaces the nodes it knows and sets the current node, unless messages were
    written here behind the node that is current in it, or in place of all that was imported: then those stay current.
    An older one only adds nodes.
    """
    known = {placement.node.source_node_id: placement for placement in base.placements}
    before = base.stored.manifest
    current = before.current_source_node_id
    if newer:
        written_here = current is not None and current in known and known[current].node.raw is None
        replaced = all(known[node_id].node.raw is None for node_id in base.active)
        if not (written_here and (replaced or source.current_source_node_id in base.active)):
            current = source.current_source_node_id
        fields = source_fields(source, nodes)
    else:
        fields = SourceFields(before.source_digest, before.source_updated_at, before.metadata, before.anomalies)
    fresh = [
        node
        for node in nodes
        if node.node.source_node_id not in known
        or (newer and known[node.node.source_node_id].node_hash != node.node_hash)
    ]
    revision = _with_source(before, base.placements, fresh, current, fields, at)
    return None if revision.manifest.revision_id == before.revision_id else revision


@dataclass(frozen=True, slots=True)
class SourceFields:
    """What a manifest keeps of the export that set it."""

    digest: str | None
    updated_at: str | None
    metadata: JsonObject
    anomalies: tuple[str, ...]


def source_fields(source: SourceConversation, nodes: Sequence[EncodedNode]) -> SourceFields:
    """``digest`` covers what an export says of a conversation, whatever else was written to it here."""
    digest = canonical.identity(
        "source",
        canonical.extend_digest("", (node.node_hash for node in nodes)),
        source.current_source_node_id,
        canonical.dumps([source.metadata, list(source.anomalies)]).decode(),
    )
    return SourceFields(digest, source.updated_at, source.metadata, source.anomalies)


def _with_source(
    before: Manifest,
    placements: Sequence[Placement],
    fresh: Sequence[EncodedNode],
    current: str | None,
    fields: SourceFields,
    at: str,
) -> NewRevision:
    built = tuple(segments.build(before.conversation_id, fresh))
    ordered = load.in_order((*placements, *_placements(built)))
    active = graph.active_path(graph.parents_of(item.node for item in ordered), current).node_ids
    rows = message_rows(ordered, active)
    manifest = _identified(
        replace(
            before,
            nodes_digest=canonical.extend_digest("", (item.node_hash for item in ordered)),
            source_digest=fields.digest,
            source_updated_at=fields.updated_at,
            # What the active branch really ends at, so that an append has a parent even where the export named none.
            current_source_node_id=active[-1] if active else None,
            node_count=len(ordered),
            message_count=sum(row.sequence is not None for row in rows),
            segments=(*before.segments, *(segment.ref for segment in built)),
            metadata=fields.metadata,
            anomalies=fields.anomalies,
            created_at=at,
        )
    )
    return NewRevision(manifest, built, rows, replace_messages=bool(placements))


def _nothing(conversation_id: str) -> Manifest:
    return Manifest(
        conversation_id=conversation_id,
        revision_id="",
        content_hash="",
        nodes_digest="",
        source_digest=None,
        current_source_node_id=None,
        node_count=0,
        message_count=0,
        segments=(),
    )


def _identified(manifest: Manifest) -> Manifest:
    content = canonical.content_hash(manifest.nodes_digest, manifest.current_source_node_id, manifest.metadata)
    revision = canonical.revision_id(manifest.conversation_id, content)
    return replace(manifest, content_hash=content, revision_id=revision)


def _placements(built: Sequence[Segment]) -> list[Placement]:
    return [placement for segment in built for placement in segment.placements]
