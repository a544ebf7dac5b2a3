"""Short ways to write to the archive in tests."""

from __future__ import annotations

from collections.abc import Sequence

from mempersist.archive import memories
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


async def bring(
    ports: Ports, *sources: SourceConversation, import_id: str = "import", namespace: str = "personal"
) -> tuple[ImportOutcome, ...]:
    """Import ``sources`` as the items of one export."""
    items: Sequence[ImportItem] = [ImportItem(f"0:{index}", source) for index, source in enumerate(sources)]
    return await import_conversations(ports, OWNER, import_id, namespace, items, extra=lambda _: [])
