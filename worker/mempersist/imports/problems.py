"""What an import says of things it could not take, or took with a remark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mempersist.errors import Code, MempersistError

Severity = Literal["note", "skipped", "failed"]


class ItemError(Exception):
    """One item (a conversation, a member of an archive) cannot be imported; the rest goes on.

    :param code: a constant in upper case; receipts count by it.
    :param message: one sentence for the person who imports, without any stored text.
    :param skipped: the item holds nothing to import, which is no failure.
    """

    def __init__(self, code: str, message: str, *, skipped: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.skipped = skipped


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark for the receipt. ``position`` says where, in words of the file: a byte, a member's number."""

    code: str
    message: str
    severity: Severity
    position: str


def unreadable(reason: str, message: str) -> MempersistError:
    """The whole file cannot be imported; ``reason`` is a constant like those of :class:`ItemError`."""
    return MempersistError(Code.PERMANENT_PARSER, message, details={"reason": reason})
