"""The encoder's forward pass gives what its equations, written out one number at a time, give."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from mempersist_ops.embedding import bert
from tests.rigs.encoders import tensors

WIDTH, INNER, LAYERS, HEADS = 24, 40, 2, 12
WEIGHTS = tensors(width=WIDTH, inner=INNER, layers=LAYERS, words=50)

Numbers = list[float]


def linear(name: str, values: Numbers) -> Numbers:
    weight, bias = WEIGHTS[f"{name}.weight"].tolist(), WEIGHTS[f"{name}.bias"].tolist()
    return [b + sum(w * v for w, v in zip(row, values, strict=True)) for row, b in zip(weight, bias, strict=True)]


def norm(name: str, values: Numbers) -> Numbers:
    mean = sum(values) / len(values)
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values) + 1e-12)
    weight, bias = WEIGHTS[f"{name}.weight"].tolist(), WEIGHTS[f"{name}.bias"].tolist()
    return [w * (value - mean) / deviation + b for value, w, b in zip(values, weight, bias, strict=True)]


def add(*vectors: Sequence[float]) -> Numbers:
    return [sum(values) for values in zip(*vectors, strict=True)]


def gelu(value: float) -> float:
    return value * (1 + math.erf(value / math.sqrt(2))) / 2


def attention(name: str, states: list[Numbers]) -> list[Numbers]:
    queries, keys, contents = (
        [linear(f"{name}.self.{part}", state) for state in states] for part in ("query", "key", "value")
    )
    size = WIDTH // HEADS
    found = []
    for query in queries:
        attended: Numbers = []
        for head in (slice(start, start + size) for start in range(0, WIDTH, size)):
            scores = [sum(a * b for a, b in zip(query[head], key[head], strict=True)) / math.sqrt(size) for key in keys]
            shares = [math.exp(score) / sum(map(math.exp, scores)) for score in scores]
            attended += [
                sum(share * content[head][place] for share, content in zip(shares, contents, strict=True))
                for place in range(size)
            ]
        found.append(linear(f"{name}.output.dense", attended))
    return found


def encode(ids: list[int]) -> list[Numbers]:
    table = {name: WEIGHTS[f"embeddings.{name}_embeddings.weight"].tolist() for name in ("word", "position")}
    kind = WEIGHTS["embeddings.token_type_embeddings.weight"][0].tolist()
    states = [
        norm("embeddings.LayerNorm", add(table["word"][number], table["position"][place], kind))
        for place, number in enumerate(ids)
    ]
    for layer in (f"encoder.layer.{number}" for number in range(LAYERS)):
        mixed = attention(f"{layer}.attention", states)
        states = [norm(f"{layer}.attention.output.LayerNorm", add(*pair)) for pair in zip(states, mixed, strict=True)]
        inner = [[gelu(value) for value in linear(f"{layer}.intermediate.dense", state)] for state in states]
        outer = [linear(f"{layer}.output.dense", values) for values in inner]
        states = [norm(f"{layer}.output.LayerNorm", add(*pair)) for pair in zip(states, outer, strict=True)]
    return states


def test_states_are_those_of_the_written_out_equations() -> None:
    encoder = bert.load(WEIGHTS)
    sequences = [[3, 17, 4], [3, 49, 4], [0, 0, 0]]
    found = bert.encode(encoder, np.array(sequences))
    np.testing.assert_allclose(found, [encode(ids) for ids in sequences], atol=1e-6)


def test_a_sequence_does_not_depend_on_those_beside_it() -> None:
    encoder = bert.load(WEIGHTS)
    together = bert.encode(encoder, np.array([[3, number, 4] for number in range(50)]))
    alone = bert.encode(encoder, np.array([[3, 42, 4]]))
    np.testing.assert_allclose(together[42:43], alone, atol=1e-12)


def test_a_missing_tensor_is_an_error() -> None:
    with pytest.raises(KeyError, match=r"encoder\.layer\.1\.output\.dense\.bias"):
        bert.load({name: tensor for name, tensor in WEIGHTS.items() if name != "encoder.layer.1.output.dense.bias"})
