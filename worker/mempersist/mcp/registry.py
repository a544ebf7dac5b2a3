"""The tools of the endpoint, in the order in which every client sees them."""

from __future__ import annotations

from typing import Final

from mempersist.mcp.tool import Tool
from mempersist.mcp.tools.account import LIST_NAMESPACES, STATS
from mempersist.mcp.tools.capabilities import GET_CAPABILITIES
from mempersist.mcp.tools.context import GET_CONTEXT
from mempersist.mcp.tools.conversations import GET_CONVERSATION, LIST_CONVERSATIONS
from mempersist.mcp.tools.imports import IMPORT_STATUS
from mempersist.mcp.tools.search import SEARCH
from mempersist.mcp.tools.writes import APPEND, STORE

TOOLS: Final[tuple[Tool, ...]] = (
    SEARCH,
    GET_CONTEXT,
    GET_CONVERSATION,
    LIST_CONVERSATIONS,
    LIST_NAMESPACES,
    STATS,
    STORE,
    APPEND,
    IMPORT_STATUS,
    GET_CAPABILITIES,
)
