"""The service's errors: one class, a closed set of codes, each with its HTTP status and whether a retry can help.

A message names what was wrong, the bound, and the way out. It never holds stored text, a query or a token.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """Error codes of the service contract (section 2)."""

    VALIDATION = "VALIDATION"
    AUTHENTICATION = "AUTHENTICATION"
    NOT_FOUND = "NOT_FOUND"
    IMPORT_CONFLICT = "IMPORT_CONFLICT"
    DELETION_PENDING = "DELETION_PENDING"
    REQUEST_TOO_LARGE = "REQUEST_TOO_LARGE"
    RESPONSE_TOO_LARGE = "RESPONSE_TOO_LARGE"
    AMBIGUOUS_TITLE = "AMBIGUOUS_TITLE"
    PERMANENT_PARSER = "PERMANENT_PARSER"
    CANONICAL_STORAGE = "CANONICAL_STORAGE"
    DERIVED_INDEXING = "DERIVED_INDEXING"
    RETRYABLE_INFRASTRUCTURE = "RETRYABLE_INFRASTRUCTURE"


HTTP_STATUS: dict[Code, int] = {
    Code.VALIDATION: 400,
    Code.AUTHENTICATION: 401,
    Code.NOT_FOUND: 404,
    Code.IMPORT_CONFLICT: 409,
    Code.DELETION_PENDING: 409,
    Code.REQUEST_TOO_LARGE: 413,
    Code.RESPONSE_TOO_LARGE: 413,
    Code.AMBIGUOUS_TITLE: 409,
    Code.PERMANENT_PARSER: 422,
    Code.CANONICAL_STORAGE: 503,
    Code.DERIVED_INDEXING: 503,
    Code.RETRYABLE_INFRASTRUCTURE: 503,
}

RETRYABLE: frozenset[Code] = frozenset({Code.DERIVED_INDEXING, Code.RETRYABLE_INFRASTRUCTURE})


class MempersistError(Exception):
    """A refusal or failure that the caller is told about.

    :param code: one of :class:`Code`.
    :param message: one sentence or two for the caller, at most a few hundred characters.
    :param status: HTTP status where it differs from the code's usual one (403 for a foreign namespace).
    :param details: small JSON values for machines (``request_bytes``, ``suggested_max_items`` …).
    """

    def __init__(
        self, code: Code, message: str, *, status: int | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.status = status if status is not None else HTTP_STATUS[code]
        self.details = details or {}

    @property
    def retryable(self) -> bool:
        return self.code in RETRYABLE

    def as_json(self) -> dict[str, Any]:
        """The error object that every door answers with."""
        return {"code": self.code.value, "message": self.message, **self.details}


def validation(field: str, problem: str) -> MempersistError:
    """Bad input: ``field`` names the argument, ``problem`` says the bound and the way out."""
    return MempersistError(Code.VALIDATION, f"{field}: {problem}", details={"field": field})


def not_found(what: str) -> MempersistError:
    """The one answer for missing, deleted and foreign alike (promise 7)."""
    return MempersistError(Code.NOT_FOUND, f"{what} not found")
