"""The HTTP API as an OpenAPI 3.1 document, made of the routes and of the schemas that calls are checked against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from mempersist import __version__, limits
from mempersist.accounts import tokens
from mempersist.accounts.principal import READ, WRITE
from mempersist.archive.model import JsonObject
from mempersist.errors import HTTP_STATUS
from mempersist.mcp import fields
from mempersist.mcp.fields import COUNT, COUNT_OR_NULL, TEXT, TEXT_OR_NULL, TRUTH, result, results
from mempersist.mcp.tool import Tool
from mempersist.web.router import Route
from mempersist.web.tools import parameter_of

SECURITY: Final = "bearer"
_COMMON_ERRORS: Final = (400, 401, 403, 404, 409, 413, 500, 503)
_UPLOAD_ERRORS: Final = (*_COMMON_ERRORS, 411, 422)
_OTHER_CODES: Final = (
    (403, "AUTHENTICATION"),
    (405, "VALIDATION"),
    (411, "VALIDATION"),
    (500, "CANONICAL_STORAGE"),
    (500, "RETRYABLE_INFRASTRUCTURE"),
)
"""What comes with another status than its code's usual one."""


def document(routes: Sequence[Route], public_url: str) -> JsonObject:
    """The whole document. Each route is an operation in it, but for
    pages; ``/mcp/`` is only another spelling of ``/mcp``."""
    paths: dict[str, JsonObject] = {}
    answers: JsonObject = {}
    for route in routes:
        if route.pattern == "/mcp/" or route.page:
            continue
        method = "post" if route.method == "*" else route.method.lower()
        paths.setdefault(template(route.pattern), {})[method] = _operation(route)
        if route.tool is not None:
            answers[answer_name(route)] = route.tool.output_schema
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MemPersist",
            "version": __version__,
            "description": "The long-term memory of AI conversations over HTTP. Assistants use the MCP endpoint.",
        },
        "servers": [{"url": public_url}],
        "security": [{SECURITY: []}],
        "paths": paths,
        "components": {
            "schemas": {**answers, "Error": _ERROR},
            "responses": _error_responses(),
            "securitySchemes": {SECURITY: {"type": "http", "scheme": "bearer"}},
        },
    }


def template(pattern: str) -> str:
    """A route's pattern as OpenAPI writes it: ``/api/imports/{id}``."""
    return "/".join(f"{{{part[1:]}}}" if part.startswith(":") else part for part in pattern.split("/"))


def answer_name(route: Route) -> str:
    """What the schema of a tool's answers is called."""
    return f"{route.tool.name}_answer" if route.tool else ""


# ------------------------------------------------------------------ operations


def _operation(route: Route) -> JsonObject:
    other = f"{route.method} {route.pattern}"
    operation = dict(_OTHERS[other] if route.tool is None else _tool_operation(route, route.tool))
    errors: Sequence[int] = operation.pop("errors", _COMMON_ERRORS)
    responses = {str(status): {"$ref": f"#/components/responses/{status}"} for status in sorted(errors)}
    operation["responses"] = {**operation["responses"], **responses}
    if not route.pattern.startswith(("/api/", "/mcp")):
        operation["security"] = []
    return operation


def _tool_operation(route: Route, tool: Tool) -> JsonObject:
    schemas: Mapping[str, JsonObject] = tool.input_schema["properties"]
    required: Sequence[str] = tool.input_schema.get("required", ())
    parameters = [_path(schemas[route.path_argument])] if route.path_argument else []
    rest = {name: schema for name, schema in schemas.items() if name != route.path_argument}
    operation: JsonObject = {"operationId": tool.name, "summary": tool.title, "description": tool.description}
    if route.method == "GET":
        parameters += [_query(parameter_of(name), schema, name in required) for name, schema in rest.items()]
    else:
        body = {**tool.input_schema, "properties": rest}
        body["required"] = [name for name in required if name in rest]
        operation["requestBody"] = _json_body(body)
    if parameters:
        operation["parameters"] = parameters
    answer = {"$ref": f"#/components/schemas/{answer_name(route)}"}
    return {**operation, "responses": {str(route.status): _json("What the tool answers.", answer)}}


def _path(schema: JsonObject, name: str = "id") -> JsonObject:
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(name: str, schema: JsonObject, required: bool = False) -> JsonObject:
    parameter: JsonObject = {"name": name, "in": "query", "required": required, "schema": schema}
    return {**parameter, "style": "form", "explode": True} if schema["type"] == "array" else parameter


def _json(description: str, schema: JsonObject) -> JsonObject:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _json_body(schema: JsonObject) -> JsonObject:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


# ------------------------------------------------------------------ errors

_ERROR: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {"code": {"type": "string", "enum": [code.value for code in HTTP_STATUS]}, "message": TEXT},
            "required": ["code", "message"],
        }
    },
    "required": ["error"],
    "additionalProperties": False,
}


def _error_responses() -> JsonObject:
    """One response a status, with the codes that come with it."""
    codes: dict[int, list[str]] = {}
    known = [(status, code.value) for code, status in HTTP_STATUS.items()]
    for status, code in (*known, *_OTHER_CODES):
        codes.setdefault(status, []).append(code)
    schema = {"$ref": "#/components/schemas/Error"}
    return {str(status): _json(", ".join(named), schema) for status, named in sorted(codes.items())}


# ------------------------------------------------------------------ routes without a tool

_IMPORT_ID: Final = _path(fields.text("Id of the import.", pattern=fields.UUID_PATTERN))
_FORCE: Final = _query("force", {"type": "boolean", "description": "Import it though it was imported before."})
_NAMESPACE: Final = _query("namespace", fields.namespace("Where the conversations go; the default one when absent."))
_FILE: Final = {"required": True, "content": {"application/octet-stream": {"schema": {"type": "string"}}}}
_PART: Final = result({"partNumber": COUNT, "etag": TEXT, "sizeBytes": COUNT})
_ACCEPTED: Final = result(
    {
        "importId": TEXT,
        "objectKey": TEXT,
        "filename": TEXT,
        "namespace": TEXT,
        "sizeBytes": COUNT,
        "sha256": TEXT_OR_NULL,
        "duplicateOf": TEXT_OR_NULL,
        "queued": TRUTH,
    }
)
_BEGUN: Final = result(
    {
        "importId": TEXT,
        "uploadId": TEXT,
        "objectKey": TEXT,
        "namespace": TEXT,
        "minPartBytes": COUNT,
        "maxPartBytes": COUNT,
        "maxParts": COUNT,
    }
)
_LISTED: Final = result({"importId": TEXT, "status": TEXT, "sizeBytes": COUNT_OR_NULL, "parts": results(_PART)})
_TOKEN: Final = result(
    {
        "id": TEXT,
        "name": TEXT,
        "scopes": results(TEXT),
        "createdAt": TEXT,
        "expiresAt": TEXT,
        "lastUsedAt": TEXT_OR_NULL,
    }
)
_OBJECT: Final[JsonObject] = {"type": "object"}


def _other(name: str, summary: str, status: int, schema: JsonObject, **more: Any) -> JsonObject:
    return {"operationId": name, "summary": summary, "responses": {str(status): _json("Done.", schema)}, **more}


_OTHERS: Final[Mapping[str, JsonObject]] = {
    "POST /api/imports/direct": _other(
        "import_direct",
        "Import a file in one request",
        202,
        _ACCEPTED,
        description=f"At most {limits.MAX_DIRECT_IMPORT_BYTES} bytes, with their number in Content-Length.",
        parameters=[
            {
                "name": "X-Filename",
                "in": "header",
                "required": True,
                "schema": fields.text("The file's name, percent-encoded.", minLength=1, maxLength=255),
            },
            _NAMESPACE,
            _FORCE,
        ],
        requestBody=_FILE,
        errors=_UPLOAD_ERRORS,
    ),
    "POST /api/imports/multipart": _other(
        "import_begin",
        "Begin an upload in parts",
        201,
        _BEGUN,
        requestBody=_json_body(
            fields.arguments(
                ("filename",),
                filename=fields.text("The file's name.", minLength=1, maxLength=255),
                namespace=fields.namespace("Where the conversations go; the default one when absent."),
            )
        ),
    ),
    "PUT /api/imports/:id/parts/:part": _other(
        "import_put_part",
        "Store a part",
        200,
        _PART,
        description=f"At most {limits.MAX_MULTIPART_PART_BYTES} bytes, with their number in Content-Length.",
        parameters=[_IMPORT_ID, _path(fields.integer("Its number.", 1, limits.MAX_MULTIPART_PARTS), "part")],
        requestBody=_FILE,
        errors=_UPLOAD_ERRORS,
    ),
    "GET /api/imports/:id/parts": _other(
        "import_list_parts", "List the parts that have arrived", 200, _LISTED, parameters=[_IMPORT_ID]
    ),
    "POST /api/imports/:id/complete": _other(
        "import_complete",
        "Join the parts and import them",
        202,
        _ACCEPTED,
        parameters=[_IMPORT_ID, _FORCE],
        errors=_UPLOAD_ERRORS,
    ),
    "DELETE /api/imports/:id": _other(
        "import_abort",
        "Forget an upload",
        200,
        result({"importId": TEXT, "status": TEXT}),
        parameters=[_IMPORT_ID],
    ),
    "GET /api/imports": _other("import_list", "List imports", 200, result({"imports": results(_OBJECT)})),
    "GET /api/imports/:id/receipt": _other(
        "import_receipt", "The whole receipt of an import", 200, _OBJECT, parameters=[_IMPORT_ID]
    ),
    "GET /api/tokens": _other("token_list", "List personal access tokens", 200, result({"tokens": results(_TOKEN)})),
    "POST /api/tokens": _other(
        "token_create",
        "Make a personal access token",
        201,
        result({**_TOKEN["properties"], "token": TEXT}),
        description="The token is in this answer alone.",
        requestBody=_json_body(
            fields.arguments(
                ("name",),
                name=fields.text("What it is for.", minLength=1, maxLength=tokens.MAX_NAME_CHARS),
                scopes={"type": "array", "items": {"type": "string", "enum": [READ, WRITE]}, "minItems": 1},
                expires_in_days=fields.integer("Days until it ends.", 1, tokens.MAX_DAYS, tokens.DEFAULT_DAYS),
            )
        ),
    ),
    "DELETE /api/tokens/:id": _other(
        "token_revoke",
        "Revoke a personal access token",
        200,
        result({"revoked": TRUTH}),
        parameters=[_path(fields.text("Id of the token.", minLength=1))],
    ),
    "* /mcp": {
        "operationId": "mcp",
        "summary": "The MCP endpoint (Streamable HTTP)",
        "requestBody": _json_body(_OBJECT),
        "responses": {
            "200": _json("The answer to a JSON-RPC request.", _OBJECT),
            "202": {"description": "A JSON-RPC notification was taken."},
            "4XX": _json("What is wrong with the request.", _OBJECT),
        },
        "errors": (),
    },
    "GET /": _other("front_page", "Where the MCP endpoint is", 200, _OBJECT, errors=()),
    "POST /": {"operationId": "misdirected", "summary": "Names the MCP endpoint", "responses": {}, "errors": (405,)},
    "GET /openapi.json": _other("openapi", "This document", 200, _OBJECT, errors=()),
    "GET /healthz": _other("alive", "The process answers", 200, result({"status": TEXT}), errors=()),
    "GET /readyz": {
        "operationId": "ready",
        "summary": "The catalog answers",
        "responses": {
            status: _json(text, result({"status": TEXT, "catalog": TEXT}))
            for status, text in (("200", "It does."), ("503", "It does not."))
        },
        "errors": (),
    },
}
