"""What this server takes and gives."""

from __future__ import annotations

from typing import Final

from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.mcp import fields
from mempersist.mcp.capabilities import describe
from mempersist.mcp.fields import COUNT, TEXT, TRUTH, result
from mempersist.mcp.tool import Call, Tool


async def _get_capabilities(call: Call) -> JsonObject:
    return describe(call.tools)


_BOUNDS: Final = result(
    {
        "max_items": COUNT,
        "default_items": COUNT,
        "max_request_bytes": COUNT,
        "max_response_bytes": COUNT,
        "default_response_bytes": COUNT,
        "max_tail_messages": COUNT,
        "supports_cursor": TRUTH,
        "supports_verify": TRUTH,
    },
    optional=(
        "max_items",
        "default_items",
        "default_response_bytes",
        "max_tail_messages",
        "supports_cursor",
        "supports_verify",
    ),
)

GET_CAPABILITIES: Final = Tool(
    name="memory_get_capabilities",
    title="Show limits and features",
    description="Returns the enforced limits, the bounds of each tool, and feature flags.",
    scope=READ,
    input_schema=fields.arguments(),
    output_schema=result(
        {
            "protocol_version": TEXT,
            "capabilities_version": TEXT,
            "limits": {"type": "object", "additionalProperties": COUNT},
            "tools": {"type": "object", "additionalProperties": _BOUNDS},
            "features": {"type": "object", "additionalProperties": TRUTH},
        }
    ),
    run=_get_capabilities,
)
