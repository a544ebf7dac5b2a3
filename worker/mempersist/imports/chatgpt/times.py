"""Times as exports write them: seconds since 1970 with fractions, now and then milliseconds, or ISO 8601."""

from __future__ import annotations

import math
from typing import Any

from mempersist import timestamps

_EARLIEST_MS = 946_684_800_000  # 2000-01-01
_LATEST_MS = 4_102_444_800_000  # 2100-01-01
_UNITS = (1000.0, 1.0, 0.001, 0.000001)
"""Milliseconds in a second, a millisecond, a microsecond and a nanosecond."""


class AbsurdTime(Exception):
    """There is a value, but it is no time between the years 2000 and 2100 in any unit."""


def time_of(value: Any) -> str | None:
    """A source time in the archive's form; None where the source has none.

    :raises AbsurdTime:
    """
    if value is None or value == "":
        return None
    if isinstance(value, str):
        value = _number_in(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise AbsurdTime
    for unit in _UNITS:
        milliseconds = value * unit if abs(value) < _LATEST_MS * 1_000_000 else math.nan
        if _EARLIEST_MS <= milliseconds < _LATEST_MS:
            return timestamps.from_ms(round(milliseconds))
    raise AbsurdTime


def _number_in(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        pass
    try:
        return timestamps.to_ms(text) / 1000
    except (ValueError, OverflowError):
        return None
