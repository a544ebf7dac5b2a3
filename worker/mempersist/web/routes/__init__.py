"""The service's routes, one module per family."""

from __future__ import annotations

from typing import Final

from mempersist.web.router import Route
from mempersist.web.routes import imports, mcp, memories, public

ROUTES: Final[tuple[Route, ...]] = (*mcp.ROUTES, *memories.ROUTES, *imports.ROUTES, *public.ROUTES)
