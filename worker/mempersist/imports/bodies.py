"""Uploaded bytes on their way into the store: counted, hashed and stopped at their bound, never held as a whole."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable

from mempersist.errors import Code, MempersistError, validation
from mempersist.limits import MIB
from mempersist.ports import Body, DirectBody, ObjectStore

_SLICE_BYTES = MIB
_READ_BYTES = 4 * MIB


async def object_sha256(
    objects: ObjectStore, key: str, size: int, before_each: Callable[[int], Awaitable[None]] | None = None
) -> str:
    """Hex digest of an object, read piece by piece; ``before_each`` is told the offset of each piece.

    :raises ObjectNotFound: / :raises StorageError:
    """
    digest = hashlib.sha256()
    for offset in range(0, size, _READ_BYTES):
        if before_each is not None:
            await before_each(offset)
        digest.update(await objects.get(key, offset=offset, length=_READ_BYTES))
    return digest.hexdigest()


class MeteredBody:
    """Passes ``body`` on and raises when it has more than ``limit`` bytes, none, or not the ``declared`` number.

    :param declared: the size that the sender announced; None where it announced none.
    """

    def __init__(self, body: Body, *, limit: int, declared: int | None, limit_message: str) -> None:
        self._body = body
        self._limit = limit
        self._declared = declared
        self._limit_message = limit_message
        self._sha256 = hashlib.sha256()
        self.size = 0
        self.refusal: MempersistError | None = None

    @property
    def sha256(self) -> str | None:
        """Hex digest of what has passed; None for bytes that the store took directly."""
        return None if isinstance(self._body, DirectBody) else self._sha256.hexdigest()

    def body(self) -> Body:
        """What to give to the store: a direct body as it is, once its size is right, or else :meth:`chunks`.

        :raises MempersistError: REQUEST_TOO_LARGE or VALIDATION.
        """
        if not isinstance(self._body, DirectBody):
            return self.chunks()
        self._count(self._body.size)
        self._complete()
        return self._body

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body's bytes. :raises MempersistError: REQUEST_TOO_LARGE or VALIDATION, also kept as ``refusal``."""
        if isinstance(self._body, bytes):
            for start in range(0, len(self._body), _SLICE_BYTES):
                yield self._pass(self._body[start : start + _SLICE_BYTES])
        else:
            async for chunk in self._body:
                if chunk:
                    yield self._pass(chunk)
        self._complete()

    def _complete(self) -> None:
        if self.size == 0:
            raise self._refused(validation("body", "is empty; send at least one byte"))
        if self._declared is not None and self.size != self._declared:
            raise self._refused(
                validation("body", f"{self.size} bytes arrived where {self._declared} were announced; send it again")
            )

    def _pass(self, chunk: bytes) -> bytes:
        self._count(len(chunk))
        self._sha256.update(chunk)
        return chunk

    def _count(self, size: int) -> None:
        self.size += size
        if self.size > self._limit:
            raise self._refused(
                MempersistError(Code.REQUEST_TOO_LARGE, self._limit_message, details={"max_bytes": self._limit})
            )
        if self._declared is not None and self.size > self._declared:
            raise self._refused(
                validation("body", f"more than the announced {self._declared} bytes arrived; send it again")
            )

    def _refused(self, error: MempersistError) -> MempersistError:
        self.refusal = error
        return error
