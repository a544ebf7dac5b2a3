"""Promise 8: what is written is read back unchanged, and a format that is not known is refused, never guessed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import canonical
from mempersist.archive import codec, segments
from mempersist.archive.model import (
    OWNER,
    AccountEntry,
    AssetRecord,
    AssetRef,
    HeadEntry,
    Manifest,
    Node,
    SegmentRef,
)
from mempersist.limits import MAX_SEGMENT_BYTES
from tests.rigs import conversations as make

text = st.text(max_size=30)
maybe = st.none() | text.filter(bool)
metadata = st.dictionaries(text, st.integers() | text, max_size=3)

nodes = st.builds(
    Node,
    source_node_id=text,
    parent_source_node_id=st.none() | text,
    role=text,
    text=st.text(alphabet=st.characters(codec=None), max_size=50),
    kind=text,
    created_at=maybe,
    updated_at=maybe,
    model_slug=maybe,
    hidden=st.booleans(),
    assets=st.lists(st.builds(AssetRef, text.filter(bool), text.filter(bool), st.just("image"), maybe, maybe)).map(
        tuple
    ),
    raw=st.none() | metadata,
)
manifests = st.builds(
    Manifest,
    conversation_id=text,
    revision_id=text,
    content_hash=text,
    nodes_digest=text,
    source_digest=maybe,
    current_source_node_id=st.none() | text,
    node_count=st.integers(0, 9),
    message_count=st.integers(0, 9),
    segments=st.lists(st.builds(SegmentRef, text, st.integers(0), st.integers(0))).map(tuple),
    metadata=metadata,
    anomalies=st.lists(text).map(tuple),
    derived_from=st.none() | metadata.filter(bool),
    created_at=text,
    source_updated_at=maybe,
)
heads = st.builds(
    HeadEntry,
    conversation_id=text,
    seq=st.integers(0, 99),
    operation=st.sampled_from(["import", "store", "append", "delete"]),
    account_id=st.just(OWNER),
    namespace=text,
    title=text,
    tags=st.lists(text).map(tuple),
    revision_id=maybe,
    source_type=text,
    source_id=maybe,
    created_at=maybe,
    updated_at=text,
    at=text,
    previous_hash=st.none() | text,
    import_id=maybe,
    import_position=maybe,
    idempotency_key=maybe,
    request_hash=maybe,
)


@given(nodes)
def test_a_node_reads_back_as_it_was(node: Node) -> None:
    assert codec.decode_node(codec.encode_node(node)) == node


@given(manifests)
def test_a_manifest_reads_back_as_it_was(manifest: Manifest) -> None:
    assert codec.decode_manifest(codec.encode_manifest(manifest)) == manifest


@given(heads)
def test_a_head_entry_reads_back_as_it_was(entry: HeadEntry) -> None:
    assert codec.decode_head(codec.encode_head(entry)) == entry


@given(metadata, st.integers(0, 5))
def test_an_account_entry_reads_back_as_it_was(values: dict[str, object], seq: int) -> None:
    entry = AccountEntry(OWNER, seq, "profile", values, "2026-01-01T00:00:00.000Z", None)
    assert codec.decode_account_entry(codec.encode_account_entry(entry)) == entry


@given(text, maybe)
def test_an_asset_record_reads_back_as_it_was(asset_id: str, filename: str | None) -> None:
    record = AssetRecord(OWNER, asset_id, "0" * 64, 3, "image/png", filename, "import")
    assert codec.decode_asset_record(codec.encode_asset_record(record)) == record


@pytest.mark.parametrize(
    "decode",
    [codec.decode_manifest, codec.decode_head, codec.decode_account_entry, codec.decode_asset_record],
)
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"format":"mempersist.something.v9"}',
        b"\xff\xfe",
        b'{"format":["x"]}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_known_object_are_refused(decode: object, data: bytes) -> None:
    with pytest.raises(codec.UnreadableObject):
        decode(data)  # type: ignore[operator]


def test_an_object_without_a_required_field_is_refused() -> None:
    with pytest.raises(codec.UnreadableObject, match="KeyError"):
        codec.decode_head(canonical.dumps({"format": codec.HEAD_FORMAT, "seq": 1}))


@given(st.lists(nodes, max_size=5))
def test_a_segment_says_where_each_line_lies(written: list[Node]) -> None:
    for segment in segments.build("c", segments.encode_nodes(written)):
        placements = list(segments.parse(segment.data, segment.ref.sha256))
        assert tuple(placements) == segment.placements
        for placement in placements:
            line = segment.data[placement.offset : placement.offset + placement.length]
            assert codec.decode_node(line) == placement.node
            assert canonical.sha256_hex(line) == placement.node_hash


def test_nodes_that_exceed_a_segment_go_to_the_next() -> None:
    third = "x" * (MAX_SEGMENT_BYTES // 3)
    written = [make.node(f"n{index}", None, third) for index in range(5)]
    built = list(segments.build("c", segments.encode_nodes(written)))
    assert all(segment.ref.size_bytes <= MAX_SEGMENT_BYTES for segment in built)
    assert [placement.node for segment in built for placement in segment.placements] == written


def test_a_node_larger_than_a_segment_has_one_of_its_own() -> None:
    written = [make.node("n0", None, "a"), make.node("n1", None, "x" * MAX_SEGMENT_BYTES), make.node("n2", None, "b")]
    assert [segment.ref.nodes for segment in segments.build("c", segments.encode_nodes(written))] == [1, 1, 1]


def test_a_damaged_segment_is_refused() -> None:
    segment = next(iter(segments.build("c", segments.encode_nodes([make.node("n0", None, "hello")]))))
    with pytest.raises(codec.UnreadableObject, match="does not match its hash"):
        list(segments.parse(segment.data.replace(b"hello", b"hellO"), segment.ref.sha256))
