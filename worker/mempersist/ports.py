"""What the service asks of its host. Every adapter of a port passes the same contract suite in ``tests/contracts``.

All methods are coroutines because on Cloudflare each is a call to a binding. An adapter raises only the errors named
here; anything else is a defect of the adapter.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NewType, Protocol

from mempersist.limits import MAX_CONVERSATION_BYTES

AccountId = NewType("AccountId", str)
SqlValue = str | int | float | bytes | None
Row = Mapping[str, Any]
Body = bytes | AsyncIterable[bytes]
Vector = Sequence[float]
QueueName = Literal["import", "index"]


class ObjectNotFound(Exception):
    """There is no object (or no open multipart upload) at this key."""


class PreconditionFailed(Exception):
    """The object exists already and the put was to create it."""


class StorageError(Exception):
    """The object store could not do it now (I/O, network, full). Nothing was half-written under the key."""


class CatalogError(Exception):
    """The database refused or could not run a statement; a batch has then changed nothing."""


class UniqueViolation(CatalogError):
    """A UNIQUE or PRIMARY KEY constraint refused the row."""


class IndexUnavailable(Exception):
    """The vector index or the embedder cannot answer now."""


class QueueUnavailable(Exception):
    """The message was not accepted."""


class MailUnavailable(Exception):
    """The message was not accepted."""


class DirectBody(AsyncIterable[bytes]):
    """A body that its host can hand to its own object store without the bytes passing through Python. The store takes
    exactly ``size`` bytes or nothing. Iterated over, it gives its bytes like any other body."""

    size: int

    def __aiter__(self) -> AsyncIterator[bytes]:
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """``size`` in bytes; ``etag`` is opaque; ``modified_at`` is ISO 8601 UTC, for people only, and not compared."""

    key: str
    size: int
    etag: str
    modified_at: str = field(compare=False)


@dataclass(frozen=True, slots=True)
class ObjectPage:
    """``objects`` in ascending UTF-8 order of key; ``cursor`` is None on the last page."""

    objects: tuple[ObjectInfo, ...]
    prefixes: tuple[str, ...]
    cursor: str | None


@dataclass(frozen=True, slots=True)
class UploadedPart:
    """One part of a multipart upload, ``number`` from 1."""

    number: int
    etag: str
    size: int


class ObjectStore(Protocol):
    """R2's semantics. Keys are 1 to 1024 UTF-8 bytes. A put that returned survives a crash, a put that did not has
    changed nothing; listing and reading see it at once."""

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        """Write a whole object. :raises PreconditionFailed: if ``if_absent`` and the key exists (one winner).
        :raises ValueError: if ``if_absent`` and the body is a stream that a store can only take in parts (8 MiB)."""
        ...

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes of an object, or of a range: shorter where the object ends. :raises ObjectNotFound:"""
        ...

    async def head(self, key: str) -> ObjectInfo | None: ...

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete up to 1000 keys; a missing one is not an error."""
        ...

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        """A page of the keys that start with ``prefix``; with ``delimiter`` deeper keys fold into ``prefixes``."""
        ...

    async def create_multipart(self, key: str) -> str: ...

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        """Write part 1 to 10,000, replacing an earlier one. :raises ObjectNotFound: for an unknown upload."""
        ...

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        """Join ``parts``, given in ascending order, all but the last of one size. An unknown upload or part, or
        an etag that is not the stored one, :raises ObjectNotFound: or StorageError, as R2 does not always tell."""
        ...

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        """Forget an upload and its parts; an unknown one is not an error."""
        ...


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with ``?`` placeholders and its values, at most 100 of them."""

    sql: str
    params: tuple[SqlValue, ...] = ()


@dataclass(frozen=True, slots=True)
class StatementResult:
    """``changes`` counts rows written by the statement and by triggers and cascades; ``rows`` are those of SELECT or
    RETURNING."""

    rows: tuple[Row, ...]
    changes: int


class Catalog(Protocol):
    """D1's semantics: SQLite's SQL, no transactions but the batch. Foreign keys are on."""

    async def query(self, sql: str, params: Sequence[SqlValue] = ()) -> tuple[Row, ...]:
        """Run one statement and return its rows. :raises CatalogError: / :raises UniqueViolation:"""
        ...

    async def batch(self, statements: Sequence[Statement]) -> tuple[StatementResult, ...]:
        """Run the statements in order as one transaction: all or none."""
        ...


MetadataValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class VectorRecord:
    id: str
    values: Vector
    metadata: Mapping[str, MetadataValue]


@dataclass(frozen=True, slots=True)
class VectorMatch:
    """``score`` is the cosine similarity, -1 to 1."""

    id: str
    score: float
    metadata: Mapping[str, MetadataValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VectorIndexInfo:
    dimensions: int
    count: int


VectorFilter = Mapping[str, MetadataValue | Mapping[str, Any]]
"""Vectorize's filter: ``{"key": value}`` or ``{"key": {"$eq" | "$ne" | "$in" | "$nin": …}}``, keys joined by AND."""


class VectorIndex(Protocol):
    """Vectorize's semantics, cosine. Mutations may become visible only later. All methods
    :raises IndexUnavailable: and :raises ValueError: for what Vectorize would refuse."""

    async def upsert(self, records: Sequence[VectorRecord]) -> None: ...

    async def delete(self, ids: Sequence[str]) -> None: ...

    async def query(
        self, vector: Vector, *, top_k: int, where: VectorFilter, return_metadata: bool = False
    ) -> tuple[VectorMatch, ...]:
        """Best first. ``top_k`` at most 100, or 20 with metadata. ``where`` must not be empty."""
        ...

    async def get(self, ids: Sequence[str]) -> tuple[VectorRecord, ...]: ...

    async def describe(self) -> VectorIndexInfo: ...


class JobQueue(Protocol):
    """At-least-once, unordered. Messages hold ids only: ``{"version": 1, "job_id": …}``."""

    async def send(self, queue: QueueName, bodies: Sequence[Mapping[str, Any]], *, delay_seconds: int = 0) -> None:
        """Enqueue up to 100 messages. :raises QueueUnavailable:"""
        ...


@dataclass(frozen=True, slots=True)
class EmbeddingModel:
    """``name`` identifies weights and preprocessing: another name is another generation."""

    name: str
    dimensions: int


class Embedder(Protocol):
    @property
    def model(self) -> EmbeddingModel: ...

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[Vector]:
        """One vector of ``model.dimensions`` finite numbers per text. :raises IndexUnavailable:"""
        ...


@dataclass(frozen=True, slots=True)
class Mail:
    """One message to one address; the host knows the sender."""

    to: str
    subject: str
    text: str
    html: str | None = None


class Mailer(Protocol):
    async def send(self, mail: Mail) -> None:
        """Hand the message over for delivery. :raises MailUnavailable: and ValueError for what no mail may be."""
        ...


class Clock(Protocol):
    def now_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC."""
        ...


class Ids(Protocol):
    def uuid(self) -> str:
        """A new random UUID in its 36-character form."""
        ...

    def token(self, size: int = 32) -> str:
        """``size`` random bytes, base64url without padding."""
        ...


@dataclass(frozen=True, slots=True)
class Ports:
    """Everything a use case may touch, handed to it by the host.

    :param mailer: None where no mail is set up.
    :param conversation_bytes: what the host's memory holds of one conversation of an export. A longer one is counted as
        failed and stays in the upload, which a host with more memory can import again.
    """

    objects: ObjectStore
    catalog: Catalog
    vectors: VectorIndex
    queue: JobQueue
    embedder: Embedder
    clock: Clock
    ids: Ids
    mailer: Mailer | None = None
    conversation_bytes: int = MAX_CONVERSATION_BYTES
