"""Segments: content-addressed runs of node lines, and where each node's line lies in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from mempersist import canonical
from mempersist.archive import codec
from mempersist.archive.model import Node, SegmentRef
from mempersist.limits import MAX_SEGMENT_BYTES


@dataclass(frozen=True, slots=True)
class Placement:
    """A node, the hash of its line, and the line's bytes ``offset`` .. ``offset + length`` in segment ``sha256``."""

    node: Node
    node_hash: str
    sha256: str
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment ready to be stored."""

    ref: SegmentRef
    data: bytes
    placements: tuple[Placement, ...]


@dataclass(frozen=True, slots=True)
class EncodedNode:
    node: Node
    line: bytes
    node_hash: str


def encode_nodes(nodes: Iterable[Node]) -> tuple[EncodedNode, ...]:
    """:raises ValueError: / :raises RecursionError: for a raw node that canonical JSON cannot hold."""
    encoded = []
    for node in nodes:
        line = codec.encode_node(node)
        encoded.append(EncodedNode(node, line, canonical.sha256_hex(line)))
    return tuple(encoded)


def build(conversation_id: str, nodes: Iterable[EncodedNode]) -> Iterator[Segment]:
    """Segments of at most ``MAX_SEGMENT_BYTES``; a node larger than that has one of its own."""
    header = _header(conversation_id)
    batch: list[EncodedNode] = []
    size = len(header)
    for node in nodes:
        if batch and size + len(node.line) + 1 > MAX_SEGMENT_BYTES:
            yield _segment(header, batch)
            batch, size = [], len(header)
        batch.append(node)
        size += len(node.line) + 1
    if batch:
        yield _segment(header, batch)


def readdressed(conversation_id: str, data: bytes, sha256: str) -> Segment:
    """A stored segment as one of another conversation: its node lines byte for byte behind another header.

    :raises UnreadableObject: if the bytes are not those of ``sha256``.
    """
    nodes = [
        EncodedNode(placement.node, data[placement.offset : placement.offset + placement.length], placement.node_hash)
        for placement in parse(data, sha256)
    ]
    return _segment(_header(conversation_id), nodes)


def _header(conversation_id: str) -> bytes:
    return canonical.dumps({"format": codec.SEGMENT_FORMAT, "conversationId": conversation_id}) + b"\n"


def _segment(header: bytes, nodes: list[EncodedNode]) -> Segment:
    data = b"".join((header, *(node.line + b"\n" for node in nodes)))
    sha256 = canonical.sha256_hex(data)
    placements = []
    offset = len(header)
    for node in nodes:
        placements.append(Placement(node.node, node.node_hash, sha256, offset, len(node.line)))
        offset += len(node.line) + 1
    return Segment(SegmentRef(sha256, len(data), len(nodes)), data, tuple(placements))


def parse(data: bytes, sha256: str) -> Iterator[Placement]:
    """The nodes of a stored segment. :raises UnreadableObject: if the bytes are not those of ``sha256``."""
    if canonical.sha256_hex(data) != sha256:
        raise codec.UnreadableObject(f"segment {sha256} does not match its hash")
    offset = data.find(b"\n") + 1
    header = canonical.loads(data[:offset] or b"{}")
    if header.get("format") != codec.SEGMENT_FORMAT:
        raise codec.UnreadableObject(f"segment {sha256} has a format that is not known here")
    while offset < len(data):
        end = data.index(b"\n", offset)
        line = data[offset:end]
        yield Placement(codec.decode_node(line), canonical.sha256_hex(line), sha256, offset, len(line))
        offset = end + 1
