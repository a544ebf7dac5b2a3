"""The tools of the endpoint, in the order in which every client sees them."""

from __future__ import annotations

from typing import Final

from mempersist.mcp.tool import Tool
from mempersist.mcp.tools.account import LIST_NAMESPACES, STATS
from mempersist.mcp.tools.batch import GET_CONVERSATIONS
from mempersist.mcp.tools.capabilities import GET_CAPABILITIES
from mempersist.mcp.tools.context import GET_CONTEXT
from mempersist.mcp.tools.conversations import GET_CONVERSATION, LIST_CONVERSATIONS
from mempersist.mcp.tools.copies import COPY_CONVERSATIONS
from mempersist.mcp.tools.deletions import DELETE_CONVERSATIONS, EMPTY_NAMESPACE
from mempersist.mcp.tools.imports import IMPORT_STATUS
from mempersist.mcp.tools.lookups import LIST_REVISIONS, RESOLVE_CONVERSATIONS
from mempersist.mcp.tools.packs import BUILD_CONTEXT
from mempersist.mcp.tools.research import FETCH_DOCUMENT, SEARCH_DOCUMENTS
from mempersist.mcp.tools.revising import REPLACE, RESTORE_REVISION, UPDATE_TAGS
from mempersist.mcp.tools.search import SEARCH
from mempersist.mcp.tools.writes import APPEND, STORE

TOOLS: Final[tuple[Tool, ...]] = (
    SEARCH,
    GET_CONTEXT,
    GET_CONVERSATION,
    GET_CONVERSATIONS,
    LIST_CONVERSATIONS,
    LIST_REVISIONS,
    RESOLVE_CONVERSATIONS,
    BUILD_CONTEXT,
    LIST_NAMESPACES,
    STATS,
    STORE,
    APPEND,
    REPLACE,
    RESTORE_REVISION,
    COPY_CONVERSATIONS,
    UPDATE_TAGS,
    DELETE_CONVERSATIONS,
    EMPTY_NAMESPACE,
    IMPORT_STATUS,
    GET_CAPABILITIES,
    SEARCH_DOCUMENTS,
    FETCH_DOCUMENT,
)
