"""The files of the built embedding model: what they are called, and the stamp that says what they hold."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

VERSION: Final = 1
"""To be raised with every change of the distiller or the tokenizer that changes a text's vector."""

DIMENSIONS: Final = 256
DIRECTORY: Final = Path(__file__).parent / "model"
VECTORS: Final = "vectors.safetensors"
VOCABULARY: Final = "vocab.txt"
STAMP: Final = "model.json"
LICENCES: Final = ("LICENSE", "NOTICE")
BUILD_COMMAND: Final = "python -m mempersist_ops.embedding.distill"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What stands in ``model.json``. ``vectors_sha256`` is of the file of vectors; ``name`` holds its first digits."""

    name: str
    dimensions: int
    pieces: int
    version: int
    source_sha256: str
    vectors_sha256: str
    vocabulary_sha256: str


def read_stamp(directory: Path) -> Stamp | None:
    """The stamp in ``directory``, or None if there is none that can be read."""
    try:
        return Stamp(**json.loads((directory / STAMP).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def sha256(path: Path) -> str:
    """The digest of a file, in hex. :raises OSError: if it cannot be read."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_whole(directory: Path, stamp: Stamp) -> bool:
    """Whether every file is there and holds the bytes that ``stamp`` was written for."""
    files = ((VECTORS, stamp.vectors_sha256), (VOCABULARY, stamp.vocabulary_sha256))
    whole = all((directory / name).is_file() and sha256(directory / name) == digest for name, digest in files)
    return whole and all((directory / name).is_file() for name in LICENCES)
