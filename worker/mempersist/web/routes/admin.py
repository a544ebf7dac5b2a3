"""Upkeep over HTTP, never over MCP: an assistant has no business with it. Checked and described as the tools are."""

from __future__ import annotations

from typing import Any, Final

from mempersist import limits
from mempersist.accounts.principal import WRITE
from mempersist.archive.model import JsonObject
from mempersist.mcp import fields
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, TRUTH, result, results
from mempersist.mcp.tool import Call, Tool
from mempersist.recovery import upkeep
from mempersist.web.routes.memories import tool_route

_CURSOR: Final = fields.text("The cursor of the page before.", minLength=1, maxLength=limits.MAX_CURSOR_BYTES)


def _limit(most: int) -> JsonObject:
    return fields.integer("How many at most.", 1, most, min(most, limits.DEFAULT_LIST_ITEMS))


async def _list_jobs(call: Call) -> JsonObject:
    found = await upkeep.parked(call.ports, call.account, limit=call.arguments["limit"], cursor=call.get("cursor"))
    jobs = [
        {
            "id": row["job_id"],
            "kind": row["kind"],
            "subjectId": row["subject_id"],
            "attempts": row["attempts"],
            "errorCode": row["error_code"],
            "errorMessage": row["error_message"],
            "createdAt": row["created_at"],
            "updatedAt": row["updated_at"],
        }
        for row in found.jobs
    ]
    return {"jobs": jobs, "deadLetters": found.dead_letters, "nextCursor": found.next_cursor}


async def _retry(call: Call) -> JsonObject:
    job_id = call.arguments["job_id"]
    return {"id": job_id, "queued": await upkeep.retry(call.ports, call.account, job_id)}


async def _reindex(call: Call) -> JsonObject:
    done = await upkeep.reindex(
        call.ports,
        call.account,
        namespace=call.get("namespace"),
        limit=call.arguments["limit"],
        cursor=call.get("cursor"),
    )
    return {"queued": done.queued, "nextCursor": done.next_cursor}


async def _integrity(call: Call) -> JsonObject:
    found = await upkeep.integrity(call.ports, call.account, limit=call.arguments["limit"], cursor=call.get("cursor"))
    findings = [
        {"code": item.code, "severity": item.kind.severity, "key": item.key, "meaning": item.kind.meaning}
        for item in found.findings
    ]
    counts = {
        "conversations": found.counts["conversations"],
        "indexed": found.counts["indexed"],
        "indexFailed": found.counts["index_failed"],
        "openWrites": found.counts["open_writes"],
        "openJobs": found.counts["open_jobs"],
        "parkedJobs": found.counts["parked_jobs"],
    }
    return {"counts": counts, "checked": found.checked, "findings": findings, "nextCursor": found.next_cursor}


def _tool(name: str, title: str, description: str, **others: Any) -> Tool:
    return Tool(name=name, title=title, description=description, scope=WRITE, **others)


LIST_JOBS: Final = _tool(
    "admin_list_jobs",
    "List parked jobs",
    "Background jobs that were given up, the latest first, each with its reason.",
    input_schema=fields.arguments(limit=_limit(limits.MAX_LIST_ITEMS), cursor=_CURSOR),
    output_schema=result(
        {
            "jobs": results(
                result(
                    {
                        "id": TEXT,
                        "kind": TEXT,
                        "subjectId": TEXT,
                        "attempts": COUNT,
                        "errorCode": TEXT_OR_NULL,
                        "errorMessage": TEXT_OR_NULL,
                        "createdAt": TEXT,
                        "updatedAt": TEXT,
                    }
                )
            ),
            "deadLetters": COUNT,
            "nextCursor": TEXT_OR_NULL,
        }
    ),
    run=_list_jobs,
)
RETRY_JOB: Final = _tool(
    "admin_retry_job",
    "Retry a parked job",
    "Gives a parked job a clean record and sends it again; queued false means that the sweeper will.",
    input_schema=fields.arguments(("job_id",), job_id=fields.text("Id of the job.", minLength=1, maxLength=128)),
    output_schema=result({"id": TEXT, "queued": TRUTH}),
    run=_retry,
)
REINDEX: Final = _tool(
    "admin_reindex",
    "Index again",
    "Queues a page of conversations for the index. What it holds already is not paid for twice.",
    input_schema=fields.arguments(
        namespace=fields.namespace("Only this one; all of them when absent."),
        limit=_limit(upkeep.MAX_REINDEX),
        cursor=_CURSOR,
    ),
    output_schema=result({"queued": COUNT, "nextCursor": TEXT_OR_NULL}),
    run=_reindex,
)
INTEGRITY: Final = _tool(
    "admin_integrity",
    "Check integrity",
    "Holds logs, manifests and sizes of a page of conversations against catalog and index, without reading bodies.",
    input_schema=fields.arguments(limit=_limit(upkeep.MAX_CHECKED), cursor=_CURSOR),
    output_schema=result(
        {
            "counts": result(
                {
                    "conversations": COUNT,
                    "indexed": COUNT,
                    "indexFailed": COUNT,
                    "openWrites": COUNT,
                    "openJobs": COUNT,
                    "parkedJobs": COUNT,
                }
            ),
            "checked": COUNT,
            "findings": results(result({"code": TEXT, "severity": TEXT, "key": TEXT, "meaning": TEXT})),
            "nextCursor": TEXT_OR_NULL,
        }
    ),
    run=_integrity,
)

ROUTES: Final = (
    tool_route("GET", "/api/admin/jobs", LIST_JOBS),
    tool_route("POST", "/api/admin/jobs/:id/retry", RETRY_JOB, "job_id"),
    tool_route("POST", "/api/admin/reindex", REINDEX),
    tool_route("GET", "/api/admin/integrity", INTEGRITY),
)
