"""What a verification can find, and what it means."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

Severity = Literal["damage", "behind", "note"]


@dataclass(frozen=True, slots=True)
class Kind:
    """``damage``: the archive itself lost something. ``behind``: a projection differs, and can be made again from the
    archive. ``note``: nothing is wrong with what is there."""

    severity: Severity
    meaning: str
    remedy: str


_COPY: Final = "put the object back from a backup or an export"
_REBUILD: Final = "run `mempersist rebuild-catalog --yes`"
_WAIT: Final = "the server's background work does it; if it stays, look at its log"
FINDINGS: Final[Mapping[str, Kind]] = {
    "FORMAT": Kind("damage", "the bucket does not say that it is of this program's format", _COPY),
    "LOG_GAP": Kind("damage", "an entry of a log is missing", _COPY),
    "LOG_UNREADABLE": Kind("damage", "an entry of a log cannot be read, or is not the one its key says", _COPY),
    "LOG_CHAIN": Kind("damage", "an entry of a log does not hold the hash of the entry before it", _COPY),
    "REVISION_MISSING": Kind("damage", "a revision that a log names has no manifest", _COPY),
    "REVISION_UNREADABLE": Kind("damage", "a manifest cannot be read, or is not the one its key says", _COPY),
    "SEGMENT_MISSING": Kind("damage", "a segment that a manifest names is not there", _COPY),
    "SEGMENT_DAMAGED": Kind("damage", "a segment has other bytes than its name says", _COPY),
    "ASSET_MISSING": Kind("damage", "a file that came with an export is not there", _COPY),
    "ASSET_DAMAGED": Kind("damage", "a file that came with an export has other bytes than its name says", _COPY),
    "UPLOAD_MISSING": Kind("damage", "an upload is not there", _COPY),
    "UPLOAD_DAMAGED": Kind("damage", "an upload has other bytes than its receipt says", _COPY),
    "RECORD_UNREADABLE": Kind("damage", "the record of an asset or import cannot be read", _COPY),
    "CATALOG_MISSING": Kind("behind", "the catalog does not know a conversation", _REBUILD),
    "CATALOG_DIFFERS": Kind("behind", "the catalog is at another entry of a log than the archive", _REBUILD),
    "CATALOG_MESSAGES": Kind("behind", "the catalog has other messages than the revision", _REBUILD),
    "CATALOG_STRANGER": Kind("behind", "the catalog knows a conversation that the archive does not have", _REBUILD),
    "INDEX_BEHIND": Kind("behind", "a conversation waits for the index", _WAIT),
    "INDEX_FAILED": Kind("behind", "a conversation could not be indexed", _WAIT),
    "VECTORS_MISSING": Kind("behind", "vectors that the catalog counts as written are not there", _REBUILD),
    "UNCOMMITTED": Kind("note", "an object that nothing refers to: of a write that runs, or never ended", "none"),
    "STRANGER": Kind("note", "an object that no key of the archive's format names", "none"),
    "IMPORT_OPEN": Kind("note", "an import has not ended", _WAIT),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``code`` is one of :data:`FINDINGS`; ``key`` is the object's, or a conversation's id for the catalog's."""

    code: str
    key: str

    @property
    def kind(self) -> Kind:
        return FINDINGS[self.code]


@dataclass(frozen=True, slots=True)
class Slice:
    """One of ``of`` equal parts of the archive by key: all parts together are all of it. Logs are always whole. Without
    ``bodies`` nothing is hashed."""

    part: int = 0
    of: int = 1
    bodies: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.part < self.of:
            raise ValueError("a slice is part 0 to of - 1")

    def holds(self, name: str) -> bool:
        return self.bodies and int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % self.of == self.part


_MOST_LISTED: Final = 1000


@dataclass(slots=True)
class Verification:
    """``counts`` has every finding by code, ``findings`` the first thousand. ``hashed`` counts bytes."""

    conversations: int = 0
    tombstones: int = 0
    objects: int = 0
    hashed: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def found(self, code: str, key: str) -> None:
        self.counts[code] += 1
        if len(self.findings) < _MOST_LISTED:
            self.findings.append(Finding(code, key))

    def severity(self) -> Severity | None:
        """The worst of what was found; None where nothing was."""
        found = {FINDINGS[code].severity for code in self.counts}
        order: tuple[Severity, ...] = ("damage", "behind", "note")
        return next((one for one in order if one in found), None)
