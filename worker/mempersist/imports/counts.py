"""Counting what becomes of an import's parts, so that nothing read can go missing from the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mempersist.archive.model import JsonObject

Fate = Literal["imported", "unchanged", "skipped", "failed"]
Severity = Literal["note", "skipped", "failed"]
FATES: tuple[Fate, ...] = ("imported", "unchanged", "skipped", "failed")


@dataclass(frozen=True, slots=True)
class Tally:
    """Things of one sort by what became of them. What was found is their sum, by construction."""

    imported: int = 0
    unchanged: int = 0
    skipped: int = 0
    failed: int = 0

    @property
    def found(self) -> int:
        return self.imported + self.unchanged + self.skipped + self.failed

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.imported + other.imported,
            self.unchanged + other.unchanged,
            self.skipped + other.skipped,
            self.failed + other.failed,
        )

    def as_json(self) -> JsonObject:
        return {"found": self.found, **{fate: getattr(self, fate) for fate in FATES}}


def tally(fate: Fate, count: int = 1) -> Tally:
    """``count`` things with the same fate."""
    return Tally(**{fate: count})


Reasons = Mapping[Severity, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counters of one import.

    :param files: files of the export. Imported: read to their end as conversations. Assets are counted in ``assets``.
    :param created: imported conversations that were new. :param updated: those that got a new revision or title.
    :param messages_with_text: messages of all readable conversations in which there is text to find.
    :param assets_referenced: different assets that messages point to. :param assets_missing: those without bytes here.
    :param conversations_absent: earlier imported conversations that this export does not hold; they stay.
    :param reasons: how often each reason code was given, by severity. Unlike the list of findings it has no limit.
    """

    conversations: Tally = Tally()
    messages: Tally = Tally()
    assets: Tally = Tally()
    files: Tally = Tally()
    created: int = 0
    updated: int = 0
    messages_with_text: int = 0
    asset_bytes: int = 0
    assets_referenced: int = 0
    assets_missing: int = 0
    conversations_absent: int = 0
    reasons: Reasons = field(default_factory=dict)

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.conversations + other.conversations,
            self.messages + other.messages,
            self.assets + other.assets,
            self.files + other.files,
            self.created + other.created,
            self.updated + other.updated,
            self.messages_with_text + other.messages_with_text,
            self.asset_bytes + other.asset_bytes,
            self.assets_referenced + other.assets_referenced,
            self.assets_missing + other.assets_missing,
            self.conversations_absent + other.conversations_absent,
            _merged(self.reasons, other.reasons),
        )

    @property
    def failures(self) -> int:
        """Everything that should have been imported and could not be."""
        return sum(self.reasons.get("failed", {}).values())

    def as_json(self) -> JsonObject:
        return {
            "conversations": {
                **self.conversations.as_json(),
                "created": self.created,
                "updated": self.updated,
                "absent": self.conversations_absent,
            },
            "messages": {**self.messages.as_json(), "withText": self.messages_with_text},
            "assets": {
                **self.assets.as_json(),
                "bytes": self.asset_bytes,
                "referenced": self.assets_referenced,
                "missing": self.assets_missing,
            },
            "files": self.files.as_json(),
            "reasons": {severity: dict(codes) for severity, codes in self.reasons.items()},
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Counts:
        conversations, assets = value["conversations"], value["assets"]
        return Counts(
            _tally(conversations),
            _tally(value["messages"]),
            _tally(assets),
            _tally(value["files"]),
            created=conversations["created"],
            updated=conversations["updated"],
            messages_with_text=value["messages"]["withText"],
            asset_bytes=assets["bytes"],
            assets_referenced=assets["referenced"],
            assets_missing=assets["missing"],
            conversations_absent=conversations["absent"],
            reasons=value["reasons"],
        )


NOTHING = Counts()


def reason(severity: Severity, code: str, count: int = 1) -> Counts:
    """Counts that hold one reason and nothing else."""
    return Counts(reasons={severity: {code: count}} if count else {})


def _tally(value: Mapping[str, Any]) -> Tally:
    return Tally(*(value[fate] for fate in FATES))


def _merged(first: Reasons, second: Reasons) -> Reasons:
    if not second:
        return first
    merged: dict[Severity, dict[str, int]] = {severity: dict(codes) for severity, codes in first.items()}
    for severity, codes in second.items():
        into = merged.setdefault(severity, {})
        for code, count in codes.items():
            into[code] = into.get(code, 0) + count
    return merged
