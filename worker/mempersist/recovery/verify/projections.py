"""The catalog and the index held against what the archive says of a conversation."""

from __future__ import annotations

from mempersist.archive import load
from mempersist.index.generation import active_generation
from mempersist.limits import VECTOR_MAX_GET
from mempersist.ports import Ports
from mempersist.recovery.verify.conversations import Found
from mempersist.recovery.verify.findings import Verification


async def check(ports: Ports, found: Found, report: Verification) -> None:
    """The conversation's row stands at its head, its messages are those of its revision, and the index has it."""
    if found.head is None:
        return
    conversation_id = found.conversation_id
    rows = await ports.catalog.query(
        "SELECT c.head_seq, c.head_hash, c.revision_id, c.node_count,"
        " (SELECT count(*) FROM messages AS m WHERE m.conversation_id = c.conversation_id) AS messages"
        " FROM conversations AS c WHERE c.conversation_id = ? AND c.account_id = ?",
        (conversation_id, found.head.account_id),
    )
    if not rows:
        report.found("CATALOG_MISSING", conversation_id)
        return
    row = rows[0]
    if (row["head_seq"], row["head_hash"]) != (found.head.seq, found.head_hash):
        report.found("CATALOG_DIFFERS", conversation_id)
        return
    if found.head.deleted:
        return
    counts = (row["messages"], row["node_count"])
    if found.manifest is not None and counts != (found.manifest.node_count, found.manifest.node_count):
        report.found("CATALOG_MESSAGES", conversation_id)
    await _index(ports, found, report)


async def _index(ports: Ports, found: Found, report: Verification) -> None:
    assert found.head is not None  # noqa: S101
    account, conversation_id = found.head.account_id, found.conversation_id
    generation = await active_generation(ports)
    rows = await ports.catalog.query(
        "SELECT head_seq, status FROM index_state WHERE account_id = ? AND conversation_id = ? AND generation = ?",
        (account, conversation_id, generation),
    )
    state = rows[0] if rows else None
    if state is None or state["head_seq"] != found.head.seq or state["status"] != "indexed":
        failed = state is not None and state["status"] == "failed"
        report.found("INDEX_FAILED" if failed else "INDEX_BEHIND", conversation_id)
        return
    chunks = await ports.catalog.query(
        "SELECT vector_id FROM chunks WHERE account_id = ? AND conversation_id = ? AND generation = ? AND embedded = 1"
        f" ORDER BY ordinal LIMIT {VECTOR_MAX_GET}",
        (account, conversation_id, generation),
    )
    ids = [chunk["vector_id"] for chunk in chunks]
    if len(await ports.vectors.get(ids)) != len(ids):
        report.found("VECTORS_MISSING", conversation_id)


async def check_strangers(ports: Ports, after: str, to: str | None, report: Verification) -> None:
    """Rows with ``after < id < to`` stand for conversations that the archive does not have."""
    rows = await ports.catalog.query(
        "SELECT conversation_id FROM conversations WHERE conversation_id > ?1 AND (?2 IS NULL OR conversation_id < ?2)",
        (after, to),
    )
    for row in rows:
        if not await load.head_log(ports.objects, row["conversation_id"]):
            report.found("CATALOG_STRANGER", row["conversation_id"])
