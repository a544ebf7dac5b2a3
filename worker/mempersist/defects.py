"""Errors that no caller caused: what the caller is told of them, and how the log names them."""

from __future__ import annotations

import traceback

from mempersist.archive.codec import UnreadableObject
from mempersist.errors import Code, MempersistError
from mempersist.ports import (
    CatalogError,
    IndexUnavailable,
    ObjectNotFound,
    PreconditionFailed,
    QueueUnavailable,
    StorageError,
)


def refusal(error: Exception) -> MempersistError | None:
    """What the caller is told where a store could not do its part; None for errors of another kind."""
    if isinstance(error, StorageError | ObjectNotFound | PreconditionFailed | UnreadableObject):
        return MempersistError(Code.CANONICAL_STORAGE, "the object store could not answer; try again later")
    if isinstance(error, CatalogError | QueueUnavailable | IndexUnavailable):
        message = "the service is busy or out of order; try again later"
        return MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message)
    return None


def place_of(error: BaseException) -> str:
    """Type and place of ``error``, never its message, which may quote what is stored."""
    frames = traceback.extract_tb(error.__traceback__)
    return type(error).__name__ + (f" at {frames[-1].name}:{frames[-1].lineno}" if frames else "")
