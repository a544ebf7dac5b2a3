"""Whole messages into an answer of bounded bytes, one of each conversation in turn.

A request that was served little comes first in the next call, so that each has its turn with the whole answer to
itself; a message too large even then is passed over and named.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from mempersist.archive.model import JsonObject
from mempersist.errors import Code, MempersistError
from mempersist.limits import MAX_BATCH_BYTES
from mempersist.mcp import budget
from mempersist.mcp.batch.reading import Loaded, Message
from mempersist.mcp.batch.state import Batch, Pending, cursor_length

_COMMA: Final = 1
_LEAST_DIGITS: Final = 1000
"""``null`` has as many characters."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """Entries for ``results``, by request, and what is left to read, in the order of the next call."""

    entries: tuple[JsonObject, ...]
    pending: tuple[Pending, ...]


def admit(batch: Batch, loaded: Sequence[Loaded], failed: Sequence[JsonObject], *, first: bool) -> Admitted:
    """As much of ``loaded`` as fits.

    :param loaded: in the order of ``batch.pending``. :param failed: entries of requests that cannot be read at all.
    :param first: every request gets an entry, ``deferred`` where there was no room.
    """
    alone = batch.max_bytes - budget.size(envelope(batch, (), batch.total, "c" * cursor_length(batch.pending)))
    shares = [_Share(item, stub=budget.size(_deferred(item.pending)) + _COMMA if first else 0) for item in loaded]
    left = alone - sum(budget.size(entry) + _COMMA for entry in failed) - sum(share.stub for share in shares)
    while any(share.open for share in shares):
        for share in shares:
            if share.open:
                left -= share.serve(left, alone)
    entries = [*failed, *(share.entry() for share in shares if share.begun)]
    if first:
        entries += [_deferred(share.pending) for share in shares if not share.begun]
    waiting = [rest for share in sorted(shares, key=lambda share: share.served) if (rest := share.rest()) is not None]
    return Admitted(tuple(sorted(entries, key=lambda entry: int(entry["requestIndex"]))), tuple(waiting))


def envelope(batch: Batch, entries: Sequence[JsonObject], remaining: int, cursor: str | None) -> JsonObject:
    """The whole answer, its own size in it."""
    answer: JsonObject = {
        "batchId": batch.batch_id,
        "results": list(entries),
        "completed": batch.total - remaining,
        "remaining": remaining,
        "nextCursor": cursor,
        "usedSerializedBytes": MAX_BATCH_BYTES,
        "maxSerializedBytes": batch.max_bytes,
    }
    while (used := budget.size(answer)) != answer["usedSerializedBytes"]:
        answer["usedSerializedBytes"] = used
    return answer


def error_entry(index: int, error: MempersistError) -> JsonObject:
    return {
        "requestIndex": index,
        "status": "error",
        "error": {"code": error.code.value, "message": budget.clean(error.message)},
    }


def _deferred(pending: Pending) -> JsonObject:
    return {"requestIndex": pending.index, "status": "deferred"}


@dataclass(slots=True)
class _Share:
    """What one request gets in this answer: an entry once it has ``begun``, more as long as it is ``open``.

    :param stub: bytes that are kept for the entry that says ``deferred``.
    """

    loaded: Loaded
    stub: int
    messages: list[JsonObject] = field(default_factory=list)
    mark: JsonObject | None = None
    error: MempersistError | None = None
    begun: bool = False
    open: bool = True

    @property
    def pending(self) -> Pending:
        return self.loaded.pending

    @property
    def served(self) -> int:
        return len(self.messages) + (self.mark is not None)

    def rest(self) -> Pending | None:
        """What is still to be read after this answer; None if the request is done."""
        following = self.pending.offset + self.served
        limit = self.pending.limit - self.served
        done = limit == 0 or following >= self.loaded.total or not self.loaded.messages
        if self.error is not None or (self.begun and done):
            return None
        return replace(self.pending, offset=following, limit=limit)

    def serve(self, left: int, alone: int) -> int:
        """Take the next message, or close. The bytes that it took of ``left``.

        :param alone: what an answer has room for that serves nobody else.
        """
        if self.loaded.error is not None:
            return self._fail(self.loaded.error, left)
        base = self._base()
        opening = 0 if self.begun else base - self.stub
        message = self._next()
        if message is None:
            return self._close(opening, left, base, alone)
        cost = opening + message.size + (_COMMA if self.messages else 0)
        if message.value is not None and cost <= left:
            self.messages.append(message.value)
            self.begun = True
            return cost
        self.open = False
        if message.value is not None and base + message.size <= alone:
            return 0
        return self._pass_over(message, opening, left, base, alone)

    def _next(self) -> Message | None:
        return self.loaded.messages[self.served] if self.served < len(self.loaded.messages) else None

    def _close(self, opening: int, left: int, base: int, alone: int) -> int:
        """All that was loaded is taken, which may be nothing at all."""
        self.open = False
        if self.begun:
            return 0
        if base > alone:
            return self._fail(_too_large(), left)
        if opening > left:
            return 0
        self.begun = True
        return opening

    def _pass_over(self, message: Message, opening: int, left: int, base: int, alone: int) -> int:
        mark = {
            "conversationId": self.pending.conversation_id,
            "revisionId": self.pending.revision_id,
            "sourceNodeId": message.source_node_id,
            "offset": message.offset,
            "bytes": message.size,
        }
        size = budget.size({"oversizedMessage": mark})
        if opening + size <= left:
            self.mark, self.begun = mark, True
            return opening + size
        return self._fail(_too_large(), left) if not self.begun and base + size > alone else 0

    def _fail(self, error: MempersistError, left: int) -> int:
        self.open = False
        cost = budget.size(error_entry(self.pending.index, error)) + _COMMA - self.stub
        if cost > left:
            return 0
        self.error, self.begun = error, True
        return cost

    def _base(self) -> int:
        """Bytes of the entry without messages, its numbers at their widest."""
        page = {
            "offset": self.pending.offset,
            "nextOffset": max(_LEAST_DIGITS, self.loaded.total),
            "total": self.loaded.total,
        }
        entry = self._ok([], page, replace(self.pending, offset=max(self.pending.offset, self.loaded.total)))
        return budget.size(entry) + _COMMA

    def entry(self) -> JsonObject:
        if self.error is not None:
            return error_entry(self.pending.index, self.error)
        following = self.pending.offset + self.served
        page: JsonObject = {
            "offset": self.pending.offset,
            "nextOffset": following if following < self.loaded.total else None,
            "total": self.loaded.total,
        }
        if self.mark is not None:
            page["oversizedMessage"] = self.mark
        return self._ok(self.messages, page, self.rest())

    def _ok(self, messages: list[JsonObject], page: JsonObject, rest: Pending | None) -> JsonObject:
        value: JsonObject = {
            "requestIndex": self.pending.index,
            "status": "ok",
            "conversation": self.loaded.conversation,
            "messages": messages,
            "page": page,
        }
        if rest is not None:
            value["continuation"] = {
                "conversation_id": rest.conversation_id,
                "revision_id": rest.revision_id,
                "offset": rest.offset,
                "limit": rest.limit,
                "branch": rest.branch,
            }
        return value


def _too_large() -> MempersistError:
    return MempersistError(
        Code.RESPONSE_TOO_LARGE,
        "not even what names the next message fits; start again with a larger max_serialized_bytes, or read it with"
        " memory_get_conversation",
    )
