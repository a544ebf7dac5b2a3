"""Idempotency keys: which request each stands for.

A write to one conversation keeps its key in its head entry. A request over many conversations keeps it in a record of
its own, written before its first change: what the request found then, so that a repeated call does the same again.
"""

from __future__ import annotations

from dataclasses import dataclass

from mempersist import canonical, limits, timestamps
from mempersist.archive import keys
from mempersist.archive.model import HeadOperation, JsonObject
from mempersist.errors import Code, MempersistError, validation
from mempersist.ports import AccountId, ObjectNotFound, Ports, PreconditionFailed, StorageError
from mempersist.text import utf8_safe

_FORMAT = "mempersist.request.v1"


@dataclass(frozen=True, slots=True)
class Request:
    """What a caller asked for. ``hash`` tells it from every other request; None where it has no key."""

    operation: HeadOperation
    key: str | None
    hash: str | None


@dataclass(frozen=True, slots=True)
class Record:
    """What a request over many conversations found when it came first. ``at`` is when that was."""

    at: str
    values: JsonObject
    repeated: bool


def of(operation: HeadOperation, key: str | None, *material: str | None) -> Request:
    """A request that is told from others by ``material``.

    :raises MempersistError: VALIDATION for a key that is blank or too long.
    """
    if key is None:
        return Request(operation, None, None)
    if not key.strip() or len(key) > limits.MAX_IDEMPOTENCY_KEY_CHARS or utf8_safe(key) != key:
        most = limits.MAX_IDEMPOTENCY_KEY_CHARS
        raise validation("idempotency_key", f"must have 1 to {most} characters of valid Unicode, not blank")
    return Request(operation, key, canonical.identity(operation, *material))


def key_conflict() -> MempersistError:
    return MempersistError(
        Code.IMPORT_CONFLICT,
        "idempotency_key: was used for another request; repeat that request unchanged or choose a new key",
    )


async def earlier(ports: Ports, account: AccountId, request: Request) -> Record | None:
    """The record of an earlier call of ``request``, or None.

    :raises MempersistError: IMPORT_CONFLICT when its key stands for another request; CANONICAL_STORAGE.
    """
    if request.key is None:
        return None
    rows = await ports.catalog.query(
        "SELECT 1 FROM idempotency_keys WHERE account_id = ? AND idempotency_key = ?", (account, request.key)
    )
    if rows:
        raise key_conflict()  # a write to a single conversation has it
    found = await _stored(ports, account, request.key)
    return _record(found, request) if found else None


async def record(ports: Ports, account: AccountId, request: Request, values: JsonObject) -> Record:
    """Keep ``values`` for the calls that repeat ``request``; what an earlier call kept comes first.

    :raises MempersistError: as :func:`earlier` does.
    """
    now = timestamps.from_ms(ports.clock.now_ms())
    if request.key is None:
        return Record(now, values, repeated=False)
    kept = {"format": _FORMAT, "operation": request.operation, "requestHash": request.hash, "at": now, "values": values}
    try:
        await ports.objects.put(keys.request_record(account, request.key), canonical.dumps(kept), if_absent=True)
    except PreconditionFailed:
        found = await _stored(ports, account, request.key)
        if found is not None:
            return _record(found, request)
    except StorageError as error:
        raise _out_of_reach() from error
    return Record(now, values, repeated=False)


async def require_unused(ports: Ports, account: AccountId, request: Request) -> None:
    """:raises MempersistError: IMPORT_CONFLICT when a request over many conversations has the key."""
    if request.key is not None and await _stored(ports, account, request.key):
        raise key_conflict()


async def _stored(ports: Ports, account: AccountId, key: str) -> JsonObject | None:
    try:
        data = await ports.objects.get(keys.request_record(account, key))
    except ObjectNotFound:
        return None
    except StorageError as error:
        raise _out_of_reach() from error
    try:
        found: JsonObject = canonical.loads(data)
    except ValueError as error:
        raise MempersistError(
            Code.CANONICAL_STORAGE, "what is kept of this idempotency_key is damaged; choose a new key", status=500
        ) from error
    return found


def _record(found: JsonObject, request: Request) -> Record:
    if found["requestHash"] != request.hash:
        raise key_conflict()
    return Record(found["at"], found["values"], repeated=True)


def _out_of_reach() -> MempersistError:
    return MempersistError(
        Code.CANONICAL_STORAGE,
        "the object store did not answer for the idempotency key; nothing was written, try again",
    )
