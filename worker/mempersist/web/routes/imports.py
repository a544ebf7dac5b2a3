"""Uploads of exports, in one request or in parts, and how their imports stand."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import unquote

from mempersist.errors import Code, MempersistError, validation
from mempersist.imports import status, uploads
from mempersist.imports.records import receipt_json
from mempersist.limits import MAX_MULTIPART_PART_BYTES, MAX_MULTIPART_PARTS
from mempersist.mcp.tools.imports import IMPORT_STATUS
from mempersist.ports import UploadedPart
from mempersist.web.http import Response, json_object, json_response, query_values, read_body, too_large
from mempersist.web.router import Context, Route
from mempersist.web.tools import answer

_MAX_BEGIN_BYTES: Final = 16 * 1024
_WORDS: Final = {"true": True, "false": False}


async def direct(context: Context) -> Response:
    """An export of at most 16 MiB as the request's body; ``X-Filename`` names it, percent-encoded where need be."""
    size = _declared_length(context)
    values = query_values(context.request.query, single={"namespace": "namespace", "force": "force"}, repeated={})
    accepted = await uploads.direct(
        context.service.ports,
        context.account,
        filename=_filename(context),
        body=context.request.body,
        size=size,
        namespace=values.get("namespace"),
        force=_truth(values.get("force")),
    )
    return json_response(202, _accepted(accepted))


async def begin(context: Context) -> Response:
    """Open an upload in parts from ``{"filename", "namespace"?}``."""
    value = _texts(await read_body(context.request, _MAX_BEGIN_BYTES), {"filename", "namespace"})
    filename = value.get("filename")
    if filename is None:
        raise validation("filename", "is required")
    upload = await uploads.begin_multipart(
        context.service.ports, context.account, filename=filename, namespace=value.get("namespace")
    )
    return json_response(
        201,
        {
            "importId": upload.import_id,
            "uploadId": upload.upload_id,
            "objectKey": upload.object_key,
            "namespace": upload.namespace,
            "minPartBytes": upload.min_part_bytes,
            "maxPartBytes": upload.max_part_bytes,
            "maxParts": upload.max_parts,
        },
    )


async def put_part(context: Context) -> Response:
    """Store one part, streamed; sent again it replaces the earlier one."""
    number = context.params["part"]
    if not (number.isascii() and number.isdigit() and len(number) <= len(str(MAX_MULTIPART_PARTS))):
        raise validation("part", f"must be a number from 1 to {MAX_MULTIPART_PARTS}")
    size = _declared_length(context)
    if size > MAX_MULTIPART_PART_BYTES:
        raise too_large(size, MAX_MULTIPART_PART_BYTES)
    part = await uploads.put_part(
        context.service.ports, context.account, context.params["id"], int(number), context.request.body
    )
    return json_response(200, _part(part))


async def list_parts(context: Context) -> Response:
    listed = await uploads.list_parts(context.service.ports, context.account, context.params["id"])
    return json_response(
        200,
        {
            "importId": listed.import_id,
            "status": listed.status,
            "sizeBytes": listed.size_bytes,
            "parts": [_part(part) for part in listed.parts],
        },
    )


async def complete(context: Context) -> Response:
    """Join the parts and accept the upload."""
    values = query_values(context.request.query, single={"force": "force"}, repeated={})
    accepted = await uploads.complete(
        context.service.ports, context.account, context.params["id"], force=_truth(values.get("force"))
    )
    return json_response(202, _accepted(accepted))


async def abort(context: Context) -> Response:
    """Forget an upload that was not completed, with its parts."""
    await uploads.abort(context.service.ports, context.account, context.params["id"])
    return json_response(200, {"importId": context.params["id"], "status": "aborted"})


async def read_status(context: Context) -> Response:
    """How an import stands, with its first findings: what memory_import_status answers."""
    return await answer(context, IMPORT_STATUS, {"import_id": context.params["id"]})


async def list_imports(context: Context) -> Response:
    """Imports that run, then those that have ended, newest first."""
    found = await status.list_imports(context.service.ports, context.account)
    return json_response(200, {"imports": [item.as_json() for item in found]})


async def receipt(context: Context) -> Response:
    """The whole receipt of an import that has ended."""
    found = await status.import_receipt(context.service.ports, context.account, context.params["id"])
    return json_response(200, receipt_json(found))


# ------------------------------------------------------------------ values


def _declared_length(context: Context) -> int:
    size = context.request.content_length
    if size is None:
        raise MempersistError(Code.VALIDATION, "Content-Length: is required; send the body's size", status=411)
    return size


def _filename(context: Context) -> str:
    name = context.request.headers.get("x-filename")
    if name is None:
        raise validation("X-Filename", "is required; send the file's name in this header")
    return unquote(name)


def _truth(word: str | None) -> bool:
    if word is None:
        return False
    if word not in _WORDS:
        raise validation("force", "must be true or false")
    return _WORDS[word]


def _texts(body: bytes, fields: set[str]) -> dict[str, str | None]:
    """The body's JSON object of texts. :raises MempersistError: VALIDATION for anything else."""
    value = json_object(body)
    for name, item in value.items():
        if name not in fields:
            raise validation("body", f"unknown field {name[:40]!r}; this route takes: {', '.join(sorted(fields))}")
        if item is not None and not isinstance(item, str):
            raise validation(name, "must be a string")
    return value


def _accepted(accepted: uploads.Accepted) -> dict[str, Any]:
    return {
        "importId": accepted.import_id,
        "objectKey": accepted.object_key,
        "filename": accepted.filename,
        "namespace": accepted.namespace,
        "sizeBytes": accepted.size_bytes,
        "sha256": accepted.sha256,
        "duplicateOf": accepted.duplicate_of,
        "queued": accepted.queued,
    }


def _part(part: UploadedPart) -> dict[str, Any]:
    return {"partNumber": part.number, "etag": part.etag, "sizeBytes": part.size}


ROUTES: Final = (
    Route("GET", "/api/imports", list_imports),
    Route("POST", "/api/imports/direct", direct),
    Route("POST", "/api/imports/multipart", begin),
    Route("PUT", "/api/imports/:id/parts/:part", put_part),
    Route("GET", "/api/imports/:id/parts", list_parts),
    Route("POST", "/api/imports/:id/complete", complete),
    Route("GET", "/api/imports/:id", read_status, IMPORT_STATUS, "import_id"),
    Route("DELETE", "/api/imports/:id", abort),
    Route("GET", "/api/imports/:id/receipt", receipt),
)
