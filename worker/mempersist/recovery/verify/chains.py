"""Logs whose every entry holds the hash of the one before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar

from mempersist import canonical
from mempersist.archive.codec import UnreadableObject
from mempersist.concurrency import gather
from mempersist.ports import ObjectInfo, ObjectNotFound, Ports
from mempersist.recovery.verify.findings import Verification


class Entry(Protocol):
    @property
    def seq(self) -> int: ...
    @property
    def previous_hash(self) -> str | None: ...


E = TypeVar("E", bound=Entry)


async def check_chain(
    ports: Ports,
    objects: Sequence[ObjectInfo],
    decode: Callable[[bytes], E],
    belongs: Callable[[E], bool],
    report: Verification,
    begins: Callable[[E], bool] = lambda _: False,
) -> list[tuple[E, str]]:
    """Read a log's entries and check them; those that can be read, each with its hash.

    :param begins: whether an entry may be the first though its number is not 0: what stood before it was purged.
    """

    async def read(info: ObjectInfo) -> bytes | None:
        try:
            return await ports.objects.get(info.key)
        except ObjectNotFound:
            return None

    chain: list[tuple[E, str]] = []
    expected = 0
    before: str | None = None
    for info, data in zip(objects, await gather(read(info) for info in objects), strict=True):
        number = _number(info.key)
        try:
            entry = None if data is None else decode(data)
        except UnreadableObject:
            entry = None
        if entry is None or number is None or entry.seq != number or not belongs(entry):
            report.found("LOG_UNREADABLE" if number is not None else "STRANGER", info.key)
            expected, before = (number if number is not None else expected - 1) + 1, None
            continue
        assert data is not None  # noqa: S101
        found = canonical.sha256_hex(data)
        if number != expected and not (begins(entry) and not chain):
            report.found("LOG_GAP", info.key)
        elif number == expected and before is not None and entry.previous_hash != before:
            report.found("LOG_CHAIN", info.key)
        chain.append((entry, found))
        expected, before = number + 1, found
    return chain


def _number(key: str) -> int | None:
    digits = key.rsplit("/", 1)[1].removesuffix(".json")
    return int(digits) if digits.isascii() and digits.isdigit() else None
