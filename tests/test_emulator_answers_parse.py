"""What the emulator answers is what Cloudflare's own client expects: each answer is checked against its types."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import cloudflare
import httpx
import pytest

from tests.emulator.app import ACCOUNT, REST, TOKEN, Emulator


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[cloudflare.AsyncCloudflare]:
    emulator = Emulator(tmp_path)
    async with cloudflare.AsyncCloudflare(
        api_token=TOKEN.value,
        base_url=f"http://emulator{REST}",
        http_client=httpx.AsyncClient(transport=httpx.ASGITransport(emulator)),
        max_retries=0,
        _strict_response_validation=True,
    ) as opened:
        yield opened
    emulator.close()


async def everything(pages: Any) -> list[Any]:
    return [item async for item in pages]


async def test_d1(client: cloudflare.AsyncCloudflare) -> None:
    databases = client.d1.database
    made = await databases.create(account_id=ACCOUNT, name="catalog", primary_location_hint="weur")
    assert made.uuid
    where = {"account_id": ACCOUNT, "database_id": made.uuid}
    (listed,) = (await databases.list(account_id=ACCOUNT, name="catalog")).result
    assert (listed.uuid, listed.name) == (made.uuid, "catalog")
    got = await databases.get(**where)
    assert got is not None
    assert got.read_replication is not None
    assert got.read_replication.mode == "disabled"
    updated = await databases.update(**where, read_replication={"mode": "auto"})
    assert updated is not None
    assert updated.read_replication is not None
    assert updated.read_replication.mode == "auto"
    script = "CREATE TABLE t (x TEXT); INSERT INTO t VALUES ('a;b'), ('c')"
    written = (await databases.query(**where, sql=script)).result
    assert [result.success for result in written] == [True, True]
    assert written[1].meta is not None
    assert written[1].meta.changes == 2
    (read,) = (await databases.query(**where, sql="SELECT x FROM t WHERE x = ?", params=["c"])).result
    assert read.results == [{"x": "c"}]
    (raw,) = (await databases.raw(**where, sql="SELECT x, x FROM t ORDER BY x")).result
    assert raw.results is not None
    assert (raw.results.columns, raw.results.rows) == (["x", "x"], [["a;b", "a;b"], ["c", "c"]])
    await databases.delete(**where)
    assert (await databases.list(account_id=ACCOUNT)).result == []


async def test_vectorize(client: cloudflare.AsyncCloudflare) -> None:
    indexes = client.vectorize.indexes
    made = await indexes.create(account_id=ACCOUNT, name="v", config={"dimensions": 2, "metric": "cosine"})
    assert made is not None
    assert made.config is not None
    assert made.config.dimensions == 2
    where = {"account_id": ACCOUNT, "index_name": "v"}
    assert [index.name for index in (await indexes.list(account_id=ACCOUNT)).result] == ["v"]
    assert await indexes.get(**where) is not None
    created = await indexes.metadata_index.create(**where, property_name="owner", index_type="string")
    assert created is not None
    assert created.mutation_id
    held = await indexes.metadata_index.list(**where)
    assert held is not None
    assert [(each.property_name, each.index_type) for each in held.metadata_indexes or ()] == [("owner", "string")]
    lines = b'{"id":"a","values":[1,0],"metadata":{"owner":"me"}}\n{"id":"b","values":[0,1]}'
    for upload in (indexes.insert, indexes.upsert):
        with pytest.warns(DeprecationWarning, match="raw bytes"):  # the client's own way to send NDJSON
            sent = await upload(**where, body=lines)
        assert sent is not None
        assert sent.mutation_id
    info = await indexes.info(**where)
    assert info is not None
    assert (info.vector_count, info.processed_up_to_mutation) == (2, sent.mutation_id)
    asked: dict[str, Any] = {"vector": [1.0, 0.0], "top_k": 1, "filter": {"owner": "me"}, "return_metadata": "all"}
    found = await indexes.query(**where, **asked)
    assert found is not None
    (match,) = found.matches or ()
    assert (match.id, match.score, match.metadata) == ("a", 1.0, {"owner": "me"})
    page = await indexes.list_vectors(**where, count=1)
    assert page is not None
    assert (page.is_truncated, page.next_cursor, [vector.id for vector in page.vectors]) == (True, "a", ["a"])
    assert await indexes.get_by_ids(**where, ids=["a"])
    assert await indexes.delete_by_ids(**where, ids=["a"]) is not None
    assert await indexes.metadata_index.delete(**where, property_name="owner") is not None
    await indexes.delete(**where)


async def test_queues(client: cloudflare.AsyncCloudflare) -> None:
    made = await client.queues.create(account_id=ACCOUNT, queue_name="jobs")
    assert made is not None
    assert made.queue_id
    where = {"account_id": ACCOUNT, "queue_id": made.queue_id}
    assert [queue.queue_name for queue in await everything(client.queues.list(account_id=ACCOUNT))] == ["jobs"]
    edited = await client.queues.edit(**where, settings={"delivery_delay": 0})
    assert edited is not None
    consumer = await client.queues.consumers.create(**where, type="http_pull", settings={"max_retries": 7})
    assert consumer is not None
    assert consumer.consumer_id
    assert len(await everything(client.queues.consumers.list(**where))) == 1
    messages = client.queues.messages
    assert await messages.push(**where, body={"n": 1}, content_type="json") is not None
    assert await messages.bulk_push(**where, messages=[{"body": "two", "content_type": "text"}]) is not None
    peeked = await messages.peek(**where, batch_size=10)
    assert peeked is not None
    assert len(peeked.messages or ()) == 2
    pulled = await messages.pull(**where, batch_size=10, visibility_timeout_ms=1000)
    assert pulled is not None
    assert [message.attempts for message in pulled.messages or ()] == [1, 1]
    assert [message.body for message in pulled.messages or ()] == ["eyJuIjogMX0=", "two"]
    leases = [{"lease_id": str(message.lease_id)} for message in pulled.messages or ()]
    acked = await messages.ack(**where, acks=leases[:1], retries=leases[1:])
    assert acked is not None
    assert (acked.ack_count, acked.retry_count) == (1, 1)
    metrics = await client.queues.get_metrics(**where)
    assert metrics is not None
    assert metrics.backlog_count == 1
    await client.queues.consumers.delete(**where, consumer_id=consumer.consumer_id)
    await client.queues.delete(**where)


async def test_r2_buckets(client: cloudflare.AsyncCloudflare) -> None:
    for name in ("objects-a", "objects-b"):
        made = await client.r2.buckets.create(account_id=ACCOUNT, name=name, location_hint="weur")
        assert made.name == name
    got = await client.r2.buckets.get(account_id=ACCOUNT, bucket_name="objects-a")
    assert (got.name, got.storage_class) == ("objects-a", "Standard")
    listed = await client.r2.buckets.list(account_id=ACCOUNT, per_page=1)
    assert [bucket.name for bucket in listed.buckets or ()] == ["objects-a"]
    await client.r2.buckets.delete(account_id=ACCOUNT, bucket_name="objects-a")
    left = await client.r2.buckets.list(account_id=ACCOUNT)
    assert [bucket.name for bucket in left.buckets or ()] == ["objects-b"]


async def test_workers_ai(client: cloudflare.AsyncCloudflare) -> None:
    answer: Any = await client.ai.run("@cf/baai/bge-m3", account_id=ACCOUNT, text=["one", "two"])
    assert answer["shape"] == [2, 1024]
    assert [len(row) for row in answer["data"]] == [1024, 1024]


@pytest.mark.parametrize(
    ("token", "error"),
    [("unknown", cloudflare.AuthenticationError), (TOKEN.value, cloudflare.NotFoundError)],
)
async def test_refusals_are_the_client_s_errors(
    client: cloudflare.AsyncCloudflare, token: str, error: type[cloudflare.APIStatusError]
) -> None:
    with pytest.raises(error) as raised:
        await client.with_options(api_token=token).d1.database.get(account_id=ACCOUNT, database_id="none")
    assert [item.code for item in raised.value.errors] == [10000 if token == "unknown" else 7404]
