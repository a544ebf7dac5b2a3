"""Reading back what was committed, from the object store alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mempersist import canonical
from mempersist.archive import codec, load
from mempersist.archive.load import LoadedRevision
from mempersist.archive.model import Node
from mempersist.archive.writing import NewMessage, Written, timestamp
from mempersist.ports import AccountId, ObjectNotFound, Ports, StorageError


@dataclass(frozen=True, slots=True)
class Verification:
    """A read-back of committed messages from the object store. ``problem`` says what did not match, without text."""

    passed: bool
    checked_messages: int
    problem: str | None = None


async def verify_written(
    ports: Ports, account: AccountId, written: Written, messages: Sequence[NewMessage]
) -> Verification:
    """Reload the committed revision from the object store, re-hash its segments and compare every intended message."""
    loaded = await _reload(ports, account, written.conversation_id, written.revision_id)
    if isinstance(loaded, Verification):
        return loaded
    there = shown(loaded)[written.first_offset : written.first_offset + len(messages)]
    if len(there) != len(messages):
        return Verification(False, len(there), f"{len(messages)} messages were written, {len(there)} were read back")
    for index, (message, node) in enumerate(zip(messages, there, strict=True)):
        intended = (message.role, message.content, timestamp(message.timestamp, f"messages[{index}].timestamp"))
        if intended != (node.role, node.text, node.created_at):
            return Verification(False, index, f"message {index} differs from what was written")
    return Verification(True, len(messages))


async def verify_revision(ports: Ports, account: AccountId, conversation_id: str, revision_id: str) -> Verification:
    """Reload a whole revision and derive its id again from every node in it: its hash covers all that it says."""
    loaded = await _reload(ports, account, conversation_id, revision_id)
    if isinstance(loaded, Verification):
        return loaded
    manifest = loaded.stored.manifest
    digest = canonical.extend_digest("", (placement.node_hash for placement in loaded.placements))
    content = canonical.content_hash(digest, manifest.current_source_node_id, manifest.metadata)
    count = len(shown(loaded))
    if canonical.revision_id(conversation_id, content) != revision_id:
        return Verification(False, count, "what is stored is not what the revision's id stands for")
    if count != manifest.message_count:
        return Verification(False, count, f"the revision has {manifest.message_count} messages, {count} were read back")
    return Verification(True, count)


def shown(loaded: LoadedRevision) -> tuple[Node, ...]:
    """The messages that a reader of the active branch is shown, in order."""
    by_id = {node.source_node_id: node for node in loaded.nodes}
    return tuple(by_id[node_id] for node_id in loaded.active if by_id[node_id].is_message)


async def _reload(
    ports: Ports, account: AccountId, conversation_id: str, revision_id: str
) -> LoadedRevision | Verification:
    try:
        log = await load.head_log(ports.objects, conversation_id)
        if not any(entry.account_id == account and entry.revision_id == revision_id for entry, _ in log):
            return Verification(False, 0, "no head entry of this account names the revision")
        found = await load.manifests(ports.objects, conversation_id)
        return await load.revision(ports.objects, found[revision_id])
    except (ObjectNotFound, StorageError, codec.UnreadableObject, KeyError) as error:
        return Verification(False, 0, f"the revision could not be reloaded ({type(error).__name__})")
