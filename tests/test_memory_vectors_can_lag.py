"""The in-memory vector index can hold mutations back, as Vectorize does, so that tests meet its delay."""

from __future__ import annotations

import pytest

from mempersist_ops.stores.memory.vectors import MemoryVectorIndex
from tests.rigs.vectors import found, record

X, Y = (1.0, 0.0), (0.0, 1.0)


@pytest.fixture
def index() -> MemoryVectorIndex:
    return MemoryVectorIndex(2, indexed=("owner",), asynchronous=True)


async def test_mutations_are_seen_only_once_settled(index: MemoryVectorIndex) -> None:
    await index.upsert([record("a", X)])
    assert await found(index, X) == []
    assert await index.get(["a"]) == ()
    assert (await index.describe()).count == 0
    index.settle()
    assert await found(index, X) == ["a"]
    await index.delete(["a"])
    assert await found(index, X) == ["a"]
    index.settle()
    assert await found(index, X) == []


async def test_mutations_settle_in_their_order(index: MemoryVectorIndex) -> None:
    await index.upsert([record("a", X), record("b", X)])
    await index.delete(["a", "b"])
    await index.upsert([record("b", Y)])
    index.settle()
    assert await found(index, X) == ["b"]
    (match,) = await index.query(X, top_k=1, where={"owner": "me"})
    assert match.score == 0


async def test_what_is_refused_is_refused_at_once(index: MemoryVectorIndex) -> None:
    with pytest.raises(ValueError, match="a vector of 1 numbers"):
        await index.upsert([record("a", (1.0,))])
    index.settle()
    assert (await index.describe()).count == 0
