"""Which protocol era a message belongs to, and what the stateless era asks of its envelope.

Up to 2025-11-25 a client introduces itself with ``initialize``. From 2026-07-28 each request carries its version and
capabilities in ``_meta``, mirrored in headers that have to agree. Both are served on one endpoint without state, so
each message alone decides.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from mempersist.archive.model import JsonObject
from mempersist.mcp.jsonrpc import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    UNSUPPORTED_PROTOCOL_VERSION,
    Message,
    RpcError,
)

MODERN_VERSIONS: Final = ("2026-07-28",)
LEGACY_VERSIONS: Final = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Newest first: an ``initialize`` that asks for none of them is offered the first."""
VERSIONS: Final = (*MODERN_VERSIONS, *LEGACY_VERSIONS)
_UNSERVED_VERSIONS: Final = ("2024-11-05",)
_ASSUMED_VERSION: Final = "2025-03-26"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"

_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_BASE64_HEADER: Final = re.compile(r"=\?base64\?(.*)\?=")
_MODERN_STATUS: Final = {
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
    METHOD_NOT_FOUND: 404,
}


@dataclass(frozen=True, slots=True)
class Era:
    """How a request is to be answered. ``version`` is one of :data:`VERSIONS`."""

    version: str

    @property
    def modern(self) -> bool:
        return self.version in MODERN_VERSIONS

    def status_of(self, error: RpcError) -> int:
        """HTTP status of an error: earlier eras answer 200 to every request they could read."""
        if error.status is not None:
            return error.status
        return _MODERN_STATUS.get(error.code, 200) if self.modern else 200


def classify(message: Message, headers: Mapping[str, str]) -> Era:
    """The era of a request. A missing version header never decides against a client of an earlier era.

    :raises RpcError: with status 400, for an envelope that the era does not allow.
    """
    header = headers.get("mcp-protocol-version", "").strip() or None
    modern_header = header is not None and header not in (*LEGACY_VERSIONS, *_UNSERVED_VERSIONS)
    if VERSION_KEY in message.meta or (modern_header and message.method != "initialize"):
        return _modern(message, header, headers)
    if header in _UNSERVED_VERSIONS and message.method != "initialize":
        raise RpcError(INVALID_REQUEST, f"MCP-Protocol-Version: {header} is not served; {_served()}", status=400)
    return Era(header if header in LEGACY_VERSIONS else _ASSUMED_VERSION)


def _modern(message: Message, header: str | None, headers: Mapping[str, str]) -> Era:
    version = message.meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise _refused(INVALID_PARAMS, f"_meta: must hold {VERSION_KEY} as text")
    if not isinstance(message.meta.get(CAPABILITIES_KEY), dict):
        raise _refused(INVALID_PARAMS, f"_meta: must hold {CAPABILITIES_KEY} as an object")
    _must_agree("MCP-Protocol-Version", header, version, VERSION_KEY)
    if version not in MODERN_VERSIONS:
        data: JsonObject = {"supported": list(VERSIONS), "requested": version[:64]}
        raise _refused(UNSUPPORTED_PROTOCOL_VERSION, f"this protocol version is not served; {_served()}", data)
    _must_agree("Mcp-Method", headers.get("mcp-method"), message.method, "method")
    named_by = _NAMED_BY.get(message.method)
    if named_by is not None:
        _must_agree("Mcp-Name", headers.get("mcp-name"), message.params.get(named_by), f"params.{named_by}")
    return Era(version)


def _must_agree(name: str, header: str | None, value: Any, mirrored: str) -> None:
    if header is None:
        raise _refused(HEADER_MISMATCH, f"{name}: the header is missing; it repeats {mirrored}")
    if _decoded(header.strip()) != value:
        raise _refused(HEADER_MISMATCH, f"{name}: the header differs from {mirrored}")


def _decoded(header: str) -> str | None:
    """A header's value, out of its base64 wrapping where it has one; None for a broken one."""
    wrapped = _BASE64_HEADER.fullmatch(header)
    if wrapped is None:
        return header
    try:
        return base64.b64decode(wrapped[1], validate=True).decode("utf-8")
    except ValueError:
        return None


def _refused(code: int, message: str, data: JsonObject | None = None) -> RpcError:
    return RpcError(code, message, data=data, status=400)


def _served() -> str:
    return f"served are {', '.join(VERSIONS)}"
