"""JSON-RPC 2.0 as MCP uses it: one message a body, an id comes back exactly as it was sent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from mempersist import nesting
from mempersist.archive.model import JsonObject
from mempersist.mcp import budget

Id = str | int

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_PROTOCOL_VERSION: Final = -32022

MAX_DEPTH: Final = 64
"""Lists and objects in each other; the deepest message of the protocol has a quarter of that."""


class RpcError(Exception):
    """A request that gets an error instead of a result.

    :param status: HTTP status, where it does not follow from code and era.
    :param request_id: the id to answer with, where it is known already.
    :param defect: type and place of a defect of this service, for the log only.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        status: int | None = None,
        data: JsonObject | None = None,
        request_id: Id | None = None,
        defect: str | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status
        self.data = data
        self.request_id = request_id
        self.defect = defect


@dataclass(frozen=True, slots=True)
class Message:
    """A request, or a notification where ``id`` is None."""

    id: Id | None
    method: str
    params: JsonObject

    @property
    def meta(self) -> JsonObject:
        found = self.params.get("_meta")
        return found if isinstance(found, dict) else {}


def parse(body: bytes) -> Message:
    """The one message in ``body``.

    :raises RpcError: PARSE_ERROR for what is not JSON; INVALID_REQUEST for a batch, a response, or an id that is
        neither text nor a whole number. Both with status 400.
    """
    value = _load(body)
    if isinstance(value, list):
        raise _invalid("batches are not accepted; send one message a request")
    if not isinstance(value, dict):
        raise _invalid("the body must be one JSON-RPC request or notification object")
    request_id = value.get("id")
    if "id" in value and (isinstance(request_id, bool) or not isinstance(request_id, str | int)):
        raise _invalid("id: must be text or a whole number; leave it out for a notification")
    method, params = value.get("method"), value.get("params")
    if value.get("jsonrpc") != "2.0":
        raise _invalid('jsonrpc: must be "2.0"', request_id)
    if not isinstance(method, str):
        raise _invalid("method: is missing; responses are not accepted here, as nothing was asked", request_id)
    if params is not None and not isinstance(params, dict):
        raise _invalid("params: must be an object", request_id)
    return Message(request_id, method, params or {})


def _load(body: bytes) -> Any:
    try:
        value = nesting.loads(body.decode("utf-8"), parse_constant=_no_constant)
    except ValueError:
        raise RpcError(PARSE_ERROR, "the body is not JSON in UTF-8, or nested too deep", status=400) from None
    if _deeper_than(value, MAX_DEPTH):
        raise _invalid(f"the body is nested deeper than {MAX_DEPTH} levels")
    return value


def _no_constant(name: str) -> float:
    raise ValueError(name)


def _deeper_than(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            child
            for container in level
            if isinstance(container, dict | list)
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _invalid(message: str, request_id: Id | None = None) -> RpcError:
    return RpcError(INVALID_REQUEST, message, status=400, request_id=request_id)


def result_bytes(request_id: Id, result: JsonObject) -> bytes:
    return budget.encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_bytes(error: RpcError) -> bytes:
    """An error answer; its id is null where the request's could not be read."""
    return budget.encode({"jsonrpc": "2.0", "id": error.request_id, "error": error_object(error)})


def error_object(error: RpcError) -> JsonObject:
    value: JsonObject = {"code": error.code, "message": error.message}
    return value if error.data is None else {**value, "data": error.data}
