"""Writing over what is there: a whole new transcript, an earlier revision, other tags."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import WRITE
from mempersist.archive import replacing, tagging
from mempersist.archive.model import JsonObject
from mempersist.mcp import fields, receipts
from mempersist.mcp.fields import TEXT, TEXTS, TRUTH, result
from mempersist.mcp.tool import Call, Tool
from mempersist.mcp.tools.writes import messages_of


async def _replace(call: Call) -> JsonObject:
    messages = messages_of(call)
    written = await replacing.replace_transcript(
        call.ports,
        call.account,
        conversation_id=call.arguments["conversation_id"],
        base_revision_id=call.arguments["base_revision_id"],
        messages=messages,
        idempotency_key=call.get("idempotency_key"),
    )
    return await receipts.write_receipt(call.ports, call.account, written, messages, verify=call.arguments["verify"])


async def _restore(call: Call) -> JsonObject:
    written = await replacing.restore_revision(
        call.ports,
        call.account,
        conversation_id=call.arguments["conversation_id"],
        revision_id=call.arguments["revision_id"],
        base_revision_id=call.arguments["base_revision_id"],
        idempotency_key=call.get("idempotency_key"),
    )
    return await receipts.revision_receipt(call.ports, call.account, written, verify=call.arguments["verify"])


async def _update_tags(call: Call) -> JsonObject:
    written = await tagging.update_tags(
        call.ports,
        call.account,
        conversation_id=call.arguments["conversation_id"],
        base_revision_id=call.arguments["base_revision_id"],
        add=call.get("add") or (),
        remove=call.get("remove") or (),
        idempotency_key=call.get("idempotency_key"),
    )
    answer: JsonObject = {
        "conversation_id": written.conversation_id,
        "revision_id": written.revision_id,
        "tags": list(written.tags),
        "durable": True,
    }
    if written.replayed:
        answer["replayed"] = True
    return {**answer, "indexing": receipts.indexing(written)}


def _base() -> JsonObject:
    return fields.revision_id("As last read.")


REPLACE: Final = Tool(
    name="memory_replace",
    title="Replace a conversation",
    description=(
        "Makes messages the whole transcript, as a new revision; title, namespace, tags and earlier revisions stay."
    ),
    scope=WRITE,
    input_schema=fields.arguments(
        ("conversation_id", "base_revision_id", "messages"),
        conversation_id=fields.conversation_id(),
        base_revision_id=_base(),
        messages=fields.messages(limits.MAX_STORE_MESSAGES),
        verify=fields.verify(),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=receipts.SCHEMA,
    run=_replace,
    destructive=True,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
    items="messages",
)

RESTORE_REVISION: Final = Tool(
    name="memory_restore_revision",
    title="Restore a revision",
    description="Makes an earlier revision current again; no revision is lost, tags stay as they are.",
    scope=WRITE,
    input_schema=fields.arguments(
        ("conversation_id", "revision_id", "base_revision_id"),
        conversation_id=fields.conversation_id(),
        revision_id=fields.revision_id("The revision to go back to."),
        base_revision_id=_base(),
        verify=fields.verify(),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=receipts.SCHEMA,
    run=_restore,
    destructive=True,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
)

UPDATE_TAGS: Final = Tool(
    name="memory_update_tags",
    title="Change tags",
    description="Removes, then adds tags; makes no new revision.",
    scope=WRITE,
    input_schema=fields.arguments(
        ("conversation_id", "base_revision_id"),
        conversation_id=fields.conversation_id(),
        base_revision_id=_base(),
        add=fields.tags("Tags to add."),
        remove=fields.tags("Tags to remove."),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=result(
        {
            "conversation_id": TEXT,
            "revision_id": TEXT,
            "tags": TEXTS,
            "durable": TRUTH,
            "replayed": TRUTH,
            "indexing": receipts.INDEXING,
        },
        optional=("replayed",),
    ),
    run=_update_tags,
    destructive=True,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
)
