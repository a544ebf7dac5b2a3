"""The default embedder: a text's vector is the mean of its pieces' vectors, out of the model that ships with us."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mempersist.ports import EmbeddingModel, IndexUnavailable
from mempersist_ops.embedding import files, safetensors
from mempersist_ops.embedding.wordpiece import WordPiece, wordpiece

_BLOCK_PIECES = 4096
"""Rows gathered at a time: 4 MB of float32 at 256 dimensions, however long a text is."""


@dataclass(frozen=True, slots=True)
class StaticEmbedder:
    """``vectors`` (int8) times ``scales`` are the rows of the pieces. Has no state but the tokenizer's cache."""

    model: EmbeddingModel
    tokenizer: WordPiece
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[array[float]]:
        """One vector of length 1 per text; queries and passages are embedded alike.

        A text without any known piece (empty, blank, control characters only) gives the zero vector, whose cosine
        to anything is 0. A text's vector does not depend on the texts beside it.
        """
        del kind
        numbers = [self.tokenizer.numbers(text) for text in texts]
        sums = np.zeros((len(texts), self.model.dimensions), dtype=np.float32)
        for block in _blocks([len(each) for each in numbers]):
            self._add(sums, numbers, block)
        lengths = np.sqrt(np.einsum("nd,nd->n", sums, sums))
        sums /= np.where(lengths > 0, lengths, 1)[:, None]
        return [array("f", row.tobytes()) for row in sums]

    def _add(self, sums: npt.NDArray[np.float32], numbers: Sequence[Sequence[int]], block: _Block) -> None:
        """Add the pieces of one block to the sums of its texts."""
        if block.end is not None:
            flat = numbers[block.texts[0]][block.start : block.end]
            starts = [0]
        else:
            flat = [number for text in block.texts for number in numbers[text]]
            starts = list(accumulate((len(numbers[text]) for text in block.texts[:-1]), initial=0))
        rows = self.vectors[flat].astype(np.float32)
        rows *= self.scales[flat, None]
        sums[list(block.texts)] += np.add.reduceat(rows, starts, axis=0)


@dataclass(frozen=True, slots=True)
class _Block:
    """Whole ``texts``, or, where ``end`` is set, the pieces ``start`` to ``end`` of one."""

    texts: tuple[int, ...]
    start: int = 0
    end: int | None = None


def _blocks(lengths: Sequence[int]) -> Iterator[_Block]:
    """Cover texts of these many pieces. A long text is cut at the same places whatever stands beside it."""
    gathered: list[int] = []
    size = 0
    for text, length in enumerate(lengths):
        if length > _BLOCK_PIECES:
            for start in range(0, length, _BLOCK_PIECES):
                yield _Block((text,), start, start + _BLOCK_PIECES)
        elif length:
            if size + length > _BLOCK_PIECES:
                yield _Block(tuple(gathered))
                gathered, size = [], 0
            gathered.append(text)
            size += length
    if gathered:
        yield _Block(tuple(gathered))


def load_default(directory: Path = files.DIRECTORY) -> StaticEmbedder:
    """The embedder built into the package. Vectors are mapped, not read: memory holds those of the words in use.

    :raises IndexUnavailable: if the model is not there, is of another version of the program, or its files do not fit
        together; the message says how to build it.
    """
    stamp = files.read_stamp(directory)
    if stamp is None:
        raise _unavailable("is not built")
    if stamp.version != files.VERSION:
        raise _unavailable(f"was built as version {stamp.version}, this program needs {files.VERSION}")
    try:
        tensors = safetensors.read(directory / files.VECTORS)
        pieces = (directory / files.VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]
    except (OSError, ValueError) as error:
        raise _unavailable("cannot be read") from error
    vectors: Any = tensors.get("vectors")
    scales: Any = tensors.get("scales")
    shapes = tuple(None if tensor is None else tensor.shape for tensor in (vectors, scales))
    if shapes != ((len(pieces), stamp.dimensions), (len(pieces),)):
        raise _unavailable("has files that do not fit together")
    return StaticEmbedder(EmbeddingModel(stamp.name, stamp.dimensions), wordpiece(pieces), vectors, scales)


def _unavailable(problem: str) -> IndexUnavailable:
    return IndexUnavailable(f"the embedding model {problem}; build it with: {files.BUILD_COMMAND}")
