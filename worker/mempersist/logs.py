"""The log: a line of JSON for each request, turn, sweep and failure, made of ids, counts, durations and codes."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

_log: Final = logging.getLogger("mempersist")


def info(event: str, **fields: Any) -> None:
    """``fields`` are ids, numbers and codes of ours, never a text that a person or an export brought."""
    _log.info(_line(event, fields))


def error(event: str, **fields: Any) -> None:
    """The same for what somebody should look at."""
    _log.error(_line(event, fields))


def _line(event: str, fields: dict[str, Any]) -> str:
    return json.dumps({"event": event, **{name: value for name, value in fields.items() if value is not None}})
