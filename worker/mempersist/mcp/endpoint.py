"""The endpoint as a pure function of one HTTP request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from mempersist.accounts.principal import Principal
from mempersist.errors import Code, MempersistError
from mempersist.limits import MAX_INLINE_JSON_WRITE_BYTES
from mempersist.mcp import access, budget, eras, jsonrpc, protocol
from mempersist.mcp.jsonrpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import Tool
from mempersist.service import Service

MAX_BODY_BYTES: Final = 4 * MAX_INLINE_JSON_WRITE_BYTES
"""More than any call may have, so that one which is too large can be refused in the protocol's own words."""

_JSON: Final = {"Content-Type": "application/json"}
_EVENTS: Final = {"Content-Type": "text/event-stream"}


@dataclass(frozen=True, slots=True)
class McpResponse:
    """An answer. For the log only: ``code``, the error code of a call that failed; ``defect``, type and place of a
    defect of this service."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    code: str | None = None
    defect: str | None = None


async def handle(
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    principal: Principal | None,
    service: Service,
    *,
    tools: tuple[Tool, ...] = TOOLS,
) -> McpResponse:
    """Answer one request to the MCP endpoint. Never raises for what a caller sent or a store could not do.

    :param headers: names in lower case.
    :param body: may be empty where ``principal`` is None: it is not looked at before the caller is known.
    :param principal: the caller as authenticated by the door; None gets a 401 with the challenge.
    """
    origin = headers.get("origin")
    if not access.origin_allowed(service.settings, origin):
        return _refusal(403, "Origin: pages of this origin may not use this server; its operator can allow it")
    if not access.host_allowed(service.settings, headers.get("host")):
        return _refusal(403, "Host: is not a name of this server; use its public URL")
    answer = await _answer(method, headers, body, principal, service, tools)
    if origin is None:
        return answer
    return replace(answer, headers={**answer.headers, **access.cross_origin_headers(origin)})


async def _answer(
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    principal: Principal | None,
    service: Service,
    tools: tuple[Tool, ...],
) -> McpResponse:
    if method == "OPTIONS" and "origin" in headers:
        return McpResponse(204, access.preflight_headers())
    if method != "POST":
        return _error(405, MempersistError(Code.VALIDATION, "method: send messages with POST"), {"Allow": "POST"})
    if principal is None:
        problem = "the bearer token is not valid here" if "authorization" in headers else "needs a bearer token"
        challenge = {"WWW-Authenticate": access.challenge(service.settings, headers)}
        return _error(401, MempersistError(Code.AUTHENTICATION, problem), challenge)
    if len(body) > MAX_BODY_BYTES:
        return _refusal(413, f"the body has {len(body)} bytes; at most {MAX_BODY_BYTES} are read. Send less at a time.")
    return await _message(headers, body, principal, service, tools)


async def _message(
    headers: Mapping[str, str], body: bytes, principal: Principal, service: Service, tools: tuple[Tool, ...]
) -> McpResponse:
    try:
        message = jsonrpc.parse(body)
    except RpcError as error:
        return _rpc_error(headers, error.status or 400, error)
    if message.id is None:
        return McpResponse(202)
    era = None
    try:
        era = eras.classify(message, headers)
        reply = await protocol.reply(message, era, len(body), principal, service, tools)
    except RpcError as error:
        error.request_id = message.id
        return _rpc_error(headers, era.status_of(error) if era else error.status or 400, error)
    encoded = jsonrpc.result_bytes(message.id, reply.result)
    return replace(_content(headers, 200, encoded), code=reply.code, defect=reply.defect)


def _content(headers: Mapping[str, str], status: int, encoded: bytes) -> McpResponse:
    """JSON, or a stream of one event for a client that takes nothing else."""
    accepted = headers.get("accept", "").lower()
    if "text/event-stream" in accepted and not ("json" in accepted or "*/*" in accepted or "application/*" in accepted):
        return McpResponse(status, _EVENTS, b"event: message\ndata: " + encoded + b"\n\n")
    return McpResponse(status, _JSON, encoded)


def _rpc_error(headers: Mapping[str, str], status: int, error: RpcError) -> McpResponse:
    answer = _content(headers, status, jsonrpc.error_bytes(error))
    code = "INTERNAL_ERROR" if error.code == INTERNAL_ERROR else f"JSONRPC{error.code}"
    return replace(answer, code=code, defect=error.defect)


def _refusal(status: int, message: str) -> McpResponse:
    """A JSON-RPC error without an id: the message was not looked at."""
    error = jsonrpc.error_object(RpcError(INVALID_REQUEST, message))
    return McpResponse(status, _JSON, budget.encode({"jsonrpc": "2.0", "error": error}), f"JSONRPC{INVALID_REQUEST}")


def _error(status: int, error: MempersistError, headers: Mapping[str, str]) -> McpResponse:
    """An answer in the words of the service's HTTP interface, as there is no protocol message to answer."""
    body = budget.encode({"error": error.as_json()})
    return McpResponse(status, {**_JSON, **headers}, body, error.code.value)
