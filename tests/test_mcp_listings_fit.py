"""Lists and counts stay within their bytes whatever they list, and say what they left out."""

from __future__ import annotations

from typing import Any

from mempersist import limits
from mempersist.archive import accounts
from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.mcp import budget
from mempersist.mcp.registry import TOOLS
from mempersist.mcp.tool import find
from tests.rigs import writes
from tests.rigs.hosts import new_world
from tests.rigs.mcp import client
from tests.rigs.worlds import drain

EVERY_HOST = True

CEILING = limits.RECOMMENDED_TOOL_OUTPUT_BYTES
WIDE_TITLE = "\U0001f600" * limits.MAX_TITLE_CHARS
WIDE_TAGS = [f"{index:02d}" + "\U0001f600" * 62 for index in range(limits.MAX_TAGS)]


async def test_a_page_of_conversations_ends_early_and_the_next_goes_on_after_it() -> None:
    world = await new_world()
    for _ in range(15):
        await writes.store(world.ports, "x", title=WIDE_TITLE, tags=WIDE_TAGS)
        world.clock.advance(1000)
    at = await client(world.ports)
    seen: list[str] = []
    pages = 0
    cursor = None
    while pages == 0 or cursor is not None:
        page = await at.answer("memory_list_conversations", limit=100, cursor=cursor)
        assert budget.size(page) <= CEILING
        assert page["conversations"]
        seen += [row["id"] for row in page["conversations"]]
        cursor = page["nextCursor"]
        pages += 1
    assert pages > 1
    assert len(seen) == len(set(seen)) == 15


async def test_namespaces_that_do_not_fit_are_counted_and_totals_stay_whole() -> None:
    world = await new_world()
    for index in range(200):
        await accounts.claim_namespace(world.ports, OWNER, f"{index:03d}" + "\U0001f600" * 97)
    await writes.store(world.ports, "x", namespace="199" + "\U0001f600" * 97)
    at = await client(world.ports)
    for name in ("memory_list_namespaces", "memory_stats"):
        answer = await at.answer(name)
        assert budget.size(answer) <= CEILING
        assert len(answer["namespaces"]) + answer["namespacesNotListed"] == 201
    assert (await at.answer("memory_stats"))["totals"] == {"conversations": 1, "messages": 1}


async def test_findings_that_do_not_fit_are_counted() -> None:
    world = await new_world()
    broken = [{"id": "\U0001f600" * 100 + str(index), "title": "x", "mapping": index} for index in range(120)]
    body = budget.encode(broken)
    accepted = await uploads.direct(
        world.ports, OWNER, filename="conversations.json", namespace=None, body=body, size=len(body)
    )
    await drain(world)
    answer = await (await client(world.ports)).answer("memory_import_status", import_id=accepted.import_id)
    assert budget.size(answer) <= CEILING
    assert answer["findings_not_listed"] > 0
    assert len(answer["findings"]) + answer["findings_not_listed"] == limits.MAX_STATUS_FINDINGS
    counts = answer["counts"]["conversations"]
    assert counts["found"] == counts["skipped"] + counts["failed"] == 120


def test_no_tool_answers_with_more_than_the_guard_and_no_read_with_more_than_recommended() -> None:
    for tool in TOOLS:
        most: Any = find(TOOLS, tool.name)
        assert most.max_response_bytes <= limits.MAX_TOOL_OUTPUT_BYTES
        assert tool.name == "memory_get_capabilities" or most.max_response_bytes <= CEILING
