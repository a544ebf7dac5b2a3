"""The capability contract: what is enforced, said from the constants and schemas that enforce it."""

from __future__ import annotations

from collections.abc import Iterable

from mempersist import limits
from mempersist.archive.model import JsonObject
from mempersist.mcp.tool import Tool


def describe(tools: Iterable[Tool]) -> JsonObject:
    """The same for every caller; names no resource of the deployment."""
    return {
        "protocol_version": limits.PROTOCOL_VERSION,
        "capabilities_version": limits.CAPABILITIES_VERSION,
        "limits": {
            "max_tool_output_bytes": limits.MAX_TOOL_OUTPUT_BYTES,
            "recommended_tool_output_bytes": limits.RECOMMENDED_TOOL_OUTPUT_BYTES,
            "max_inline_json_write_bytes": limits.MAX_INLINE_JSON_WRITE_BYTES,
            "max_direct_import_bytes": limits.MAX_DIRECT_IMPORT_BYTES,
            "max_multipart_part_bytes": limits.MAX_MULTIPART_PART_BYTES,
            "max_message_content_chars": limits.MAX_MESSAGE_CONTENT_CHARS,
            "max_receipt_bytes": limits.MAX_RECEIPT_BYTES,
        },
        "tools": {tool.name: _bounds(tool) for tool in tools},
        "features": {
            "revision_pinning": True,
            "verified_writes": True,
            "cursor_reads": True,
            "message_keys": False,
            "atomic_multi_conversation_commit": False,
        },
    }


def _bounds(tool: Tool) -> JsonObject:
    properties = tool.input_schema["properties"]
    bounds: JsonObject = {}
    if "limit" in properties:
        bounds["max_items"] = properties["limit"]["maximum"]
        bounds["default_items"] = properties["limit"]["default"]
    elif tool.items is not None:
        bounds["max_items"] = properties[tool.items]["maxItems"]
    bounds["max_request_bytes"] = tool.max_request_bytes
    bounds["max_response_bytes"] = tool.max_response_bytes
    bounds |= dict(tool.bounds)
    if "cursor" in properties:
        bounds["supports_cursor"] = True
    if "verify" in properties:
        bounds["supports_verify"] = True
    return bounds
