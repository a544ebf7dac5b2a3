"""The default embedder: a text's vector is the mean of its pieces' vectors, out of the model that ships with us."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from mempersist.ports import EmbeddingModel, IndexUnavailable
from mempersist_ops.embedding import files, safetensors
from mempersist_ops.embedding.wordpiece import WordPiece, wordpiece

_BLOCK_PIECES = 2048
"""Rows gathered at a time: half a megabyte, however long a text is."""


@dataclass(frozen=True, slots=True)
class StaticEmbedder:
    """``vectors`` (int8) times ``scales`` are the rows of the pieces. Has no state but the tokenizer's cache."""

    model: EmbeddingModel
    tokenizer: WordPiece
    vectors: npt.NDArray[np.int8]
    scales: npt.NDArray[np.float32]

    async def embed(self, texts: Sequence[str], *, kind: Literal["query", "passage"]) -> Sequence[array[float]]:
        """One vector of length 1 per text; queries and passages are embedded alike.

        A text without any known piece (empty, blank, marks only) gives the zero vector, whose cosine to anything
        is 0. A text's vector does not depend on the texts beside it.
        """
        del kind
        return [self._embed(text) for text in texts]

    def _embed(self, text: str) -> array[float]:
        pieces = np.array(self.tokenizer.numbers(text), dtype=np.intp)
        total = np.zeros(self.model.dimensions, dtype=np.float32)
        for start in range(0, len(pieces), _BLOCK_PIECES):
            rows = pieces[start : start + _BLOCK_PIECES]
            total += np.einsum("n,nd->d", self.scales[rows], self.vectors[rows])
        length = np.sqrt(np.einsum("d,d->", total, total))
        return array("f", (total / length if length else total).tobytes())


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
