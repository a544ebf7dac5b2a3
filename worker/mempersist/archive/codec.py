"""The archive's objects as bytes: one writer for the newest version of each format, one reader for every version.

All are canonical JSON. Absent and default values are left out, so that adding a field changes no byte of older
objects. A reader ignores fields it does not know.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mempersist import canonical
from mempersist.archive.model import (
    AccountEntry,
    AssetRecord,
    AssetRef,
    HeadEntry,
    JsonObject,
    Manifest,
    Node,
    SegmentRef,
)
from mempersist.ports import AccountId

BUCKET_FORMAT = "mempersist.bucket.v1"
SEGMENT_FORMAT = "mempersist.conversation-segment.v1"
MANIFEST_FORMAT = "mempersist.conversation-revision.v1"
HEAD_FORMAT = "mempersist.conversation-head.v1"
ACCOUNT_FORMAT = "mempersist.account-entry.v1"
ASSET_FORMAT = "mempersist.asset.v1"


class UnreadableObject(ValueError):
    """An object is not what its key says: damaged, or of a format version newer than this program."""


def _object(data: bytes, expected: str, readers: dict[str, Callable[[JsonObject], Any]]) -> Any:
    try:
        value = canonical.loads(data)
        reader = readers.get(value["format"])
        if reader is None:
            raise UnreadableObject(f"format {str(value['format'])[:80]!r} is not known here; expected {expected}")
        return reader(value)
    except UnreadableObject:
        raise
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableObject(f"not a valid {expected} object ({type(error).__name__})") from error


def _present(**values: Any) -> JsonObject:
    """``values`` without those that say nothing: None, empty strings and empty collections."""
    return {key: value for key, value in values.items() if value not in (None, "", [], {}, ())}


# ------------------------------------------------------------------ nodes


def _asset_ref(ref: AssetRef) -> JsonObject:
    return _present(assetId=ref.asset_id, pointer=ref.pointer, kind=ref.kind, name=ref.name, mediaType=ref.media_type)


def encode_node(node: Node) -> bytes:
    """The node's line in a segment, without the newline. Its SHA-256 is the node hash."""
    value: JsonObject = {
        "sourceNodeId": node.source_node_id,
        "parentSourceNodeId": node.parent_source_node_id,
        "role": node.role,
        "kind": node.kind,
        "text": node.text,
        **_present(
            createdAt=node.created_at,
            updatedAt=node.updated_at,
            modelSlug=node.model_slug,
            assets=[_asset_ref(ref) for ref in node.assets],
        ),
    }
    if node.hidden:
        value["hidden"] = True
    if node.raw is not None:
        value["raw"] = node.raw
    return canonical.dumps({"type": "node", "node": value})


def decode_node(line: bytes) -> Node:
    """:raises UnreadableObject:"""
    try:
        value = canonical.loads(line)["node"]
        return Node(
            source_node_id=value["sourceNodeId"],
            parent_source_node_id=value["parentSourceNodeId"],
            role=value["role"],
            kind=value["kind"],
            text=value["text"],
            created_at=value.get("createdAt"),
            updated_at=value.get("updatedAt"),
            model_slug=value.get("modelSlug"),
            hidden=value.get("hidden", False),
            assets=tuple(
                AssetRef(
                    asset_id=ref["assetId"],
                    pointer=ref.get("pointer", ref["assetId"]),
                    kind=ref["kind"],
                    name=ref.get("name"),
                    media_type=ref.get("mediaType"),
                )
                for ref in value.get("assets", ())
            ),
            raw=value.get("raw"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableObject(f"not a valid node line ({type(error).__name__})") from error


# ------------------------------------------------------------------ manifests


def encode_manifest(manifest: Manifest) -> bytes:
    return canonical.dumps(
        {
            "format": MANIFEST_FORMAT,
            "conversationId": manifest.conversation_id,
            "revisionId": manifest.revision_id,
            "contentHash": manifest.content_hash,
            "nodesDigest": manifest.nodes_digest,
            "currentSourceNodeId": manifest.current_source_node_id,
            "nodeCount": manifest.node_count,
            "messageCount": manifest.message_count,
            "createdAt": manifest.created_at,
            "segments": [
                {"sha256": ref.sha256, "sizeBytes": ref.size_bytes, "nodes": ref.nodes} for ref in manifest.segments
            ],
            **_present(
                sourceDigest=manifest.source_digest,
                sourceUpdatedAt=manifest.source_updated_at,
                metadata=manifest.metadata,
                anomalies=list(manifest.anomalies),
                derivedFrom=manifest.derived_from,
            ),
        }
    )


def _manifest_v1(value: JsonObject) -> Manifest:
    return Manifest(
        conversation_id=value["conversationId"],
        revision_id=value["revisionId"],
        content_hash=value["contentHash"],
        nodes_digest=value["nodesDigest"],
        source_digest=value.get("sourceDigest"),
        current_source_node_id=value["currentSourceNodeId"],
        node_count=value["nodeCount"],
        message_count=value["messageCount"],
        segments=tuple(SegmentRef(ref["sha256"], ref["sizeBytes"], ref["nodes"]) for ref in value["segments"]),
        metadata=value.get("metadata", {}),
        anomalies=tuple(value.get("anomalies", ())),
        derived_from=value.get("derivedFrom"),
        created_at=value["createdAt"],
        source_updated_at=value.get("sourceUpdatedAt"),
    )


def decode_manifest(data: bytes) -> Manifest:
    """:raises UnreadableObject:"""
    manifest: Manifest = _object(data, MANIFEST_FORMAT, {MANIFEST_FORMAT: _manifest_v1})
    return manifest


# ------------------------------------------------------------------ head log


def encode_head(entry: HeadEntry) -> bytes:
    return canonical.dumps(
        {
            "format": HEAD_FORMAT,
            "conversationId": entry.conversation_id,
            "seq": entry.seq,
            "operation": entry.operation,
            "accountId": entry.account_id,
            "namespace": entry.namespace,
            "sourceType": entry.source_type,
            "updatedAt": entry.updated_at,
            "at": entry.at,
            "previousHash": entry.previous_hash,
            **_present(
                title=entry.title,
                tags=list(entry.tags),
                revisionId=entry.revision_id,
                sourceId=entry.source_id,
                createdAt=entry.created_at,
                importId=entry.import_id,
                importPosition=entry.import_position,
                idempotencyKey=entry.idempotency_key,
                requestHash=entry.request_hash,
            ),
        }
    )


def _head_v1(value: JsonObject) -> HeadEntry:
    return HeadEntry(
        conversation_id=value["conversationId"],
        seq=value["seq"],
        operation=value["operation"],
        account_id=AccountId(value["accountId"]),
        namespace=value["namespace"],
        title=value.get("title", ""),
        tags=tuple(value.get("tags", ())),
        revision_id=value.get("revisionId"),
        source_type=value["sourceType"],
        source_id=value.get("sourceId"),
        created_at=value.get("createdAt"),
        updated_at=value["updatedAt"],
        at=value["at"],
        previous_hash=value["previousHash"],
        import_id=value.get("importId"),
        import_position=value.get("importPosition"),
        idempotency_key=value.get("idempotencyKey"),
        request_hash=value.get("requestHash"),
    )


def decode_head(data: bytes) -> HeadEntry:
    """:raises UnreadableObject:"""
    entry: HeadEntry = _object(data, HEAD_FORMAT, {HEAD_FORMAT: _head_v1})
    return entry


# ------------------------------------------------------------------ account log and assets


def encode_account_entry(entry: AccountEntry) -> bytes:
    return canonical.dumps(
        {
            "format": ACCOUNT_FORMAT,
            "accountId": entry.account_id,
            "seq": entry.seq,
            "operation": entry.operation,
            "values": entry.values,
            "at": entry.at,
            "previousHash": entry.previous_hash,
        }
    )


def _account_v1(value: JsonObject) -> AccountEntry:
    return AccountEntry(
        account_id=AccountId(value["accountId"]),
        seq=value["seq"],
        operation=value["operation"],
        values=value["values"],
        at=value["at"],
        previous_hash=value["previousHash"],
    )


def decode_account_entry(data: bytes) -> AccountEntry:
    """:raises UnreadableObject:"""
    entry: AccountEntry = _object(data, ACCOUNT_FORMAT, {ACCOUNT_FORMAT: _account_v1})
    return entry


def encode_asset_record(record: AssetRecord) -> bytes:
    return canonical.dumps(
        {
            "format": ASSET_FORMAT,
            "accountId": record.account_id,
            "assetId": record.asset_id,
            "sha256": record.sha256,
            "sizeBytes": record.size_bytes,
            "mediaType": record.media_type,
            "importId": record.import_id,
            **_present(filename=record.filename),
        }
    )


def _asset_v1(value: JsonObject) -> AssetRecord:
    return AssetRecord(
        account_id=AccountId(value["accountId"]),
        asset_id=value["assetId"],
        sha256=value["sha256"],
        size_bytes=value["sizeBytes"],
        media_type=value["mediaType"],
        filename=value.get("filename"),
        import_id=value["importId"],
    )


def decode_asset_record(data: bytes) -> AssetRecord:
    """:raises UnreadableObject:"""
    record: AssetRecord = _object(data, ASSET_FORMAT, {ASSET_FORMAT: _asset_v1})
    return record
