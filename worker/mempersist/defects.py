"""How a log names an error that nobody expected."""

from __future__ import annotations

import traceback


def place_of(error: BaseException) -> str:
    """Type and place of ``error``, never its message, which may quote what is stored."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ + (f" at {frames[-1].name}:{frames[-1].lineno}" if frames else "")
