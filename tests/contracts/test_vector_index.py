"""What every vector index does: exact cosine search under Vectorize's limits and filters."""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.limits import (
    VECTOR_MAX_DELETE,
    VECTOR_MAX_FILTER_BYTES,
    VECTOR_MAX_GET,
    VECTOR_MAX_ID_BYTES,
    VECTOR_MAX_METADATA_BYTES,
    VECTOR_MAX_TOP_K,
    VECTOR_MAX_TOP_K_WITH_METADATA,
    VECTOR_MAX_UPSERT,
)
from mempersist.ports import MetadataValue, VectorIndex, VectorIndexInfo, VectorRecord
from tests.rigs.adapters import adapters
from tests.rigs.vectors import VECTOR_INDEXES, found, record

X, Y = (1.0, 0.0), (0.0, 1.0)


@pytest.fixture(params=adapters(VECTOR_INDEXES))
def index(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorIndex]:
    adapter = VECTOR_INDEXES[request.param](tmp_path, 2)
    yield adapter
    adapter.close()


class TestMutations:
    async def test_an_empty_index_finds_nothing(self, index: VectorIndex) -> None:
        assert await found(index, X) == []
        assert await index.describe() == VectorIndexInfo(dimensions=2, count=0)

    async def test_what_was_upserted_is_found_and_returned(self, index: VectorIndex) -> None:
        metadata: dict[str, MetadataValue] = {"owner": "me", "name": 'é\u2028"', "big": 2**53, "share": 0.1, "on": True}
        await index.upsert([VectorRecord("a", (0.6, 0.8), metadata), record("b", X)])
        matches = await index.query((3.0, 4.0), top_k=9, where={"owner": "me"}, return_metadata=True)
        assert [(match.id, match.score) for match in matches] == [("a", 1.0), ("b", 0.6)]
        assert matches[0].metadata == metadata
        assert type(matches[0].metadata["on"]) is bool
        (got,) = await index.get(["a"])
        assert got.id == "a"
        assert got.values == pytest.approx((0.6, 0.8))
        assert got.metadata == metadata

    async def test_metadata_comes_only_when_asked_for(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X)])
        (match,) = await index.query(X, top_k=1, where={"owner": "me"})
        assert match.metadata == {}

    async def test_an_upsert_replaces_vector_and_metadata(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X, kind="old"), record("b", X)])
        await index.upsert([record("a", Y, size=1)])
        assert await found(index, Y, {"kind": "old"}) == []
        (match, _) = await index.query(Y, top_k=2, where={"owner": "me"}, return_metadata=True)
        assert (match.id, match.score, match.metadata) == ("a", 1.0, {"owner": "me", "size": 1})
        assert (await index.describe()).count == 2

    async def test_the_last_of_two_records_with_one_id_wins(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X, kind="first"), record("a", Y, kind="last")])
        assert await found(index, Y, {"kind": "last"}) == ["a"]
        assert await found(index, Y, {"kind": "first"}) == []
        assert (await index.describe()).count == 1

    async def test_a_delete_removes_and_forgives_unknown_ids(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X), record("b", X), record("c", X)])
        await index.delete(["b", "unknown", "b"])
        assert await found(index, X) == ["a", "c"]
        assert [got.id for got in await index.get(["c", "b", "a"])] == ["c", "a"]
        assert (await index.describe()).count == 2

    async def test_a_deleted_vector_can_come_back_and_its_place_be_taken(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X), record("b", Y)])
        assert await found(index, X) == ["a", "b"]
        await index.delete(["a"])
        await index.upsert([record("c", X, kind="new")])
        assert await found(index, X) == ["c", "b"]
        await index.upsert([record("a", X)])
        assert await found(index, X) == ["a", "c", "b"]
        assert (await index.describe()).count == 3

    async def test_nothing_to_do_is_done(self, index: VectorIndex) -> None:
        await index.upsert([])
        await index.delete([])
        assert await index.get([]) == ()

    async def test_what_the_caller_changes_later_is_not_seen(self, index: VectorIndex) -> None:
        values, metadata = [1.0, 0.0], {"owner": "me"}
        await index.upsert([VectorRecord("a", values, metadata)])
        values[:] = Y
        metadata["owner"] = "other"
        (match,) = await index.query(X, top_k=1, where={"owner": "me"}, return_metadata=True)
        assert (match.score, match.metadata) == (1.0, {"owner": "me"})


class TestRanking:
    async def test_length_does_not_count(self, index: VectorIndex) -> None:
        await index.upsert([record("long", (1e38, 1e38)), record("short", (1e-38, 1e-38)), record("off", (5.0, 4.9))])
        assert await found(index, (1e300 / 1e299, 10.0)) == ["long", "short", "off"]

    async def test_a_longer_vector_is_no_nearer(self, index: VectorIndex) -> None:
        await index.upsert([record("longer", (0.95, 0.1)), record("nearer", (0.51, 0.0)), record("back", (-1.0, 0.0))])
        assert await found(index, X, top_k=1) == ["nearer"]

    async def test_the_longest_vectors_do_not_overflow(self, index: VectorIndex) -> None:
        most = 3.4e38
        await index.upsert(
            [record("same", (most, most)), record("across", (most, -most)), record("back", (-most, 0.0))]
        )
        assert await found(index, (most, most), top_k=1) == ["same"]
        assert await found(index, (most, most)) == ["same", "across", "back"]

    async def test_equal_scores_are_ordered_by_id(self, index: VectorIndex) -> None:
        await index.upsert([record(name, X) for name in ("d", "b", "é", "a", "c")])
        assert await found(index, X) == ["a", "b", "c", "d", "é"]
        assert await found(index, X, top_k=2) == ["a", "b"]

    async def test_a_zero_vector_is_equally_far_from_all(self, index: VectorIndex) -> None:
        await index.upsert([record("zero", (0.0, 0.0)), record("x", X), record("against", (-1.0, 0.0))])
        matches = await index.query(X, top_k=3, where={"owner": "me"})
        assert [(match.id, match.score) for match in matches] == [("x", 1.0), ("zero", 0.0), ("against", -1.0)]
        matches = await index.query((0.0, 0.0), top_k=3, where={"owner": "me"})
        assert [(match.id, match.score) for match in matches] == [("against", 0.0), ("x", 0.0), ("zero", 0.0)]

    async def test_a_filter_comes_before_the_cap(self, index: VectorIndex) -> None:
        near = [record(f"near{number:03}", X, kind="near") for number in range(200)]
        await index.upsert([*near, record("far", Y, kind="far")])
        assert await found(index, X, {"kind": "far"}, top_k=1) == ["far"]
        assert len(await found(index, X, {"owner": "me"}, top_k=100)) == 100


class TestFilters:
    RECORDS = (
        record("text", X, kind="b"),
        record("number", X, kind=1),
        record("float", X, kind=1.5),
        record("true", X, kind=True),
        record("digit", X, kind="1"),
        record("none", X),
    )

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("b", {"text"}),
            (1, {"number"}),
            (1.0, {"number"}),
            (True, {"true"}),
            (False, set()),
            ("1", {"digit"}),
            ({"$eq": "b"}, {"text"}),
            ({"$ne": "b"}, {"number", "float", "true", "digit", "none"}),
            ({"$ne": True}, {"text", "number", "float", "digit", "none"}),
            ({"$in": ["b", 1, "zzz"]}, {"text", "number"}),
            ({"$nin": ["b", 1]}, {"float", "true", "digit", "none"}),
            ({"$lt": "b"}, {"digit"}),
            ({"$lte": "b"}, {"digit", "text"}),
            ({"$gt": 1}, {"float"}),
            ({"$gte": 1}, {"number", "float"}),
            ({"$gt": 0, "$lt": 1.5}, {"number"}),
            ({"$gte": "a", "$lt": "c"}, {"text"}),
        ],
    )
    async def test_operators(self, index: VectorIndex, condition: Any, expected: set[str]) -> None:
        await index.upsert(self.RECORDS)
        assert set(await found(index, X, {"kind": condition})) == expected

    async def test_keys_are_joined_by_and(self, index: VectorIndex) -> None:
        await index.upsert([record("a", X, kind="k", size=1), record("b", X, kind="k", size=2), record("c", X, size=1)])
        assert await found(index, X, {"kind": "k", "size": {"$lt": 2}, "owner": "me"}) == ["a"]

    async def test_an_owner_s_vectors_are_never_another_s(self, index: VectorIndex) -> None:
        await index.upsert(
            [VectorRecord(f"{owner}{n}", X, {"owner": owner}) for owner in ("me", "you") for n in (1, 2)]
        )
        assert await found(index, X, {"owner": "you"}) == ["you1", "you2"]
        assert await found(index, X, {"owner": "nobody"}) == []

    async def test_strings_are_indexed_on_their_first_64_bytes(self, index: VectorIndex) -> None:
        cut = "é" * 31 + "x"  # 63 bytes: the next é does not fit
        await index.upsert([record("long", X, kind=cut + "é and more"), record("exact", X, kind="y" * 64)])
        assert await found(index, X, {"kind": cut}) == ["long"]
        assert await found(index, X, {"kind": "y" * 64}) == ["exact"]
        with pytest.raises(ValueError, match="kind is indexed on its first 64 bytes"):
            await found(index, X, {"kind": "y" * 65})
        (match,) = await index.query(X, top_k=1, where={"kind": cut}, return_metadata=True)
        assert match.metadata["kind"] == cut + "é and more"

    @pytest.mark.parametrize(
        "where",
        [
            {},
            {"unknown": 1},
            {"": 1},
            {"a.b": 1},
            {'a"b': 1},
            {"$and": 1},
            {"k" * 513: 1},
            {"kind": None},
            {"kind": [1]},
            {"kind": {}},
            {"kind": {"$regex": "x"}},
            {"kind": {"$eq": 1, "$ne": 2}},
            {"kind": {"$eq": 1, "$lt": 2}},
            {"kind": {"$lt": 1, "$lte": 2}},
            {"kind": {"$lt": True}},
            {"kind": {"$eq": None}},
            {"kind": {"$eq": {"a": 1}}},
            {"kind": {"$in": []}},
            {"kind": {"$in": "abc"}},
            {"kind": {"$nin": [None]}},
            {"kind": math.nan},
            {"kind": "\ud800"},
            {"kind": object()},
        ],
    )
    async def test_filters_that_are_refused(self, index: VectorIndex, where: Any) -> None:
        with pytest.raises(ValueError, match=r"^where: "):
            await index.query(X, top_k=1, where=where)

    async def test_a_filter_of_two_kibibytes(self, index: VectorIndex) -> None:
        def of_size(size: int) -> Mapping[str, Any]:
            full, rest = divmod(size - len('{"kind":{"$in":[""]}}'), len('"",') + 60)
            return {"kind": {"$in": ["n" * 60] * full + ["n" * rest]}}

        for size in (VECTOR_MAX_FILTER_BYTES - 2, VECTOR_MAX_FILTER_BYTES - 1):
            assert await index.query(X, top_k=1, where=of_size(size)) == ()
        with pytest.raises(ValueError, match="2048 bytes of JSON; must be under 2048"):
            await index.query(X, top_k=1, where=of_size(VECTOR_MAX_FILTER_BYTES))


class TestLimits:
    async def test_ids_of_64_bytes(self, index: VectorIndex) -> None:
        for vector_id in ("i" * (VECTOR_MAX_ID_BYTES - 1), "i" * VECTOR_MAX_ID_BYTES, "é" * (VECTOR_MAX_ID_BYTES // 2)):
            await index.upsert([record(vector_id, X)])
        assert (await index.describe()).count == 3
        for vector_id in ("i" * (VECTOR_MAX_ID_BYTES + 1), "é" * 33, "", "\ud800"):
            with pytest.raises(ValueError, match=r"^id: "):
                await index.upsert([record("fine", X), record(vector_id, X)])
            with pytest.raises(ValueError, match=r"^id: "):
                await index.delete([vector_id])
            with pytest.raises(ValueError, match=r"^id: "):
                await index.get([vector_id])
        assert (await index.describe()).count == 3

    async def test_metadata_of_ten_kibibytes(self, index: VectorIndex) -> None:
        room = VECTOR_MAX_METADATA_BYTES - len('{"owner":"me","text":""}')
        for size in (room - 1, room):
            await index.upsert([record("a", X, text="x" * size)])
        with pytest.raises(ValueError, match="metadata: 10241 bytes of JSON are more than 10240"):
            await index.upsert([record("a", X, text="x" * (room + 1))])

    @pytest.mark.parametrize("key", ["", "a.b", 'a"b', "$a", "k" * 513])
    async def test_metadata_keys(self, index: VectorIndex, key: str) -> None:
        with pytest.raises(ValueError, match=r"^metadata: keys have 1 to 512 characters"):
            await index.upsert([record("a", X, **{key: 1})])

    @pytest.mark.parametrize("bad", [None, [1], {"a": 1}, math.nan, math.inf, "\ud800"])
    async def test_metadata_values(self, index: VectorIndex, bad: Any) -> None:
        with pytest.raises(ValueError, match=r"^metadata: "):
            await index.upsert([record("a", X, kind=bad)])

    @pytest.mark.parametrize(
        "values", [(), (1.0,), (1.0, 2.0, 3.0), (math.nan, 1.0), (math.inf, 1.0), (1e39, 1.0), ("a", 1.0), (None, 1.0)]
    )
    async def test_vectors_that_are_refused_change_nothing(self, index: VectorIndex, values: Any) -> None:
        with pytest.raises(ValueError, match=r"vector"):
            await index.upsert([record("fine", X), record("bad", values)])
        with pytest.raises(ValueError, match=r"vector"):
            await index.query(values, top_k=1, where={"owner": "me"})
        assert (await index.describe()).count == 0

    async def test_sizes_of_a_call(self, index: VectorIndex) -> None:
        records = [record(f"{number:04}", X) for number in range(VECTOR_MAX_UPSERT + 1)]
        with pytest.raises(ValueError, match="upsert: 1001 records are more than 1000"):
            await index.upsert(records)
        await index.upsert(records[:-1])
        ids = [each.id for each in records]
        assert len(await index.get(ids[:VECTOR_MAX_GET])) == VECTOR_MAX_GET
        with pytest.raises(ValueError, match="get: 21 ids are more than 20"):
            await index.get(ids[: VECTOR_MAX_GET + 1])
        with pytest.raises(ValueError, match="delete: 101 ids are more than 100"):
            await index.delete(ids[: VECTOR_MAX_DELETE + 1])
        await index.delete(ids[:VECTOR_MAX_DELETE])
        assert (await index.describe()).count == VECTOR_MAX_UPSERT - VECTOR_MAX_DELETE

    async def test_top_k(self, index: VectorIndex) -> None:
        await index.upsert([record(f"{number:03}", X) for number in range(150)])
        where = {"owner": "me"}
        for with_metadata, limit in ((False, VECTOR_MAX_TOP_K), (True, VECTOR_MAX_TOP_K_WITH_METADATA)):
            for top_k in (1, limit):
                matches = await index.query(X, top_k=top_k, where=where, return_metadata=with_metadata)
                assert [match.id for match in matches] == [f"{number:03}" for number in range(top_k)]
            for top_k in (0, -1, limit + 1):
                with pytest.raises(ValueError, match=f"^top_k: must be 1 to {limit}"):
                    await index.query(X, top_k=top_k, where=where, return_metadata=with_metadata)


numbers = st.one_of(st.integers(-3, 3).map(float), st.floats(-(2.0**100), 2.0**100, width=32))
vectors = st.lists(numbers, min_size=5, max_size=5)
mutations = st.lists(
    st.tuples(st.sampled_from([f"id{n}" for n in range(12)]), st.one_of(st.none(), vectors), st.sampled_from("ab")),
    max_size=30,
)


def cosine(one: list[float], other: list[float]) -> float:
    lengths = math.hypot(*one) * math.hypot(*other)
    return math.fsum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0


@pytest.mark.parametrize("adapter", adapters(VECTOR_INDEXES))
@settings(max_examples=60, deadline=None)
@given(steps=mutations, query=vectors, top_k=st.integers(1, 6))
def test_any_history_gives_the_best_by_cosine(
    adapter: str, steps: list[tuple[str, list[float] | None, str]], query: list[float], top_k: int
) -> None:
    async def scenario(directory: Path) -> None:
        index = VECTOR_INDEXES[adapter](directory, 5)
        model: dict[str, tuple[list[float], str]] = {}
        try:
            for place, (vector_id, values, owner) in enumerate(steps):
                if values is None:
                    await index.delete([vector_id])
                    model.pop(vector_id, None)
                else:
                    await index.upsert([VectorRecord(vector_id, values, {"owner": owner})])
                    model[vector_id] = (values, owner)
                if place % 7 == 0:  # a query in between, so that a cache has to catch up later
                    await index.query(query, top_k=1, where={"owner": "a"})
            matches = await index.query(query, top_k=top_k, where={"owner": "a"})
            count = (await index.describe()).count
        finally:
            index.close()
        scores = {vector_id: cosine(values, query) for vector_id, (values, owner) in model.items() if owner == "a"}
        assert count == len(model)
        assert len(matches) == min(top_k, len(scores))
        assert [match.score for match in matches] == pytest.approx([scores[match.id] for match in matches], abs=2e-6)
        assert [(-match.score, match.id) for match in matches] == sorted((-match.score, match.id) for match in matches)
        left = [score for vector_id, score in scores.items() if vector_id not in {match.id for match in matches}]
        assert all(score <= matches[-1].score + 2e-6 for score in left)

    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(scenario(Path(directory)))
