"""Copies of conversations."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import WRITE
from mempersist.archive.copying import CopyRequest, copy_conversations
from mempersist.archive.model import JsonObject
from mempersist.mcp import copy_receipts, fields
from mempersist.mcp.tool import Call, Tool


async def _copy(call: Call) -> JsonObject:
    outcomes = await copy_conversations(
        call.ports,
        call.account,
        target_namespace=call.arguments["target_namespace"],
        create_target_namespace=call.arguments["create_target_namespace"],
        idempotency_key=call.arguments["idempotency_key"],
        wanted=[_request(item) for item in call.arguments["requests"]],
    )
    return await copy_receipts.copy_receipt(call.ports, call.account, outcomes, verify=call.arguments["verify"])


def _request(item: JsonObject) -> CopyRequest:
    tags: JsonObject = item.get("tags") or {}
    return CopyRequest(
        item["conversation_id"],
        item.get("revision_id"),
        item.get("title"),
        tags.get("mode", "inherit"),
        tuple(tags.get("add") or ()),
        tuple(tags.get("remove") or ()),
    )


_TAGS: Final = {
    **fields.arguments(
        mode=fields.choice("The revision's tags or none.", ("inherit", "replace"), "inherit"),
        add=fields.tags("Tags to add."),
        remove=fields.tags("Tags to remove first."),
    ),
    "description": "Tags of the copy.",
}

COPY_CONVERSATIONS: Final = Tool(
    name="memory_copy_conversations",
    title="Copy conversations",
    description=(
        "Copies conversations whole, branches and times included, into a namespace. Results are told request by"
        " request."
    ),
    scope=WRITE,
    input_schema=fields.arguments(
        ("target_namespace", "idempotency_key", "requests"),
        target_namespace=fields.namespace("Where the copies go."),
        create_target_namespace=fields.flag("Create it where it is missing."),
        idempotency_key=fields.idempotency_key(),
        requests=fields.listing(
            "What to copy.",
            fields.arguments(
                ("conversation_id",),
                conversation_id=fields.conversation_id(),
                revision_id=fields.revision_id("The current one when absent."),
                title=fields.text("Title of the copy.", minLength=1, maxLength=limits.MAX_TITLE_CHARS),
                tags=_TAGS,
            ),
            minItems=1,
            maxItems=limits.MAX_COPY_REQUESTS,
        ),
        verify=fields.verify(),
    ),
    output_schema=copy_receipts.SCHEMA,
    run=_copy,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.MAX_RECEIPT_BYTES,
    items="requests",
)
