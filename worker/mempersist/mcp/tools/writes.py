"""Writing on purpose: a new conversation, or messages behind an existing one."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import WRITE
from mempersist.archive import memories
from mempersist.archive.memories import NewMessage
from mempersist.archive.model import JsonObject
from mempersist.mcp import fields, receipts
from mempersist.mcp.tool import Call, Tool


async def _store(call: Call) -> JsonObject:
    messages = messages_of(call)
    written = await memories.store(
        call.ports,
        call.account,
        title=call.arguments["title"],
        namespace=call.get("namespace"),
        tags=call.get("tags") or (),
        messages=messages,
        idempotency_key=call.get("idempotency_key"),
    )
    return await receipts.write_receipt(call.ports, call.account, written, messages, verify=call.arguments["verify"])


async def _append(call: Call) -> JsonObject:
    messages = messages_of(call)
    written = await memories.append(
        call.ports,
        call.account,
        conversation_id=call.arguments["conversation_id"],
        base_revision_id=call.arguments["base_revision_id"],
        messages=messages,
        tags=call.get("tags") or (),
        idempotency_key=call.get("idempotency_key"),
    )
    return await receipts.write_receipt(call.ports, call.account, written, messages, verify=call.arguments["verify"])


def messages_of(call: Call) -> tuple[NewMessage, ...]:
    """The argument ``messages``."""
    return tuple(
        NewMessage(message["role"], message["content"], message.get("timestamp"))
        for message in call.arguments["messages"]
    )


STORE: Final = Tool(
    name="memory_store",
    title="Store a conversation",
    description=(
        "Stores messages as a new conversation. durable: true means safe in storage; indexing follows by itself."
    ),
    scope=WRITE,
    input_schema=fields.arguments(
        ("title", "messages"),
        title=fields.text("To find it by.", minLength=1, maxLength=limits.MAX_TITLE_CHARS),
        messages=fields.messages(limits.MAX_STORE_MESSAGES),
        namespace=fields.namespace("The default one when absent."),
        tags=fields.tags("In lower case, each once."),
        verify=fields.verify(),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=receipts.SCHEMA,
    run=_store,
    idempotent=False,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
    items="messages",
)

APPEND: Final = Tool(
    name="memory_append",
    title="Append to a conversation",
    description=(
        "Appends messages at the end, as a new revision. If another write came first: IMPORT_CONFLICT with the"
        " current revision, and nothing is written."
    ),
    scope=WRITE,
    input_schema=fields.arguments(
        ("conversation_id", "base_revision_id", "messages"),
        conversation_id=fields.conversation_id(),
        base_revision_id=fields.revision_id("As last read."),
        messages=fields.messages(limits.MAX_APPEND_MESSAGES),
        tags=fields.tags("Tags to add."),
        verify=fields.verify(),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=receipts.SCHEMA,
    run=_append,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
    items="messages",
)
