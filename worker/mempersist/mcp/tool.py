"""A tool as a value: what clients are told about it, what a call of it may need, and what runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from mempersist import limits
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.mcp import brief
from mempersist.ports import AccountId, Ports
from mempersist.service import Settings

MAX_READ_REQUEST_BYTES: Final = 64 * limits.KIB
"""No read takes arguments anywhere near this."""


@dataclass(frozen=True, slots=True)
class Call:
    """What a tool runs with. ``arguments`` are checked and complete; ``tools`` are all that the endpoint has."""

    ports: Ports
    account: AccountId
    arguments: JsonObject
    tools: tuple[Tool, ...]
    settings: Settings

    def get(self, name: str) -> Any:
        """An argument, or None where it is absent."""
        return self.arguments.get(name)


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    :param scope: what a principal must hold; reading needs ``memory:read``, everything else is a write.
    :param input_schema: plain, see ``schema``. :param output_schema: what every answer of ``run`` conforms to.
    :param run: the answer, or :raises MempersistError: for what the caller is told.
    :param idempotent: calling again with the same arguments has no further effect.
    :param max_response_bytes: an answer's JSON never has more.
    :param bounds: further bounds that the capabilities name.
    :param items: the list argument that a request which is too large can be split by.
    """

    name: str
    title: str
    description: str
    scope: str
    input_schema: JsonObject
    output_schema: JsonObject
    run: Callable[[Call], Awaitable[JsonObject]]
    idempotent: bool = True
    destructive: bool = False
    max_request_bytes: int = MAX_READ_REQUEST_BYTES
    max_response_bytes: int = limits.MAX_TOOL_OUTPUT_BYTES
    items: str | None = None
    bounds: tuple[tuple[str, int], ...] = ()

    @property
    def read_only(self) -> bool:
        return self.scope == READ


def definition(tool: Tool) -> JsonObject:
    """The tool as ``tools/list`` names it, its schemas in brief, the same in every protocol era."""
    shown = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": brief.arguments(tool.input_schema),
        "outputSchema": brief.answer(tool.output_schema),
        "annotations": {
            "readOnlyHint": tool.read_only,
            "destructiveHint": tool.destructive,
            "idempotentHint": tool.idempotent,
            "openWorldHint": False,
        },
    }
    if not tool.read_only:
        shown["_meta"] = {"securitySchemes": [{"type": "oauth2", "scopes": [tool.scope]}]}
    return shown


def find(tools: tuple[Tool, ...], name: str) -> Tool | None:
    return next((tool for tool in tools if tool.name == name), None)
