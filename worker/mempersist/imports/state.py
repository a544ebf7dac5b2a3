"""Where an import stands between two turns. It is kept as JSON in ``import_runs.checkpoint_json``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from mempersist.archive.model import JsonObject
from mempersist.imports.counts import Counts

Phase = Literal["hash", "survey", "files", "assets", "finish"]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why an import as a whole came to nothing."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """The checkpoint.

    An *archive* is the upload itself (number 0) or a ZIP inside it (from 1). Conversation files are read archive by
    archive, then assets archive by archive.

    :param archives: how many archives there are; known once archive 0 is surveyed.
    :param file: which conversation file of the archive is being read.
    :param scan: position inside the conversation file, as the scanner gave it.
    :param asset_at: where in the archive's directory the next asset is: byte offset and index.
    :param bytes_done: of ``bytes_total`` bytes of conversations and assets; for showing progress.
    :param noted: findings recorded as notes. :param recorded: findings recorded as skipped or failed.
    :param unrecorded: findings over the limit, present in the counts only.
    """

    phase: Phase = "hash"
    force: bool = False
    archives: int = 1
    archive: int = 0
    file: int = 0
    scan: JsonObject | None = None
    asset_at: tuple[int, int] = (0, 0)
    bytes_done: int = 0
    bytes_total: int = 0
    noted: int = 0
    recorded: int = 0
    unrecorded: int = 0
    duplicate_of: str | None = None
    failure: Failure | None = None
    counts: Counts = field(default_factory=Counts)

    def encode(self) -> str:
        return json.dumps(
            {
                "phase": self.phase,
                "force": self.force,
                "archives": self.archives,
                "archive": self.archive,
                "file": self.file,
                "scan": self.scan,
                "assetAt": list(self.asset_at),
                "bytesDone": self.bytes_done,
                "bytesTotal": self.bytes_total,
                "noted": self.noted,
                "recorded": self.recorded,
                "unrecorded": self.unrecorded,
                "duplicateOf": self.duplicate_of,
                "failure": [self.failure.code, self.failure.message] if self.failure else None,
                "counts": self.counts.as_json(),
            },
            separators=(",", ":"),
        )

    @staticmethod
    def decode(text: str) -> State:
        value: Mapping[str, Any] = json.loads(text)
        if not value:
            return State()
        return State(
            phase=value["phase"],
            force=value["force"],
            archives=value["archives"],
            archive=value["archive"],
            file=value["file"],
            scan=value["scan"],
            asset_at=(value["assetAt"][0], value["assetAt"][1]),
            bytes_done=value["bytesDone"],
            bytes_total=value["bytesTotal"],
            noted=value["noted"],
            recorded=value["recorded"],
            unrecorded=value["unrecorded"],
            duplicate_of=value["duplicateOf"],
            failure=Failure(*value["failure"]) if value["failure"] else None,
            counts=Counts.from_json(value["counts"]),
        )
