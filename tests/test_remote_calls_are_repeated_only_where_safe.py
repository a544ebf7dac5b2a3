"""What the client of the REST API does when Cloudflare is slow, far, busy or talks nonsense."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist.ports import CatalogError, IndexUnavailable, QueueUnavailable, Statement
from mempersist_ops.stores.remote.catalog import D1RestCatalog
from mempersist_ops.stores.remote.embedder import WorkersAiRestEmbedder
from mempersist_ops.stores.remote.pace import REQUESTS, WINDOW_SECONDS, Pace
from mempersist_ops.stores.remote.queue import RestQueue
from mempersist_ops.stores.remote.rest import RestClient, RestError
from mempersist_ops.stores.remote.vectors import VectorizeRestIndex
from tests.emulator.app import ACCOUNT, REST, TOKEN, Emulator
from tests.emulator.faults import Fault
from tests.emulator.server import served
from tests.rigs.emulator import posted

READ = "SELECT x FROM t"
WRITE = "INSERT INTO t VALUES ('new')"
GARBLED = [
    Fault("afterwards", status=200, body="<html>Sign in to the network</html>"),
    Fault("afterwards", status=200, body='{"success":true,"errors":[],"resu'),
    Fault("afterwards", status=200, body="[]"),
    Fault("afterwards", status=502, body="Bad gateway"),
    Fault("afterwards", status=500),
    Fault("lose"),
]


class Time:
    """A clock that a sleep moves on."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def seconds(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def pace(self, requests: int = REQUESTS) -> Pace:
        return Pace(requests=requests, seconds=self.seconds, sleep=self.sleep)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[tuple[Emulator, str]]:
    emulator = Emulator(tmp_path)
    with served(emulator) as url:
        yield emulator, url + REST


@pytest.fixture
def emulator(cloud: tuple[Emulator, str]) -> Emulator:
    return cloud[0]


@pytest.fixture
async def client(cloud: tuple[Emulator, str], time: Time) -> AsyncIterator[RestClient]:
    opened = RestClient(ACCOUNT, TOKEN.value, base_url=cloud[1], pace=time.pace(), first_wait=0, timeout=0.5)
    yield opened
    await opened.aclose()


@pytest.fixture
async def catalog(emulator: Emulator, client: RestClient) -> D1RestCatalog:
    database = posted(emulator, "/d1/database", {"name": "catalog"})["uuid"]
    opened = D1RestCatalog(client, database)
    await opened.query("CREATE TABLE t (x TEXT PRIMARY KEY)")
    emulator.calls.clear()
    return opened


def queries(emulator: Emulator) -> int:
    """How often SQL was sent."""
    return sum(count for call, count in emulator.calls.items() if "/query" in call)


@pytest.mark.parametrize("fault", GARBLED, ids=lambda fault: f"{fault.kind} {fault.status} {fault.body[:6]}")
async def test_a_read_is_asked_again_and_a_write_is_not(
    emulator: Emulator, catalog: D1RestCatalog, fault: Fault
) -> None:
    def again() -> Fault:
        return Fault(fault.kind, status=fault.status, body=fault.body)

    emulator.faults.add(again())
    assert await catalog.query(READ) == ()
    assert queries(emulator) == 2
    emulator.faults.add(again())
    with pytest.raises(CatalogError, match="it may have been done"):
        await catalog.query(WRITE)
    assert queries(emulator) == 3
    assert await catalog.query(READ) == ({"x": "new"},)


async def test_silence_is_given_up(emulator: Emulator, catalog: D1RestCatalog) -> None:
    emulator.faults.add(Fault("silence"))
    assert await catalog.query(READ) == ()
    emulator.faults.add(Fault("silence"))
    with pytest.raises(CatalogError, match=r"no answer.* it may have been done"):
        await catalog.query(WRITE)


@pytest.mark.parametrize(
    "sql", ["WITH n AS (SELECT 'a' AS x) INSERT INTO t SELECT x FROM n", "INSERT INTO t VALUES ('a') RETURNING x"]
)
async def test_a_write_in_a_read_s_clothes_is_a_write(emulator: Emulator, catalog: D1RestCatalog, sql: str) -> None:
    emulator.faults.add(Fault("lose"))
    with pytest.raises(CatalogError):
        await catalog.batch([Statement(READ), Statement(sql)])
    assert queries(emulator) == 1


async def test_a_read_is_not_asked_for_ever(emulator: Emulator, catalog: D1RestCatalog) -> None:
    emulator.faults.add(Fault(times=100))
    with pytest.raises(CatalogError, match="HTTP 500, code 10001"):
        await catalog.query(READ)
    assert queries(emulator) == 4


async def test_one_too_many_waits_as_long_as_told_and_is_sent_again(
    emulator: Emulator, catalog: D1RestCatalog, time: Time
) -> None:
    emulator.faults.add(Fault(status=429, headers={"retry-after": "17"}))
    await catalog.query(WRITE)
    assert time.slept == [17.0]
    assert await catalog.query(READ) == ({"x": "new"},)


async def test_the_others_wait_with_it(emulator: Emulator, catalog: D1RestCatalog, time: Time) -> None:
    emulator.faults.add(Fault(status=429, headers={"retry-after": "17"}))
    await asyncio.gather(*(catalog.query(f"INSERT INTO t VALUES ('{number}')") for number in range(20)))
    assert time.now == 17.0
    assert queries(emulator) == 21


@pytest.mark.parametrize(("told", "waited"), [("100", 300.0), ("0", 330.0), ("soon", 330.0), ("100000", 0.0)])
async def test_a_block_that_never_ends_ends_with_an_error(
    emulator: Emulator, catalog: D1RestCatalog, time: Time, told: str, waited: float
) -> None:
    emulator.faults.add(Fault(status=429, headers={"retry-after": told}, times=1000))
    with pytest.raises(CatalogError, match="HTTP 429"):
        await catalog.query(READ)
    assert time.now == waited


async def test_an_allowance_that_is_used_up_is_waited_for(
    emulator: Emulator, catalog: D1RestCatalog, time: Time
) -> None:
    body = '{"success":true,"errors":[],"messages":[],"result":[{"results":[],"meta":{"changes":0}}]}'
    emulator.faults.add(Fault(status=200, headers={"ratelimit": '"default";r=0;t=30'}, body=body))
    await catalog.query(READ)
    assert time.slept == []
    await catalog.query(READ)
    assert time.slept == [30.0]


async def test_without_a_connection_everything_is_tried_again(time: Time) -> None:
    tried = 0

    def refuse(_: httpx.Request) -> httpx.Response:
        nonlocal tried
        tried += 1
        raise httpx.ConnectError(f"all about {TOKEN.value}")

    client = RestClient(ACCOUNT, TOKEN.value, pace=time.pace(), first_wait=0, transport=httpx.MockTransport(refuse))
    with pytest.raises(CatalogError, match=r"no answer to POST /d1/database/id/query$") as raised:
        await D1RestCatalog(client, "id").query(WRITE)
    assert tried == 4
    assert TOKEN.value not in f"{raised.value!r}"


async def test_connections_are_kept(emulator: Emulator, catalog: D1RestCatalog) -> None:
    for _ in range(10):
        await catalog.query(READ)
    assert len(emulator.peers) == 1


async def test_only_so_many_requests_are_under_way(time: Time) -> None:
    running = most = 0

    async def answer(_: httpx.Request) -> httpx.Response:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.001)
        running -= 1
        return httpx.Response(200, json={"success": True, "result": None})

    client = RestClient(ACCOUNT, TOKEN.value, concurrency=3, pace=time.pace(), transport=httpx.MockTransport(answer))
    await asyncio.gather(*(client.call("GET", "/x", repeatable=True) for _ in range(30)))
    assert most == 3


async def test_a_redirect_is_not_followed(emulator: Emulator, client: RestClient) -> None:
    emulator.faults.add(Fault(status=302, headers={"location": "http://127.0.0.1:1/"}, body="", times=9))
    with pytest.raises(RestError, match="HTTP 302"):
        await client.call("GET", "/d1/database", repeatable=True)


@pytest.mark.parametrize(
    "body", [f'"{TOKEN.value}"', f'{{"success":false,"errors":[{{"code":1,"message":"{TOKEN.value}"}}]}}'], ids=len
)
async def test_no_error_says_what_cloudflare_said(emulator: Emulator, client: RestClient, body: str) -> None:
    emulator.faults.add(Fault(status=400, body=body, times=9))
    vectors, queue = VectorizeRestIndex(client, "v", 2, indexed=["a"]), RestQueue(client, {"index": "q"}, {})
    calls: list[tuple[type[Exception], Any]] = [
        (CatalogError, D1RestCatalog(client, "id").query(READ)),
        (IndexUnavailable, vectors.query((1.0, 0.0), top_k=1, where={"a": 1})),
        (IndexUnavailable, WorkersAiRestEmbedder(client).embed(["text"], kind="query")),
        (QueueUnavailable, queue.send("index", [{}])),
    ]
    for error, call in calls:
        with pytest.raises(error, match="HTTP 400") as raised:
            await call
        assert TOKEN.value not in f"{raised.value!r} {raised.value}"


@pytest.mark.parametrize(
    "result", ["null", "[]", "{}", '"text"', '[{"meta":{}}]', '{"matches":[{"id":"a"}]}', '{"data":[[1]]}']
)
async def test_a_result_of_another_form_is_an_error_of_the_port(
    emulator: Emulator, client: RestClient, result: str
) -> None:
    emulator.faults.add(Fault(status=200, body=f'{{"success":true,"result":{result}}}', times=99))
    vectors, queue = VectorizeRestIndex(client, "v", 2, indexed=["a"]), RestQueue(client, {"index": "q"}, {})
    calls: list[tuple[type[Exception], Any]] = [
        (CatalogError, D1RestCatalog(client, "id").query(READ)),
        (IndexUnavailable, vectors.query((1.0, 0.0), top_k=1, where={"a": 1})),
        (IndexUnavailable, vectors.delete(["a"])),
        (IndexUnavailable, vectors.describe()),
        (IndexUnavailable, WorkersAiRestEmbedder(client).embed(["text"], kind="query")),
        (QueueUnavailable, queue.receive("index", limit=1)),
        (QueueUnavailable, queue.depth("index")),
    ]
    for error, call in calls:
        with pytest.raises(error):
            await call


@pytest.mark.parametrize("token", ["", "two words", "line\nbreak", "é"])
def test_a_token_that_cannot_be_one_is_refused_unsaid(token: str) -> None:
    with pytest.raises(ValueError, match=r"^token: must be printable ASCII without blanks$"):
        RestClient(ACCOUNT, token)


@given(st.lists(st.floats(0, 40), max_size=60), st.integers(1, 7))
async def test_no_window_holds_more_than_its_requests(gaps: list[float], requests: int) -> None:
    time = Time()
    pace = time.pace(requests)
    sent = []
    for gap in gaps:
        time.now += gap
        await pace.turn()
        sent.append(time.now)
    for place, moment in enumerate(sent[requests:]):
        assert moment - sent[place] >= WINDOW_SECONDS - 1e-6
