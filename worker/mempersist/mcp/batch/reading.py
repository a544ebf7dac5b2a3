"""The messages that a call of a batch may answer with, read at their pinned revisions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mempersist import limits
from mempersist.archive.model import JsonObject
from mempersist.archive.read import read_page
from mempersist.concurrency import gather
from mempersist.errors import MempersistError
from mempersist.mcp import budget
from mempersist.mcp.batch.state import Pending
from mempersist.mcp.messages import compact, compact_conversation
from mempersist.ports import AccountId, Ports

WAVE: Final = 4
"""Conversations that are read at a time."""
_READ_BYTES: Final = 256 * limits.KIB


@dataclass(frozen=True, slots=True)
class Message:
    """A message at its ``offset``, ``size`` bytes as JSON. ``value`` is None for one too large for any answer."""

    offset: int
    source_node_id: str
    size: int
    value: JsonObject | None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read of ``pending``: messages from its offset on, perhaps not yet all of them.

    :param error: why nothing could be read. :param total: messages of the whole conversation.
    """

    pending: Pending
    conversation: JsonObject
    messages: tuple[Message, ...] = ()
    total: int = 0
    error: MempersistError | None = None


async def load(ports: Ports, account: AccountId, pending: Sequence[Pending]) -> list[Loaded]:
    """Each of ``pending``, a few at a time. What fails for one is told with it."""
    return await gather((_load(ports, account, item) for item in pending), limit=WAVE)


async def _load(ports: Ports, account: AccountId, item: Pending) -> Loaded:
    try:
        page = await read_page(
            ports,
            account,
            item.conversation_id,
            offset=item.offset,
            limit=item.limit,
            branch=item.branch,
            revision_id=item.revision_id,
            max_bytes=_READ_BYTES,
        )
    except MempersistError as error:
        return Loaded(item, {}, error=error)
    messages = []
    for view in page.messages:
        value = compact(view.node)
        size = budget.size(value)
        kept = value if size < limits.MAX_BATCH_BYTES else None
        messages.append(Message(view.offset, value["sourceNodeId"], size, kept))
    conversation: JsonObject = budget.clean(compact_conversation(page.conversation))
    return Loaded(item, conversation, tuple(messages), page.total)
