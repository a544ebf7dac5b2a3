"""Opaque cursors that only hold a position. Ownership is checked by the query that uses them, on every call."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence

from mempersist import nesting
from mempersist.errors import MempersistError, validation
from mempersist.limits import MAX_CURSOR_BYTES


def encode(kind: str, position: Sequence[str | int]) -> str:
    """A URL-safe cursor for ``position`` in a listing of this ``kind``."""
    data = json.dumps([kind, *position], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode(kind: str, cursor: str, types: Sequence[type]) -> list[str | int]:
    """The position in a cursor that :func:`encode` made. :raises MempersistError: VALIDATION for any other text."""
    try:
        if len(cursor) > MAX_CURSOR_BYTES:
            raise invalid()
        data = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        value = nesting.loads(data.decode())
    except (ValueError, binascii.Error):
        raise invalid() from None
    if not isinstance(value, list) or value[:1] != [kind] or [type(item) for item in value[1:]] != list(types):
        raise invalid()
    return value[1:]


def invalid() -> MempersistError:
    """The one answer to a cursor that is not usable here."""
    return validation("cursor", "Invalid cursor; start again without one")
