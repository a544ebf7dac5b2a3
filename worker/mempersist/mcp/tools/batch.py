"""Reading many known conversations in as few calls as their bytes allow."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.catalog.pins import pin_revisions
from mempersist.errors import MempersistError, validation
from mempersist.mcp import fields
from mempersist.mcp.batch import state
from mempersist.mcp.batch.admission import admit, envelope, error_entry
from mempersist.mcp.batch.reading import load
from mempersist.mcp.batch.state import Batch, Pending
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, result, results
from mempersist.mcp.tool import Call, Tool


async def _get_conversations(call: Call) -> JsonObject:
    cursor, now = call.get("cursor"), call.ports.clock.now_ms()
    if (cursor is None) == (call.get("requests") is None):
        raise validation("requests", "exactly one of requests and cursor is needed: requests to begin, cursor to go on")
    failed: list[JsonObject] = []
    if cursor is None:
        batch, failed = await _begun(call)
    else:
        batch = state.unseal(call.settings.cursor_keys, call.account, cursor, now)
        max_bytes = call.get("max_serialized_bytes") or batch.max_bytes
        batch = Batch(batch.batch_id, max_bytes, batch.total, batch.pending)
    loaded = await load(call.ports, call.account, batch.pending)
    admitted = admit(batch, loaded, failed, first=cursor is None)
    following = None
    if admitted.pending:
        left = Batch(batch.batch_id, batch.max_bytes, batch.total, admitted.pending)
        following = state.seal(call.settings.cursor_keys, call.account, left, now)
    return envelope(batch, admitted.entries, len(admitted.pending), following)


async def _begun(call: Call) -> tuple[Batch, list[JsonObject]]:
    """A new batch with every revision pinned, and entries for the requests that have none."""
    requests = call.arguments["requests"]
    pins = await pin_revisions(
        call.ports, call.account, [(item["conversation_id"], item.get("revision_id")) for item in requests]
    )
    pending: list[Pending] = []
    failed: list[JsonObject] = []
    for index, (item, pin) in enumerate(zip(requests, pins, strict=True)):
        if isinstance(pin, MempersistError):
            failed.append(error_entry(index, pin))
        else:
            pending.append(Pending(index, item["conversation_id"], pin, item["offset"], item["limit"], item["branch"]))
    max_bytes = call.get("max_serialized_bytes") or limits.DEFAULT_BATCH_BYTES
    return Batch(call.ports.ids.uuid(), max_bytes, len(requests), tuple(pending)), failed


_REQUEST: Final = fields.arguments(
    ("conversation_id",),
    conversation_id=fields.conversation_id(),
    offset=fields.integer("First message, from 0.", 0, fields.MAX_OFFSET, 0),
    limit=fields.integer("Most messages.", 1, limits.MAX_PAGE_MESSAGES, limits.DEFAULT_PAGE_MESSAGES),
    branch=fields.choice("As elsewhere.", ("active", "all"), "active"),
    revision_id=fields.revision_id("Revision; the current one when absent."),
)
_OBJECT: Final[JsonObject] = {"type": "object"}

GET_CONVERSATIONS: Final = Tool(
    name="memory_get_conversations",
    title="Read several conversations",
    description=(
        "Reads up to 20 conversations at pinned revisions, whole messages in the compact format, in turn; nextCursor,"
        " if not null, goes on within 15 minutes. A message too large is named in page.oversizedMessage and passed"
        " over."
    ),
    scope=READ,
    input_schema=fields.arguments(
        requests=fields.listing("What to read, to begin.", _REQUEST, minItems=1, maxItems=limits.MAX_BATCH_REQUESTS),
        cursor=fields.text("nextCursor, instead of requests.", minLength=1, maxLength=limits.MAX_CURSOR_BYTES),
        max_serialized_bytes=fields.integer(
            f"{limits.DEFAULT_BATCH_BYTES} when absent.",
            limits.MIN_BATCH_BYTES,
            limits.MAX_BATCH_BYTES,
        ),
    ),
    output_schema=result(
        {
            "batchId": TEXT,
            "results": results(
                result(
                    {
                        "requestIndex": COUNT,
                        "status": TEXT,
                        "conversation": _OBJECT,
                        "messages": results(_OBJECT),
                        "page": _OBJECT,
                        "continuation": _OBJECT,
                        "error": _OBJECT,
                    },
                    optional=("conversation", "messages", "page", "continuation", "error"),
                )
            ),
            "completed": COUNT,
            "remaining": COUNT,
            "nextCursor": TEXT_OR_NULL,
            "usedSerializedBytes": COUNT,
            "maxSerializedBytes": COUNT,
        }
    ),
    run=_get_conversations,
    max_response_bytes=limits.MAX_BATCH_BYTES,
    items="requests",
    bounds=(("default_response_bytes", limits.DEFAULT_BATCH_BYTES),),
)
