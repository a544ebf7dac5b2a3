"""Times as the archive writes them: ISO 8601, UTC, milliseconds, a trailing Z. They sort as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def from_ms(milliseconds: int) -> str:
    """:raises OverflowError: for years outside 1 to 9999."""
    moment = _EPOCH + timedelta(milliseconds=milliseconds)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def to_ms(text: str) -> int:
    """Milliseconds of any ISO 8601 time; one without a zone is taken as UTC. :raises ValueError:"""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round((moment - _EPOCH) / timedelta(milliseconds=1))


def normalise(text: str) -> str:
    """Any ISO 8601 time in the archive's form. :raises ValueError:"""
    return from_ms(to_ms(text))
