"""The audit trail: approvals, and what was done under them. Lines are only ever added, each bound to the one before."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mempersist_ops.gates.changes import GateError, canonical, digest_of

KINDS: Final = ("approval", "receipt", "refusal", "revocation")
_START: Final = "0" * 64
_FIELDS: Final = {"n", "at", "kind", "body", "previous", "hash"}


@dataclass(frozen=True, slots=True)
class Entry:
    """A line. ``n`` counts from 1; ``at`` is ISO 8601 UTC; ``hash`` covers all else."""

    n: int
    at: str
    kind: str
    body: Mapping[str, Any]
    previous: str
    hash: str


def read(path: Path) -> tuple[Entry, ...]:
    """All entries; none where there is no ledger yet.

    A cut off end is noticed by the head that stands beside the ledger. Whoever can cut both, and the repository's
    history with them, is not noticed here.

    :raises GateError: naming the first line that is not as it was written.
    """
    entries: list[Entry] = []
    previous = _START
    for n, line in enumerate(_lines(path), 1):
        entry = _entry(path, n, line)
        if entry.n != n or entry.previous != previous:
            raise GateError(f"{path}, line {n}: does not follow the line before it: lines were removed, moved or added")
        entries.append(entry)
        previous = entry.hash
    head = _head(path)
    if head is not None and head != previous:
        raise GateError(f"{path}: its end is not the one in {_head_path(path).name}: lines were cut off or added")
    return tuple(entries)


def append(path: Path, kind: str, body: Mapping[str, Any], at: str) -> Entry:
    """Add one entry, after the whole ledger has been verified. :raises GateError:"""
    (entry,) = append_all(path, [(kind, body)], at)
    return entry


def append_all(path: Path, bodies: Sequence[tuple[str, Mapping[str, Any]]], at: str) -> tuple[Entry, ...]:
    """Add entries together. :raises GateError: if the ledger is not sound."""
    with _locked(path):
        entries = read(path)
        added: list[Entry] = []
        previous = entries[-1].hash if entries else _START
        for n, (kind, body) in enumerate(bodies, len(entries) + 1):
            fields: dict[str, Any] = {"n": n, "at": at, "kind": kind, "body": dict(body), "previous": previous}
            added.append(Entry(**fields, hash=digest_of(fields)))
            previous = added[-1].hash
        text = b"".join(canonical(_fields(entry)) + b"\n" for entry in added)
        with path.open("ab") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _head_path(path).write_text(f"{previous}\n", "ascii")
    return tuple(added)


def _fields(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in sorted(_FIELDS)}


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        raise GateError(f"{path}: cannot be read") from None
    if text and not text.endswith("\n"):
        raise GateError(f"{path}: its last line is cut off; take it from the repository's history")
    return text.splitlines()


def _entry(path: Path, n: int, line: str) -> Entry:
    try:
        fields = json.loads(line)
        if set(fields) != _FIELDS or fields["kind"] not in KINDS:
            raise ValueError
        entry = Entry(**fields)
    except (TypeError, ValueError):
        raise GateError(f"{path}, line {n}: is no entry of a ledger") from None
    if digest_of({name: value for name, value in fields.items() if name != "hash"}) != entry.hash:
        raise GateError(f"{path}, line {n}: was altered after it was written")
    return entry


def _head_path(path: Path) -> Path:
    return path.with_suffix(".head")


def _head(path: Path) -> str | None:
    try:
        return _head_path(path).read_text("ascii").strip()
    except FileNotFoundError:
        return None


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """One writer at a time, on this machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
