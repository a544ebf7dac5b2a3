"""Short ways to write to the archive in tests."""

from __future__ import annotations

from collections.abc import Sequence

from mempersist.archive import memories, replacing, tagging
from mempersist.archive.copying import CopyOutcome, CopyRequest, copy_conversations
from mempersist.archive.importing import ImportItem, ImportOutcome, import_conversations
from mempersist.archive.memories import NewMessage, Written
from mempersist.archive.model import OWNER, SourceConversation
from mempersist.ports import AccountId, Ports


def user(*texts: str) -> list[NewMessage]:
    return [NewMessage("user", text) for text in texts]


async def store(ports: Ports, *texts: str, account: AccountId = OWNER, **changes: object) -> Written:
    values: dict[str, object] = {"title": "Title", "namespace": None, "tags": (), "messages": user(*texts), **changes}
    return await memories.store(ports, account, **values)  # type: ignore[arg-type]


async def append(ports: Ports, to: Written, *texts: str, **changes: object) -> Written:
    values: dict[str, object] = {
        "conversation_id": to.conversation_id,
        "base_revision_id": to.revision_id,
        "messages": user(*texts),
        **changes,
    }
    return await memories.append(ports, OWNER, **values)  # type: ignore[arg-type]


async def replace(ports: Ports, base: Written, *texts: str, timestamp: str | None = None, **changes: object) -> Written:
    values: dict[str, object] = {
        "conversation_id": base.conversation_id,
        "base_revision_id": base.revision_id,
        "messages": [NewMessage("user", text, timestamp) for text in texts],
        **changes,
    }
    return await replacing.replace_transcript(ports, OWNER, **values)  # type: ignore[arg-type]


async def restore(ports: Ports, base: Written, revision_id: str, **changes: object) -> Written:
    values: dict[str, object] = {
        "conversation_id": base.conversation_id,
        "base_revision_id": base.revision_id,
        "revision_id": revision_id,
        **changes,
    }
    return await replacing.restore_revision(ports, OWNER, **values)  # type: ignore[arg-type]


async def retag(ports: Ports, base: Written, **changes: object) -> Written:
    values: dict[str, object] = {
        "conversation_id": base.conversation_id,
        "base_revision_id": base.revision_id,
        **changes,
    }
    return await tagging.update_tags(ports, OWNER, **values)  # type: ignore[arg-type]


async def copy(
    ports: Ports, *wanted: CopyRequest, key: str = "copy", target: str = "copies", create: bool = True
) -> tuple[CopyOutcome, ...]:
    return await copy_conversations(
        ports,
        OWNER,
        target_namespace=target,
        create_target_namespace=create,
        idempotency_key=key,
        wanted=wanted,
    )


async def bring(
    ports: Ports, *sources: SourceConversation, import_id: str = "import", namespace: str = "personal"
) -> tuple[ImportOutcome, ...]:
    """Import ``sources`` as the items of one export."""
    items: Sequence[ImportItem] = [ImportItem(f"0:{index}", source) for index, source in enumerate(sources)]
    return await import_conversations(ports, OWNER, import_id, namespace, items, extra=lambda _: [])
