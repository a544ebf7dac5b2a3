"""How an import of an export goes."""

from __future__ import annotations

from typing import Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.imports.status import import_status
from mempersist.mcp import budget, fields
from mempersist.mcp.fields import COUNT, COUNT_OR_NULL, TEXT, TEXT_OR_NULL, result, results
from mempersist.mcp.tool import Call, Tool

_BUDGET: Final = limits.RECOMMENDED_TOOL_OUTPUT_BYTES


async def _import_status(call: Call) -> JsonObject:
    found = await import_status(call.ports, call.account, call.arguments["import_id"])
    answer: JsonObject = budget.clean(found.as_json())
    findings = answer["findings"]
    envelope = {**answer, "findings": [], "findings_not_listed": len(findings)}
    fits = budget.how_many_fit(findings, _BUDGET - budget.size(envelope))
    if fits == len(findings):
        return answer
    return {**answer, "findings": findings[:fits], "findings_not_listed": len(findings) - fits}


_COUNTS: Final[JsonObject] = {"type": "object", "additionalProperties": {"type": "object"}}
_FINDING: Final = result(
    {"position": TEXT, "severity": TEXT, "code": TEXT, "message": TEXT, "sourceId": TEXT}, optional=("sourceId",)
)

IMPORT_STATUS: Final = Tool(
    name="memory_import_status",
    title="Follow an import",
    description=(
        "Tells how an import stands or ended: counts (found = imported + unchanged + skipped + failed) and first"
        " findings."
    ),
    scope=READ,
    input_schema=fields.arguments(
        ("import_id",), import_id=fields.text("importId of the upload.", pattern=fields.UUID_PATTERN)
    ),
    output_schema=result(
        {
            "id": TEXT,
            "source_type": TEXT,
            "namespace": TEXT,
            "filename": TEXT,
            "size_bytes": COUNT_OR_NULL,
            "sha256": TEXT_OR_NULL,
            "status": TEXT,
            "duplicate_of": TEXT_OR_NULL,
            "phase": TEXT_OR_NULL,
            "bytes_done": COUNT,
            "bytes_total": COUNT,
            "checkpoint_ordinal": {"type": "integer"},
            "total_items": COUNT_OR_NULL,
            "processed_items": COUNT,
            "error_code": TEXT_OR_NULL,
            "error_message": TEXT_OR_NULL,
            "created_at": TEXT,
            "updated_at": TEXT,
            "counts": _COUNTS,
            "findings": results(_FINDING),
            "findings_not_listed": COUNT,
        },
        optional=("findings_not_listed",),
    ),
    run=_import_status,
    max_response_bytes=_BUDGET,
)
