"""The forward pass of a BERT encoder in numpy, for sequences so short that one token stands between the markers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LAYER_NORM_EPSILON = 1e-12
_HEADS = 12
_GELU_ROWS = 16
"""Few enough that what is computed on the way stays in the processor's cache."""


@dataclass(frozen=True, slots=True)
class _Layer:
    """``project``: query, key and value side by side. Matrices multiply from the right: (inputs, outputs)."""

    project: Floats
    project_bias: Floats
    attended: Floats
    attended_bias: Floats
    attended_norm: tuple[Floats, Floats]
    inner: Floats
    inner_bias: Floats
    outer: Floats
    outer_bias: Floats
    outer_norm: tuple[Floats, Floats]


@dataclass(frozen=True, slots=True)
class Encoder:
    """Weights in double precision: with them the sums of any BLAS, in any order, agree to far below what is kept."""

    words: npt.NDArray[Any]
    positions: Floats
    norm: tuple[Floats, Floats]
    layers: tuple[_Layer, ...]


def load(tensors: Mapping[str, npt.NDArray[Any]]) -> Encoder:
    """An encoder from the tensors of a Hugging Face ``BertModel``. :raises KeyError: for a missing tensor."""

    def get(name: str) -> Floats:
        return tensors[name].astype(np.float64)

    def linear(name: str) -> tuple[Floats, Floats]:
        return np.ascontiguousarray(get(f"{name}.weight").T), get(f"{name}.bias")

    def norm(name: str) -> tuple[Floats, Floats]:
        return get(f"{name}.weight"), get(f"{name}.bias")

    def layer(name: str) -> _Layer:
        heads = [linear(f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
        return _Layer(
            np.concatenate([weight for weight, _ in heads], axis=1),
            np.concatenate([bias for _, bias in heads]),
            *linear(f"{name}.attention.output.dense"),
            norm(f"{name}.attention.output.LayerNorm"),
            *linear(f"{name}.intermediate.dense"),
            *linear(f"{name}.output.dense"),
            norm(f"{name}.output.LayerNorm"),
        )

    count = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder.layer."))
    return Encoder(
        tensors["embeddings.word_embeddings.weight"],
        get("embeddings.position_embeddings.weight") + get("embeddings.token_type_embeddings.weight")[0],
        norm("embeddings.LayerNorm"),
        tuple(layer(f"encoder.layer.{index}") for index in range(count)),
    )


def encode(encoder: Encoder, ids: npt.NDArray[np.int64]) -> Floats:
    """The last hidden states, (sequences, length, width), of ``ids`` (sequences, length); nothing is masked."""
    count, length = ids.shape
    states = encoder.words[ids].astype(np.float64) + encoder.positions[:length]
    states = _normalised(states.reshape(count * length, -1), encoder.norm)
    for layer in encoder.layers:
        attended = _attention(states @ layer.project + layer.project_bias, count, length)
        states = _normalised(states + attended @ layer.attended + layer.attended_bias, layer.attended_norm)
        inner = states @ layer.inner
        inner += layer.inner_bias
        for start in range(0, len(inner), _GELU_ROWS):
            _gelu(inner[start : start + _GELU_ROWS])
        states = _normalised(states + inner @ layer.outer + layer.outer_bias, layer.outer_norm)
    return states.reshape(count, length, -1)


def _attention(projected: Floats, count: int, length: int) -> Floats:
    width = projected.shape[1] // 3
    query, key, value = (
        projected[:, part * width : (part + 1) * width].reshape(count, length, _HEADS, width // _HEADS)
        for part in range(3)
    )
    scores = np.einsum("nqhd,nkhd->nhqk", query, key) / np.sqrt(width // _HEADS)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    attended: Floats = np.einsum("nhqk,nkhd->nqhd", scores, value)
    return attended.reshape(count * length, width)


def _normalised(states: Floats, norm: tuple[Floats, Floats]) -> Floats:
    states -= states.mean(axis=-1, keepdims=True)
    variance = np.einsum("nd,nd->n", states, states) / states.shape[1]
    states *= (1 / np.sqrt(variance + _LAYER_NORM_EPSILON))[:, None]
    states *= norm[0]
    states += norm[1]
    return states


def _gelu(values: Floats) -> None:
    """x * Phi(x), in place. erf is the rational form 7.1.26 of Abramowitz and Stegun: off by less than 2e-7."""
    magnitude = np.abs(values)
    magnitude *= np.sqrt(0.5)
    inverse = 1 / (1 + 0.3275911 * magnitude)
    polynomial = 1.061405429 * inverse
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        polynomial += coefficient
        polynomial *= inverse
    magnitude *= magnitude
    np.negative(magnitude, out=magnitude)
    polynomial *= np.exp(magnitude, out=magnitude)
    # Phi(x) = 1 - tail for x >= 0 and tail for x < 0, where tail = polynomial * exp(-x*x/2) / 2.
    polynomial *= 0.5
    values *= np.where(values >= 0, 1 - polynomial, polynomial)
