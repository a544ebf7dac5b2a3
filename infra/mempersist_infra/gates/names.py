"""The hooks' names: the state keeps them, so they never change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HOOKS: Final[Mapping[str, str]] = {
    "BeforeCreate": "gate:create",
    "AfterCreate": "gate:created",
    "BeforeUpdate": "gate:update",
    "AfterUpdate": "gate:updated",
    "BeforeDelete": "gate:delete",
    "AfterDelete": "gate:deleted",
}
"""By the event, as the state writes it."""
