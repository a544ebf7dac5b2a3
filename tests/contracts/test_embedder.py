"""What every embedder does: one finite vector of the promised size per text, whatever the text and its neighbours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist.ports import Embedder, Vector
from mempersist_ops.embedding.static import load_default
from mempersist_ops.stores.memory.embedder import HashEmbedder
from tests.rigs.adapters import adapters
from tests.rigs.emulator import remote_embedder
from tests.rigs.worker.ports import RigEmbedder
from tests.rigs.worker.process import running

EMBEDDERS: dict[str, Callable[[], Embedder]] = {
    "memory": HashEmbedder,
    "remote": remote_embedder,
    "static": cache(load_default),
    "worker": lambda: RigEmbedder(running()),
}

ODD_TEXTS = {
    "nothing": "",
    "blanks": " \t\r\n\u3000",
    "NUL": "before\0after",
    "controls": "\x00\x01\x7f\x9f\ufeff\u200b",
    "a lone surrogate": "half \ud83d of a smile",
    "two surrogates in the wrong order": "\ude00\ud83d",
    "a surrogate pair in two characters": "\ud83d\ude00",
    "an astral character": "😀 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𠮷野家",
    "many accents on one letter": "e" + "\u0301" * 500,
    "right to left": "שלום עולם مرحبا",
    "no blanks at all": "東京特許許可局" * 50,
    "a very long word": "x" * 5000,
    "marks only": "?!… —— 。、",
}


@pytest.fixture(params=adapters(EMBEDDERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def embedder(name: str) -> Embedder:
    return EMBEDDERS[name]()


async def passages(embedder: Embedder, *texts: str) -> Sequence[Vector]:
    return await embedder.embed(texts, kind="passage")


def length(vector: Vector) -> float:
    return math.sqrt(sum(value * value for value in vector))


def check(embedder: Embedder, vector: Vector) -> None:
    """A vector as the index takes it: its length is 1, or 0 for a text that says nothing to this model."""
    assert len(vector) == embedder.model.dimensions
    assert all(math.isfinite(value) for value in vector)
    assert length(vector) == pytest.approx(1, abs=1e-5) or not any(vector)


async def test_a_model_has_a_name_and_dimensions_that_the_index_allows(embedder: Embedder) -> None:
    assert embedder.model.name
    assert 1 <= embedder.model.dimensions <= 1536


async def test_each_text_gets_one_vector_of_the_promised_size(embedder: Embedder) -> None:
    vectors = await passages(embedder, "one", "two words", "and three words")
    assert len(vectors) == 3
    for vector in vectors:
        check(embedder, vector)
        assert any(vector)


async def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert list(await passages(embedder)) == []


@pytest.mark.parametrize("text", ODD_TEXTS.values(), ids=ODD_TEXTS)
async def test_an_odd_text_gets_a_vector_like_any_other(embedder: Embedder, text: str) -> None:
    (vector,) = await passages(embedder, text)
    check(embedder, vector)


async def test_a_text_without_words_has_the_zero_vector(embedder: Embedder) -> None:
    for vector in await passages(embedder, "", " \n"):
        assert not any(vector)


async def test_a_text_of_a_megabyte_gets_a_vector_like_any_other(embedder: Embedder) -> None:
    (vector,) = await passages(embedder, "A line about the harvest, the weather and 42 sheep.\n" * 20_000)
    check(embedder, vector)
    assert any(vector)


async def test_the_same_text_always_has_the_same_vector(embedder: Embedder) -> None:
    first = await passages(embedder, "the same text")
    await passages(embedder, "something else in between")
    assert list(first[0]) == list((await passages(embedder, "the same text"))[0])


async def test_another_embedder_of_the_same_name_gives_the_same_vectors(name: str, embedder: Embedder) -> None:
    other = {**EMBEDDERS, "static": load_default}[name]()
    assert other is not embedder
    assert other.model == embedder.model
    text = "A generation holds vectors of one name only."
    assert list((await passages(other, text))[0]) == list((await passages(embedder, text))[0])


@pytest.mark.parametrize("name", adapters(EMBEDDERS))
@given(texts=st.lists(st.text(st.characters(codec=None), max_size=40), max_size=6))
async def test_a_vector_depends_on_its_text_alone_and_stands_in_its_place(name: str, texts: list[str]) -> None:
    embedder = EMBEDDERS[name]()
    together = await passages(embedder, *texts)
    alone = [(await passages(embedder, text))[0] for text in texts]
    assert [list(vector) for vector in together] == [list(vector) for vector in alone]


async def test_long_and_short_texts_do_not_disturb_each_other(embedder: Embedder) -> None:
    texts = ["short", "", "long words " * 6000, "other", "middle sized " * 1500, "middle sized " * 1500, "end"]
    together = await passages(embedder, *texts)
    alone = [(await passages(embedder, text))[0] for text in texts]
    assert [list(vector) for vector in together] == [list(vector) for vector in alone]


async def test_shared_words_bring_texts_closer(embedder: Embedder) -> None:
    question, near, far = await passages(
        embedder, "the tomato seedlings", "when to plant tomato seedlings outside", "a compiler error in the linker"
    )
    assert cosine(question, near) > cosine(question, far)


def cosine(one: Vector, other: Vector) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
