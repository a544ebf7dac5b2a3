"""The model that ships brings texts of like meaning together, also where they share no word."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from mempersist_ops.embedding.static import StaticEmbedder, load_default

PARAPHRASES = [
    ("my dog is sick", "the puppy vomits and needs a veterinarian", "the parliament passed a tax law"),
    ("lower my electricity bill", "reduce energy costs with LED lamps", "a poem about the old harbour"),
    ("trouble sleeping", "insomnia at night and a fixed bedtime", "an index on the joined columns"),
    ("cheap flights to Japan", "airfare to Tokyo in January", "a leaking faucet in the kitchen"),
    ("quarrel with my sister", "the siblings argued about money", "photosynthesis in green leaves"),
    ("who wrote Hamlet", "Shakespeare, the author of the tragedy", "bleed the radiators in winter"),
    ("a present for my father", "birthday gift ideas for dad", "undefined reference while linking"),
    ("losing weight", "a diet with fewer calories", "the train to Hamburg was late"),
]


@pytest.fixture(scope="module")
def embedder() -> StaticEmbedder:
    return load_default()


async def similarities(embedder: StaticEmbedder, query: str, texts: Sequence[str]) -> list[float]:
    (wanted,) = await embedder.embed([query], kind="query")
    found = await embedder.embed(texts, kind="passage")
    return [sum(a * b for a, b in zip(wanted, vector, strict=True)) for vector in found]


@pytest.mark.parametrize(("query", "like", "unlike"), PARAPHRASES, ids=[query for query, _, _ in PARAPHRASES])
async def test_a_paraphrase_is_clearly_closer_than_another_topic(
    embedder: StaticEmbedder, query: str, like: str, unlike: str
) -> None:
    close, far = await similarities(embedder, query, [like, unlike])
    assert close > far + 0.1


async def test_most_paraphrases_are_first_among_all_texts(embedder: StaticEmbedder) -> None:
    texts = [like for _, like, _ in PARAPHRASES] + [unlike for _, _, unlike in PARAPHRASES]
    ranked_first = 0
    for place, (query, _, _) in enumerate(PARAPHRASES):
        scores = await similarities(embedder, query, texts)
        ranked_first += scores.index(max(scores)) == place
    assert ranked_first >= 7


async def test_case_accents_and_marks_do_not_matter(embedder: StaticEmbedder) -> None:
    (score,) = await similarities(embedder, "crème brûlée recipe", ["CREME BRULEE -- Recipe!"])
    assert score == pytest.approx(1, abs=1e-5)


async def test_queries_and_passages_are_embedded_alike(embedder: StaticEmbedder) -> None:
    text = ["one space for both"]
    assert await embedder.embed(text, kind="query") == await embedder.embed(text, kind="passage")
