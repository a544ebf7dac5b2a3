"""Deleting conversations, by name or a namespace at a time."""

from __future__ import annotations

from typing import Final

from mempersist import limits, names
from mempersist.accounts.principal import WRITE
from mempersist.archive import deletion
from mempersist.archive.model import JsonObject
from mempersist.errors import validation
from mempersist.mcp import fields, receipts
from mempersist.mcp.fields import COUNT, TEXT, TEXTS, TRUTH, result, results
from mempersist.mcp.tool import Call, Tool


async def _delete(call: Call) -> JsonObject:
    wanted = call.arguments["conversation_ids"]
    done = await deletion.delete_conversations(
        call.ports, call.account, wanted, idempotency_key=call.get("idempotency_key")
    )
    return {
        "requested": len(wanted),
        "deleted": list(done.deleted),
        "missing": list(done.missing),
        "failed": [
            {
                "conversation_id": failed.conversation_id,
                "stage": failed.stage,
                "message": receipts.short(failed.message),
            }
            for failed in done.failed
        ],
    }


async def _empty(call: Call) -> JsonObject:
    if call.arguments["namespace"] != call.arguments["confirm_namespace"]:
        raise validation("confirm_namespace", "is not exactly the namespace; repeat its name to confirm")
    namespace = names.namespace(call.arguments["namespace"])
    done = await deletion.empty_namespace(
        call.ports, call.account, namespace, idempotency_key=call.get("idempotency_key")
    )
    return {
        "namespace": done.namespace,
        "requested": done.requested,
        "processed": done.requested,
        "deleted": done.deleted,
        "failed": done.failed,
        "remaining": done.remaining,
        "complete": done.remaining == 0,
    }


DELETE_CONVERSATIONS: Final = Tool(
    name="memory_delete_conversations",
    title="Delete conversations",
    description="Deletes conversations for good, with all their revisions; uploaded exports stay.",
    scope=WRITE,
    input_schema=fields.arguments(
        ("conversation_ids",),
        conversation_ids=fields.listing(
            "Which, each once.",
            {"type": "string", "pattern": fields.ID_PATTERN},
            minItems=1,
            maxItems=limits.MAX_DELETE_CONVERSATIONS,
            uniqueItems=True,
        ),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=result(
        {
            "requested": COUNT,
            "deleted": TEXTS,
            "missing": TEXTS,
            "failed": results(result({"conversation_id": TEXT, "stage": TEXT, "message": TEXT})),
        }
    ),
    run=_delete,
    destructive=True,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.RECOMMENDED_TOOL_OUTPUT_BYTES,
    items="conversation_ids",
)

EMPTY_NAMESPACE: Final = Tool(
    name="memory_empty_namespace",
    title="Empty a namespace",
    description=("Deletes up to 500 conversations of a namespace for good; to be repeated until complete is true."),
    scope=WRITE,
    input_schema=fields.arguments(
        ("namespace", "confirm_namespace"),
        namespace=fields.namespace("The namespace."),
        confirm_namespace=fields.namespace("The same name again."),
        idempotency_key=fields.idempotency_key(),
    ),
    output_schema=result(
        {
            "namespace": TEXT,
            "requested": COUNT,
            "processed": COUNT,
            "deleted": COUNT,
            "failed": COUNT,
            "remaining": COUNT,
            "complete": TRUTH,
        }
    ),
    run=_empty,
    idempotent=False,
    destructive=True,
    max_request_bytes=limits.MAX_INLINE_JSON_WRITE_BYTES,
    max_response_bytes=limits.RECOMMENDED_TOOL_OUTPUT_BYTES,
)
