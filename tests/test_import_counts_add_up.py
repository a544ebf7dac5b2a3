"""Whatever an export holds, every part of it is counted once: imported, unchanged, skipped or failed, with a reason."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mempersist.archive.model import OWNER
from mempersist.imports import uploads
from mempersist.imports.counts import Counts, Tally
from mempersist.imports.records import Receipt
from mempersist.imports.status import import_receipt
from tests.rigs import exports
from tests.rigs.exports import conversation
from tests.rigs.worlds import drain, memory_world


@dataclass(frozen=True)
class Item:
    """An item of an export as text, with what is to become of it and its messages in a first import."""

    text: str
    fate: str
    messages: int


def good(name: str, texts: list[str]) -> Item:
    return Item(json.dumps(conversation(name, *texts)), "imported", len(texts))


goods = st.builds(
    good,
    st.sampled_from([f"c{number}" for number in range(6)]),
    st.lists(st.text(st.characters(codec=None), min_size=1, max_size=9).map(lambda t: f"t{t}"), min_size=1, max_size=4),
)
odd = st.sampled_from(
    [
        Item("[1, 2]", "failed", 0),
        Item("null", "failed", 0),
        Item('{"id": "m", "mapping": {"x": tru}}', "failed", 0),
        Item('{"id": "shell", "title": "t"}', "skipped", 0),
        Item('{"id": "empty", "mapping": {}}', "skipped", 0),
    ]
)


async def _import(data: bytes, filename: str, times: int = 1) -> list[Receipt]:
    world = await memory_world()
    receipts = []
    for _ in range(times):
        accepted = await uploads.direct(world.ports, OWNER, filename=filename, body=data, size=len(data), force=True)
        await drain(world)
        receipts.append(await import_receipt(world.ports, OWNER, accepted.import_id))
    return receipts


def assert_adds_up(receipt: Receipt) -> None:
    counts = receipt.counts.as_json()
    for kind in ("conversations", "messages", "assets", "files"):
        tally = counts[kind]
        assert tally["found"] == tally["imported"] + tally["unchanged"] + tally["skipped"] + tally["failed"]
    assert (
        counts["conversations"]["imported"] == counts["conversations"]["created"] + counts["conversations"]["updated"]
    )
    listed: dict[str, dict[str, int]] = {}
    for finding in receipt.findings:
        by_code = listed.setdefault(finding.severity, {})
        by_code[finding.code] = by_code.get(finding.code, 0) + 1
    assert listed == receipt.counts.reasons
    skipped_or_failed = counts["conversations"]["skipped"] + counts["conversations"]["failed"]
    at_items = [f for f in receipt.findings if f.severity != "note" and f.position.rsplit(":", 1)[-1].isdigit()]
    assert len(at_items) == skipped_or_failed


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.one_of(goods, odd), max_size=8))
def test_every_item_and_message_of_an_export_is_counted_once(items: list[Item]) -> None:
    data = f"[{','.join(item.text for item in items)}]".encode()
    first, again = asyncio.run(_import(data, "conversations.json", times=2))
    for receipt in (first, again):
        assert_adds_up(receipt)
        conversations = receipt.counts.conversations
        assert conversations.found == len(items)
        assert conversations.failed == sum(item.fate == "failed" for item in items)
        assert receipt.counts.messages.found == sum(item.messages for item in items)
    texts = {item.text for item in items if item.fate == "imported"}
    assert first.counts.created == len({json.loads(text)["id"] for text in texts})
    shells = sum(item.fate == "skipped" for item in items)
    assert first.counts.conversations.skipped >= shells
    assert again.counts.created == 0


def test_a_shard_that_cannot_be_read_is_counted_as_a_file_and_the_others_are_imported() -> None:
    files = {
        "conversations-000.json": exports.as_json([conversation("a", "one")]),
        "conversations-001.json": b"<html>expired</html>",
        "conversations-002.json": exports.as_json([conversation("b", "two", "three")]),
        "user.json": b"{}",
    }
    (receipt,) = asyncio.run(_import(exports.as_zip(files), "export.zip"))
    assert receipt.status == "complete_with_errors"
    assert receipt.counts.files == Tally(imported=2, skipped=1, failed=1)
    assert receipt.counts.conversations == Tally(imported=2)
    assert ("conversations-001.json", "failed") in {(f.position, f.severity) for f in receipt.findings}


def test_messages_of_an_item_that_failed_are_counted_as_failed_as_far_as_they_can_be_told() -> None:
    raw = conversation("a", "one", "two")
    raw["mapping"][""] = {**raw["mapping"]["n0"], "id": ""}
    broken: list[Any] = [raw, conversation("b", "three")]
    (receipt,) = asyncio.run(_import(exports.as_json(broken), "conversations.json"))
    assert_adds_up(receipt)
    assert receipt.counts.messages.found == 3 + receipt.counts.conversations.failed


def test_findings_beyond_the_limit_are_counted_without_being_listed() -> None:
    data = exports.as_json([["x"]] * 10_050 + [conversation("a", "one")])
    (receipt,) = asyncio.run(_import(data, "conversations.json"))
    assert receipt.counts.conversations == Tally(imported=1, failed=10_050)
    assert len(receipt.findings) == 10_000
    assert receipt.unrecorded == 50
    assert sum(receipt.counts.reasons["failed"].values()) == 10_050


@given(st.lists(st.tuples(*[st.integers(0, 9)] * 4), max_size=5))
def test_counts_survive_json_and_add_like_their_parts(parts: list[tuple[int, int, int, int]]) -> None:
    total = Counts()
    for part in parts:
        total += Counts(conversations=Tally(*part), reasons={"note": {"X": part[0]}, "failed": {"Y": part[1]}})
    assert Counts.from_json(json.loads(json.dumps(total.as_json()))) == total
    assert total.conversations.found == sum(map(sum, parts))
    assert total.failures == sum(part[1] for part in parts)
