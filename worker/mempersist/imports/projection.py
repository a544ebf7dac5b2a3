"""Receipts and asset records as rows: the fold that a finished import and a rebuild share."""

from __future__ import annotations

from mempersist import canonical
from mempersist.archive import keys
from mempersist.archive.model import AssetRecord
from mempersist.imports.records import SOURCE_TYPE, decode_receipt
from mempersist.ports import Statement


def import_statements(data: bytes) -> list[Statement]:
    """The ``imports`` row of a receipt, given as it is stored; folding it again changes nothing.

    :raises UnreadableObject:
    """
    receipt = decode_receipt(data)
    failure = receipt.failure
    return [
        Statement(
            "INSERT INTO imports (import_id, account_id, namespace, source_type, filename, object_key, sha256,"
            " size_bytes, status, duplicate_of, error_code, error_message, counts_json, created_at, completed_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (import_id) DO NOTHING",
            (
                receipt.import_id,
                receipt.account,
                receipt.namespace,
                SOURCE_TYPE,
                receipt.filename,
                receipt.object_key,
                receipt.sha256,
                receipt.size_bytes,
                receipt.status,
                receipt.duplicate_of,
                failure.code if failure else None,
                failure.message if failure else None,
                canonical.dumps(receipt.counts.as_json()).decode(),
                receipt.created_at,
                receipt.completed_at,
            ),
        )
    ]


def asset_statements(record: AssetRecord) -> list[Statement]:
    """The ``assets`` row of an asset record; folding it again changes nothing."""
    return [
        Statement(
            "INSERT INTO assets (account_id, asset_id, sha256, size_bytes, media_type, filename, import_id, object_key)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account_id, asset_id, sha256) DO NOTHING",
            (
                record.account_id,
                record.asset_id,
                record.sha256,
                record.size_bytes,
                record.media_type,
                record.filename,
                record.import_id,
                keys.asset(record.account_id, record.asset_id, record.sha256),
            ),
        )
    ]
