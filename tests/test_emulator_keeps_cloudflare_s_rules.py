"""The emulator refuses what Cloudflare refuses, so that what works against it has a chance to work there."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from mempersist_ops.stores.memory.system import ManualClock
from mempersist_ops.stores.remote.vectors import VectorizeRestIndex
from tests.emulator.app import ACCOUNT, REST, TOKEN, Emulator
from tests.emulator.auth import Token
from tests.emulator.faults import Fault
from tests.rigs.emulator import client_of, posted
from tests.rigs.vectors import record

BASE = f"{REST}/accounts/{ACCOUNT}"
INDEX = "/vectorize/v2/indexes"


class Seconds:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def emulator(tmp_path: Path, clock: ManualClock, seconds: Seconds) -> Iterator[Emulator]:
    opened = Emulator(tmp_path, clock=clock, seconds=seconds, requests_per_window=40, vectorize_delay_ms=3000)
    yield opened
    opened.close()


@pytest.fixture
async def http(emulator: Emulator) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {TOKEN.value}"}
    transport = httpx.ASGITransport(emulator)
    async with httpx.AsyncClient(transport=transport, base_url="http://emulator", headers=headers) as opened:
        yield opened


async def refused(answer: Any) -> tuple[int, int]:
    """Status and code of an answer that must be a refusal in the envelope."""
    response: httpx.Response = await answer
    envelope = response.json()
    assert (envelope["success"], envelope["result"], envelope["messages"]) == (False, None, [])
    return response.status_code, envelope["errors"][0]["code"]


async def result(answer: Any) -> Any:
    response: httpx.Response = await answer
    assert response.json()["errors"] == []
    return response.json()["result"]


class TestTokens:
    async def test_a_token_is_needed_and_must_exist(self, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/d1/database"
        assert await refused(http.get(path, headers={"Authorization": ""})) == (400, 9106)
        assert await refused(http.get(path, headers={"Authorization": "Bearer none"})) == (401, 10000)

    async def test_a_token_opens_its_account_only(self, http: httpx.AsyncClient) -> None:
        assert await refused(http.get(f"{REST}/accounts/{'f' * 32}/d1/database")) == (403, 10000)

    async def test_permissions_hold_for_one_product_and_reading_is_not_writing(
        self, emulator: Emulator, http: httpx.AsyncClient
    ) -> None:
        emulator.tokens.add(Token("reader", "of-d1", ACCOUNT, frozenset({"D1 Read"})))
        headers = {"Authorization": "Bearer of-d1"}
        assert await result(http.get(f"{BASE}/d1/database", headers=headers)) == []
        assert await refused(http.post(f"{BASE}/d1/database", json={"name": "a"}, headers=headers)) == (403, 10000)
        assert await refused(http.get(f"{BASE}/queues", headers=headers)) == (403, 10000)

    async def test_a_path_that_nobody_answers(self, http: httpx.AsyncClient) -> None:
        assert await refused(http.get(f"{BASE}/nothing")) == (404, 7003)
        assert await refused(http.get(f"{REST}/user")) == (404, 7003)


class TestRateLimit:
    async def test_headers_count_down_and_the_window_comes_again(
        self, http: httpx.AsyncClient, seconds: Seconds
    ) -> None:
        path = f"{BASE}/queues"
        left = [(await http.get(path)).headers["ratelimit"] for _ in range(40)]
        assert (left[0], left[-1]) == ('"default";r=39;t=301', '"default";r=0;t=301')
        seconds.now = 100
        response = await http.get(path)
        assert (response.status_code, response.headers["retry-after"]) == (429, "201")
        assert response.json()["success"] is False
        seconds.now = 300
        assert (await http.get(path)).status_code == 200


class TestD1:
    async def test_names_and_ids(self, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/d1/database"
        for name in ("a", "b", "c"):
            await result(http.post(path, json={"name": name}))
        assert await refused(http.post(path, json={"name": "a"})) == (400, 7502)
        assert await refused(http.post(path, json={"name": "not a name"})) == (400, 7400)
        assert await refused(http.post(path, content=b"{")) == (400, 7400)
        assert await refused(http.get(f"{path}/none")) == (404, 7404)
        page = (await http.get(path, params={"page": 2, "per_page": 2})).json()
        assert [database["name"] for database in page["result"]] == ["c"]
        assert page["result_info"] == {"page": 2, "per_page": 2, "count": 1, "total_count": 3}

    async def test_a_string_of_statements_is_a_batch(self, emulator: Emulator, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/d1/database/{posted(emulator, '/d1/database', {'name': 'a'})['uuid']}/query"
        assert len(await result(http.post(path, json={"sql": "CREATE TABLE t (x); INSERT INTO t VALUES (';')"}))) == 2
        assert await refused(http.post(path, json={"sql": "INSERT INTO t VALUES (1); SELECT nowhere"})) == (400, 7500)
        assert await refused(http.post(path, json={"sql": "SELECT ?; SELECT 1", "params": [1]})) == (400, 7500)
        assert await refused(http.post(path, json={"sql": "BEGIN"})) == (400, 7500)
        assert await refused(http.post(path, json={"params": []})) == (400, 7400)
        (read,) = await result(http.post(path, json={"sql": "SELECT count(*) AS n FROM t"}))
        assert read["results"] == [{"n": 1}]

    async def test_numbers_are_javascript_s(self, emulator: Emulator, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/d1/database/{posted(emulator, '/d1/database', {'name': 'a'})['uuid']}/query"
        sql = "SELECT 1.0 AS whole, 9007199254740993 AS large, x'00ff' AS bytes, ?1 AS given, typeof(?1) AS kind"
        response = await http.post(path, json={"sql": sql, "params": [5]})
        text = response.text
        assert '"whole": 1,' in text
        (row,) = response.json()["result"][0]["results"]
        assert row == {"whole": 1, "large": 2**53, "bytes": [0, 255], "given": 5, "kind": "real"}


class TestVectorize:
    @pytest.fixture(autouse=True)
    def _index(self, emulator: Emulator) -> None:
        posted(emulator, INDEX, {"name": "v", "config": {"dimensions": 2, "metric": "cosine"}})

    def upload(self, *vectors: dict[str, Any]) -> bytes:
        return b"\n".join(json.dumps(vector).encode() for vector in vectors)

    async def test_a_mutation_is_seen_late(
        self, emulator: Emulator, http: httpx.AsyncClient, clock: ManualClock
    ) -> None:
        sent = await result(http.post(f"{BASE}{INDEX}/v/upsert", content=self.upload({"id": "a", "values": [1, 0]})))
        info = await result(http.get(f"{BASE}{INDEX}/v/info"))
        assert (info["vectorCount"], info["processedUpToMutation"]) == (0, "")
        clock.advance(3000)
        info = await result(http.get(f"{BASE}{INDEX}/v/info"))
        assert (info["vectorCount"], info["processedUpToMutation"]) == (1, sent["mutationId"])

    async def test_the_adapter_can_wait_for_it(self, emulator: Emulator, clock: ManualClock) -> None:
        index = VectorizeRestIndex(client_of(emulator), "v", 2, indexed=["owner"])
        assert await index.seen()
        await index.upsert([record("a", (1.0, 0.0))])
        assert not await index.seen(patience_seconds=0.02, look_again=0.01)
        clock.advance(3000)
        assert await index.seen()
        assert (await index.describe()).count == 1

    async def test_a_metadata_index_knows_only_what_was_written_after_it(
        self, emulator: Emulator, http: httpx.AsyncClient, clock: ManualClock
    ) -> None:
        vector = {"values": [1, 0], "metadata": {"owner": "me"}}
        await result(http.post(f"{BASE}{INDEX}/v/upsert", content=self.upload({"id": "before", **vector})))
        index = {"propertyName": "owner", "indexType": "string"}
        await result(http.post(f"{BASE}{INDEX}/v/metadata_index/create", json=index))
        clock.advance(3000)
        await result(http.post(f"{BASE}{INDEX}/v/upsert", content=self.upload({"id": "after", **vector})))
        clock.advance(3000)
        query = {"vector": [1, 0], "topK": 5, "filter": {"owner": "me"}}
        found = await result(http.post(f"{BASE}{INDEX}/v/query", json=query))
        assert [match["id"] for match in found["matches"]] == ["after"]

    async def test_limits_and_refusals(self, http: httpx.AsyncClient, clock: ManualClock) -> None:
        path = f"{BASE}{INDEX}"
        assert await refused(http.get(f"{path}/none")) == (404, 3000)
        config = {"dimensions": 2, "metric": "cosine"}
        assert await refused(http.post(path, json={"name": "v", "config": config})) == (409, 3002)
        assert (await refused(http.post(path, json={"name": "w", "config": {**config, "dimensions": 1537}})))[0] == 400
        for top_k, metadata in ((101, "none"), (21, "all"), (0, "none")):
            query = {"vector": [1, 0], "topK": top_k, "returnMetadata": metadata}
            assert (await refused(http.post(f"{path}/v/query", json=query)))[0] == 400
        unknown = {"vector": [1, 0], "filter": {"unknown": 1}}
        assert (await refused(http.post(f"{path}/v/query", json=unknown)))[0] == 400
        fine, bad = {"id": "fine", "values": [1, 0]}, {"id": "bad", "values": [1]}
        assert (await refused(http.post(f"{path}/v/upsert", content=self.upload(fine, bad))))[0] == 400
        clock.advance(3000)
        assert (await result(http.get(f"{path}/v/info")))["vectorCount"] == 0
        discard = f"{path}/v/upsert?unparsable-behavior=discard"
        await result(http.post(discard, content=self.upload(fine, bad)))
        clock.advance(3000)
        assert (await result(http.get(f"{path}/v/info")))["vectorCount"] == 1

    async def test_an_insert_keeps_what_is_there(self, http: httpx.AsyncClient, clock: ManualClock) -> None:
        for operation, values in (("insert", [1, 0]), ("insert", [0, 1])):
            await result(http.post(f"{BASE}{INDEX}/v/{operation}", content=self.upload({"id": "a", "values": values})))
        clock.advance(3000)
        (vector,) = await result(http.post(f"{BASE}{INDEX}/v/get_by_ids", json={"ids": ["a"]}))
        assert vector["values"] == [1, 0]

    async def test_a_namespace_divides_and_wrangler_s_form_is_read(
        self, http: httpx.AsyncClient, clock: ManualClock
    ) -> None:
        lines = self.upload(
            {"id": "a", "values": [1, 0], "namespace": "n"}, {"id": "b", "values": [1, 0], "namespace": "m"}
        )
        await result(http.post(f"{BASE}{INDEX}/v/upsert", files={"vectors": ("v.ndjson", lines)}))
        clock.advance(3000)
        found = await result(http.post(f"{BASE}{INDEX}/v/query", json={"vectorId": "a", "namespace": "m"}))
        assert [match["id"] for match in found["matches"]] == ["b"]


class TestQueues:
    async def test_names_ids_and_consumers(self, emulator: Emulator, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/queues"
        queue = f"{path}/{posted(emulator, '/queues', {'queue_name': 'jobs'})['queue_id']}"
        assert await refused(http.post(path, json={"queue_name": "jobs"})) == (409, 11009)
        assert await refused(http.post(path, json={"queue_name": "Not a name"})) == (400, 11003)
        assert await refused(http.get(f"{path}/none")) == (404, 11000)
        assert (await refused(http.post(f"{queue}/messages/pull", json={})))[0] == 405
        worker = {"type": "worker", "script_name": "mempersist"}
        await result(http.post(f"{queue}/consumers", json=worker))
        assert await refused(http.post(f"{queue}/consumers", json=worker)) == (409, 11004)
        assert await refused(http.delete(queue)) == (409, 11005)

    @pytest.mark.parametrize(
        "batch",
        [
            {},
            {"messages": []},
            {"messages": [{"body": 1}] * 101},
            {"messages": [{"content_type": "json"}]},
            {"messages": [{"body": 1, "content_type": "text"}]},
            {"messages": [{"body": "x" * 128_001, "content_type": "text"}]},
            {"messages": [{"body": "x" * 100_000}] * 3},
            {"messages": [{"body": 1}], "delay_seconds": 86_401},
        ],
        ids=["none", "empty", "101", "no body", "no text", "large", "together too large", "late"],
    )
    async def test_a_batch_that_is_refused_sends_nothing(
        self, emulator: Emulator, http: httpx.AsyncClient, batch: dict[str, Any]
    ) -> None:
        queue = f"{BASE}/queues/{posted(emulator, '/queues', {'queue_name': 'jobs'})['queue_id']}"
        assert (await refused(http.post(f"{queue}/messages/batch", json=batch)))[0] in (400, 413)
        assert (await result(http.get(f"{queue}/metrics")))["backlog_count"] == 0


class TestBuckets:
    async def test_names_and_jurisdictions(self, http: httpx.AsyncClient) -> None:
        path = f"{BASE}/r2/buckets"
        eu = {"cf-r2-jurisdiction": "eu"}
        await result(http.post(path, json={"name": "objects"}))
        assert await refused(http.post(path, json={"name": "objects"})) == (409, 10004)
        assert await refused(http.post(path, json={"name": "No"})) == (400, 10005)
        assert await refused(http.get(f"{path}/objects", headers=eu)) == (404, 10006)
        await result(http.post(path, json={"name": "objects"}, headers=eu))
        assert (await result(http.get(f"{path}/objects", headers=eu)))["jurisdiction"] == "eu"
        await result(http.delete(f"{path}/objects"))
        assert await refused(http.get(f"{path}/objects")) == (404, 10006)


class TestFaults:
    async def test_calls_steer_them_and_count(self, emulator: Emulator, http: httpx.AsyncClient) -> None:
        fault = {"method": "GET", "path": "/queues$", "status": 503, "body": "down", "skip": 1, "times": 2}
        await http.post("/emulator/faults", json=fault)
        statuses = [(await http.get(f"{BASE}/queues")).status_code for _ in range(4)]
        assert statuses == [200, 503, 503, 200]
        await http.post("/emulator/faults", json=fault)
        await http.delete("/emulator/faults")
        assert (await http.get(f"{BASE}/queues")).status_code == 200
        calls = (await http.get("/emulator/calls")).json()
        assert (calls[f"GET {BASE}/queues 200"], calls[f"GET {BASE}/queues 503"]) == (3, 2)

    async def test_afterwards_does_the_work(self, emulator: Emulator, http: httpx.AsyncClient) -> None:
        emulator.faults.add(Fault("afterwards", "POST", status=200, body="<html>"))
        assert (await http.post(f"{BASE}/queues", json={"queue_name": "jobs"})).text == "<html>"
        assert await refused(http.post(f"{BASE}/queues", json={"queue_name": "jobs"})) == (409, 11009)
