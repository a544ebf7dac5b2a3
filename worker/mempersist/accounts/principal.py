"""Who is asking, as a door has established it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mempersist.ports import AccountId

READ: Final = "memory:read"
WRITE: Final = "memory:write"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller. ``scopes`` are a subset of :data:`READ` and :data:`WRITE`."""

    account: AccountId
    scopes: frozenset[str]

    def may(self, scope: str) -> bool:
        return scope in self.scopes
