"""Upkeep over HTTP: work that was given up, indexing anew, and whether everything agrees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mempersist import limits
from mempersist.archive.model import OWNER
from mempersist.mcp.registry import TOOLS
from mempersist.ports import AccountId
from mempersist.recovery import upkeep
from tests.rigs.faults import FaultPlan, wrap
from tests.rigs.hosts import new_world
from tests.rigs.http import Door, door
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import store

EVERY_HOST = True


async def park(world: World, *conversations: str) -> list[str]:
    """Park the index jobs of these conversations; their ids."""
    found = []
    for conversation in conversations:
        rows = await world.ports.catalog.query(
            "UPDATE jobs SET status = 'failed', attempts = 8, error_code = 'DERIVED_INDEXING', error_message = 'no',"
            " lease_owner = NULL WHERE subject_id = ? RETURNING job_id",
            (conversation,),
        )
        await world.ports.catalog.query(
            "UPDATE index_state SET status = 'failed' WHERE conversation_id = ?", (conversation,)
        )
        found += [str(row["job_id"]) for row in rows]
    return found


async def get(at: Door, path: str, **params: Any) -> Any:
    answer = await at.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_parked_jobs_are_listed_with_their_reasons_page_by_page() -> None:
    async with door() as at:
        stored = [(await store(at.world.ports, f"words {number}")).conversation_id for number in range(3)]
        jobs = await park(at.world, *stored)
        first = await get(at, "/api/admin/jobs", limit=2)
        second = await get(at, "/api/admin/jobs", limit=2, cursor=first["nextCursor"])
    listed = [*first["jobs"], *second["jobs"]]
    assert sorted(job["id"] for job in listed) == sorted(jobs)
    assert {(job["kind"], job["attempts"], job["errorCode"]) for job in listed} == {("index", 8, "DERIVED_INDEXING")}
    assert (second["nextCursor"], first["deadLetters"]) == (None, 0)


async def test_a_parked_job_that_is_retried_is_done() -> None:
    async with door() as at:
        stored = await store(at.world.ports, "a walrus")
        (job,) = await park(at.world, stored.conversation_id)
        assert (await get(at, "/api/admin/integrity"))["counts"]["parkedJobs"] == 1
        retried = await at.client.post(f"/api/admin/jobs/{job}/retry", json={})
        again = await at.client.post(f"/api/admin/jobs/{job}/retry", json={})
        await drain(at.world)
        found = await get(at, "/api/admin/integrity")
    assert (retried.status_code, retried.json()) == (200, {"id": job, "queued": True})
    assert (again.status_code, again.json()["error"]["code"]) == (404, "NOT_FOUND")
    assert (found["counts"]["parkedJobs"], found["counts"]["indexed"], found["findings"]) == (0, 1, [])


async def test_indexing_again_goes_through_everything_and_pays_for_nothing_twice() -> None:
    async with door() as at:
        for number in range(5):
            await store(at.world.ports, f"words {number}", namespace="work" if number % 2 else "home")
        await drain(at.world)
        before = await at.world.ports.catalog.query("SELECT chunk_id, chunk_rowid FROM chunks ORDER BY 1")
        queued, cursor = 0, None
        while True:
            body = {"limit": 2} if cursor is None else {"limit": 2, "cursor": cursor}
            answer = (await at.client.post("/api/admin/reindex", json=body)).json()
            queued, cursor = queued + answer["queued"], answer["nextCursor"]
            if cursor is None:
                break
        await drain(at.world)
        one = (await at.client.post("/api/admin/reindex", json={"namespace": "work"})).json()
        other = await at.client.post("/api/admin/reindex", json={"namespace": "nobody's"})
        await drain(at.world)
        counts = (await get(at, "/api/admin/integrity"))["counts"]
        after = await at.world.ports.catalog.query("SELECT chunk_id FROM chunks ORDER BY 1")
    assert (queued, one) == (5, {"queued": 2, "nextCursor": None})
    assert other.status_code == 403
    assert (counts["indexed"], counts["conversations"]) == (5, 5)
    assert [row["chunk_id"] for row in after] == [row["chunk_id"] for row in before]


async def test_what_does_not_agree_is_found() -> None:
    async with door() as at:
        first, second = await store(at.world.ports, "one"), await store(at.world.ports, "two")
        await drain(at.world)
        whole = await get(at, "/api/admin/integrity")
        await at.world.ports.catalog.query(
            "UPDATE conversations SET head_seq = 5 WHERE conversation_id = ?", (first.conversation_id,)
        )
        page = await at.world.ports.objects.list(f"canonical/conversations/{second.conversation_id}/segments/")
        await at.world.ports.objects.delete([info.key for info in page.objects])
        broken = await get(at, "/api/admin/integrity", limit=1)
        more = await get(at, "/api/admin/integrity", limit=1, cursor=broken["nextCursor"])
    assert (whole["findings"], whole["checked"]) == ([], 2)
    found = {(item["code"], item["severity"]) for item in (*broken["findings"], *more["findings"])}
    assert found == {("CATALOG_DIFFERS", "behind"), ("SEGMENT_MISSING", "damage")}
    assert more["nextCursor"] is None


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/api/admin/jobs?limit=0", None),
        ("GET", f"/api/admin/jobs?limit={limits.MAX_LIST_ITEMS + 1}", None),
        ("GET", "/api/admin/jobs?cursor=bogus", None),
        ("GET", "/api/admin/integrity?limit=51", None),
        ("POST", "/api/admin/reindex", {"limit": 501}),
        ("POST", "/api/admin/reindex", {"colour": "red"}),
        ("POST", "/api/admin/jobs/x/retry", {"job_id": "y"}),
    ],
)
async def test_what_is_out_of_bounds_is_refused(method: str, path: str, body: Any) -> None:
    async with door() as at:
        answer = await at.client.request(method, path, json=body)
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "VALIDATION")


async def test_upkeep_asks_for_a_token() -> None:
    async with door(token=None) as at:
        for method, path in (
            ("GET", "/api/admin/jobs"),
            ("POST", "/api/admin/reindex"),
            ("GET", "/api/admin/integrity"),
        ):
            assert (await at.client.request(method, path)).status_code == 401


@pytest.mark.in_process
async def test_another_accounts_jobs_and_conversations_are_not_there() -> None:
    world = await new_world()
    stranger = AccountId("stranger")
    written = await store(world.ports, "mine")
    (job,) = await park(world, written.conversation_id)
    assert (await upkeep.parked(world.ports, stranger, limit=5, cursor=None)).jobs == ()
    with pytest.raises(Exception, match="job not found"):
        await upkeep.retry(world.ports, stranger, job)
    assert (await upkeep.reindex(world.ports, stranger, namespace=None, limit=5, cursor=None)).queued == 0
    assert (await upkeep.integrity(world.ports, stranger, limit=5, cursor=None)).checked == 0
    assert len((await upkeep.parked(world.ports, OWNER, limit=5, cursor=None)).jobs) == 1


@pytest.mark.in_process
async def test_a_queue_that_is_down_leaves_a_retried_job_to_the_sweeper() -> None:
    world = await memory_world()
    written = await store(world.ports, "words")
    (job,) = await park(world, written.conversation_id)
    plan = FaultPlan()
    await upkeep.retry(wrap(world.ports, plan), OWNER, job)
    await park(world, written.conversation_id)
    broken = wrap(world.ports, replace(plan, at=plan.calls.index("queue.send"), kind="trouble", calls=[]))
    assert await upkeep.retry(broken, OWNER, job) is False


@pytest.mark.in_process
def test_no_assistant_is_offered_any_of_it() -> None:
    assert not [tool.name for tool in TOOLS if tool.name.startswith("admin")]
