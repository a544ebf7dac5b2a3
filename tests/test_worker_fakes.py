"""The rig's fakes of Vectorize and Workers AI keep to what Cloudflare documents: a lenient fake would hide defects."""

from __future__ import annotations

import base64
import pickle
from typing import Any

import pytest

from mempersist.ports import VectorRecord
from tests.rigs.worker.ports import RigVectorIndex
from tests.rigs.worker.process import Rig, running

pytestmark = pytest.mark.worker

INDEXED = ("owner",)
PREAMBLE = """
import js
from pyodide.ffi import JsException, to_js
def obj(value):
    return js.JSON.parse(__import__("json").dumps(value))
async def told(call):
    try:
        return (await call())
    except JsException as error:
        return str(error.message)
"""


@pytest.fixture
def rig() -> Rig:
    made = running()
    made.steer("world")
    return made


def raw(rig: Rig, body: str) -> Any:
    """Run statements inside Pyodide with the fakes themselves as ``index`` and ``ai``."""
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    source = f"{PREAMBLE}\nasync def main(env):\n    index, ai = env.VECTORS, env.AI\n{lines}\n"
    rig.steer("vectorize", name="VECTORS", dimensions=2, metadataIndexes=list(INDEXED), delay=0)
    text = base64.b64encode(pickle.dumps("env")).decode()
    return pickle.loads(base64.b64decode(rig.steer("run", source=source, data=text)["result"]))


class TestVectorize:
    @pytest.mark.parametrize(
        ("call", "code"),
        [
            ('index.upsert(obj([{"id": "x" * 65, "values": [1, 0]}]))', "40008"),
            ('index.upsert(obj([{"id": "a", "values": [1, 0, 0]}]))', "40012"),
            ('index.upsert(obj([{"id": "a", "values": [1, 0], "metadata": {"t": "x" * 10240}}]))', "40009"),
            ('index.upsert(obj([{"id": str(n), "values": [1, 0]} for n in range(1001)]))', "40005"),
            ("index.deleteByIds(obj([str(n) for n in range(101)]))", "40007"),
            ("index.getByIds(obj([str(n) for n in range(21)]))", "40007"),
            ('index.query(obj([1, 0]), obj({"topK": 101}))', "40025"),
            ('index.query(obj([1, 0]), obj({"topK": 21, "returnMetadata": "all"}))', "40025"),
            ('index.query(obj([1, 0]), obj({"topK": 21, "returnValues": True}))', "40025"),
            ('index.query(obj([1, 0]), obj({"filter": {"owner": {"$in": ["x" * 60] * 40}}}))', "40026"),
            ('index.query(obj([1, 0]), obj({"filter": {"owner": {"$regex": "x"}}}))', "40026"),
        ],
    )
    def test_what_is_over_a_limit_is_refused_with_its_code(self, rig: Rig, call: str, code: str) -> None:
        assert f"(code = {code})" in raw(rig, f"return await told(lambda: {call})")

    def test_as_much_as_the_limits_allow_is_taken(self, rig: Rig) -> None:
        found = raw(
            rig,
            """
await index.upsert(obj([{"id": str(n), "values": [1, 0], "metadata": {"owner": "me"}} for n in range(1000)]))
await index.deleteByIds(obj([str(n) for n in range(100)]))
some = await index.getByIds(obj([str(n) for n in range(100, 120)]))
best = await index.query(obj([1, 0]), obj({"topK": 100}))
whole = await index.query(obj([1, 0]), obj({"topK": 20, "returnMetadata": "all"}))
info = await index.describe()
return len(some), best.count, whole.count, info.vectorCount, hasattr(best.matches[0], "metadata")
""",
        )
        assert found == (20, 100, 20, 900, False)

    def test_a_filter_on_a_key_without_an_index_matches_nothing_and_says_nothing(self, rig: Rig) -> None:
        found = raw(
            rig,
            """
await index.upsert(obj([{"id": "a", "values": [1, 0], "metadata": {"owner": "me", "other": 1}}]))
by_other = await index.query(obj([1, 0]), obj({"filter": {"other": 1}}))
by_owner = await index.query(obj([1, 0]), obj({"filter": {"owner": "me"}}))
return by_other.count, by_owner.count
""",
        )
        assert found == (0, 1)

    def test_a_text_is_indexed_on_its_first_64_bytes(self, rig: Rig) -> None:
        found = raw(
            rig,
            """
await index.upsert(obj([{"id": "a", "values": [1, 0], "metadata": {"owner": "x" * 64 + "tail"}}]))
whole = await index.query(obj([1, 0]), obj({"filter": {"owner": "x" * 64 + "tail"}}))
cut = await index.query(obj([1, 0]), obj({"filter": {"owner": "x" * 64}, "returnMetadata": "all"}))
return whole.count, cut.count, cut.matches[0].metadata.owner
""",
        )
        assert found == (0, 1, "x" * 64 + "tail")

    async def test_a_mutation_is_accepted_at_once_and_seen_later(self, rig: Rig) -> None:
        rig.steer("vectorize", name="LATE", dimensions=2, metadataIndexes=list(INDEXED), delay=None)
        index = RigVectorIndex(rig, "LATE", 2, INDEXED)
        await index.upsert([VectorRecord("a", (1.0, 0.0), {"owner": "me"})])
        await index.delete(["never there"])
        assert (await index.describe()).count == 0
        rig.steer("settle", name="LATE")
        assert [match.id for match in await index.query((1.0, 0.0), top_k=5, where={"owner": "me"})] == ["a"]
        await index.delete(["a"])
        assert (await index.describe()).count == 1
        rig.steer("settle", name="LATE")
        assert (await index.describe()).count == 0


class TestWorkersAi:
    def test_a_batch_has_at_most_a_hundred_texts_and_none_is_empty(self, rig: Rig) -> None:
        model = "'@cf/baai/bge-m3'"
        assert "3030" in raw(rig, f"return await told(lambda: ai.run({model}, obj({{'text': ['x'] * 101}})))")
        assert "5006" in raw(rig, f"return await told(lambda: ai.run({model}, obj({{'text': ['x', '']}})))")
        assert "5007" in raw(rig, "return await told(lambda: ai.run('@cf/none', obj({'text': ['x']})))")

    def test_an_answer_has_its_shape_and_a_vector_for_each_text(self, rig: Rig) -> None:
        found = raw(
            rig,
            """
answer = await ai.run("@cf/baai/bge-m3", obj({"text": ["one walrus", "one walrus", "another thing"]}))
first, second, third = (list(row) for row in answer.data)
return list(answer.shape), answer.pooling, first == second, first == third, round(sum(x * x for x in first), 6)
""",
        )
        assert found == ([3, 1024], "cls", True, False, 1.0)
