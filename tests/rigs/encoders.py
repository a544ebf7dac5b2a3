"""A sentence encoder of the real one's form, too small to mean anything, packed as the real one is."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mempersist_ops.embedding import safetensors
from mempersist_ops.embedding.distill import Source

SPECIALS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused1]"]
CHARACTERS = ["!", "1", "a", "東", "[", "]"]
WORDS = [f"word{number}" for number in range(300)] + ["##ing", "##s", "##!"]
VOCABULARY = SPECIALS + CHARACTERS + WORDS


def tensors(*, width: int, inner: int, layers: int, words: int, seed: int = 1) -> dict[str, npt.NDArray[Any]]:
    """Random weights under the names that a Hugging Face ``BertModel`` has."""
    random = np.random.default_rng(seed)

    def draw(*shape: int) -> npt.NDArray[np.float32]:
        return (random.standard_normal(shape) * 0.3).astype(np.float32)

    found = {
        "embeddings.word_embeddings.weight": draw(words, width),
        "embeddings.position_embeddings.weight": draw(8, width),
        "embeddings.token_type_embeddings.weight": draw(2, width),
    }
    sizes = {
        "attention.self.query": (width, width),
        "attention.self.key": (width, width),
        "attention.self.value": (width, width),
        "attention.output.dense": (width, width),
        "intermediate.dense": (inner, width),
        "output.dense": (width, inner),
    }
    for layer in range(layers):
        for name, size in sizes.items():
            found[f"encoder.layer.{layer}.{name}.weight"] = draw(*size)
            found[f"encoder.layer.{layer}.{name}.bias"] = draw(size[0])
    norms = [f"encoder.layer.{n}.{part}.LayerNorm" for n in range(layers) for part in ("attention.output", "output")]
    for name in ["embeddings.LayerNorm", *norms]:
        found[f"{name}.weight"] = 1 + draw(width)
        found[f"{name}.bias"] = draw(width)
    return found


def package(directory: Path, name: str) -> Source:
    """Lay an importable package ``name`` with weights and vocabulary into ``directory``."""
    data = directory / name / "data"
    data.mkdir(parents=True)
    (directory / name / "__init__.py").write_text("")
    safetensors.write(
        data / "model.safetensors", tensors(width=264, inner=64, layers=1, words=len(VOCABULARY)), metadata={}
    )
    (data / "vocab.txt").write_text("".join(f"{piece}\n" for piece in VOCABULARY), encoding="utf-8")
    for licence in ("LICENSE", "NOTICE"):
        (data / licence).write_text(f"the {licence} of the weights\n")
    digests = [hashlib.sha256((data / file).read_bytes()).hexdigest() for file in ("model.safetensors", "vocab.txt")]
    return Source(f"{name}==1.0", name, "data", *digests)
