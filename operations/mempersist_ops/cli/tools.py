"""Calling a tool in the process, as the owner: what an MCP client would get from the same call."""

from __future__ import annotations

from typing import Any, Final

from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.archive.model import OWNER
from mempersist.mcp import calls
from mempersist.mcp.registry import TOOLS
from mempersist.service import Service, Settings
from mempersist_ops.host.runtime import Host

_OWNER: Final = Principal(OWNER, frozenset({READ, WRITE}))
_NO_DOOR: Final = Settings("http://localhost")


async def call_here(host: Host, name: str, arguments: dict[str, Any]) -> Any:
    """The tool's answer. :raises MempersistError: what it refuses."""
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    return await calls.invoke(tool, arguments, _OWNER, Service(host.ports, _NO_DOOR), TOOLS)
