"""Importing again: the same bytes are a duplicate, a newer export adds what is new, and nothing is ever taken away."""

from __future__ import annotations

from typing import Any

from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER, AccountEntry
from mempersist.catalog import account_fold
from mempersist.imports import uploads
from mempersist.imports.records import Receipt
from mempersist.imports.status import import_receipt, import_status
from mempersist.ports import AccountId
from tests.rigs import exports
from tests.rigs.exports import conversation, message
from tests.rigs.worlds import World, drain, memory_world

LATER = exports.EPOCH + 1000


async def bring(
    world: World, data: bytes, filename: str = "conversations.json", account: AccountId = OWNER, **options: Any
) -> Receipt:
    accepted = await uploads.direct(world.ports, account, filename=filename, body=data, size=len(data), **options)
    await drain(world)
    return await import_receipt(world.ports, account, accepted.import_id)


async def revisions(world: World) -> dict[str, int]:
    rows = await world.ports.catalog.query(
        "SELECT c.source_id, count(*) AS n FROM revisions AS r JOIN conversations AS c USING (conversation_id)"
        " GROUP BY c.source_id"
    )
    return {row["source_id"]: row["n"] for row in rows}


async def shown(world: World, source_id: str) -> int:
    rows = await world.ports.catalog.query("SELECT message_count FROM conversations WHERE source_id = ?", (source_id,))
    return int(rows[0]["message_count"])


def codes(receipt: Receipt) -> list[tuple[str, str]]:
    return [(finding.position, finding.code) for finding in receipt.findings]


async def test_the_same_bytes_again_are_a_duplicate_of_the_first_import() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one")])
    first = await bring(world, data)
    second = await bring(world, data, "renamed.json")
    assert (first.status, second.status) == ("complete", "duplicate")
    assert second.duplicate_of == first.import_id
    assert second.counts.conversations.found == 0
    status = await import_status(world.ports, OWNER, second.import_id)
    assert (status.status, status.duplicate_of) == ("duplicate", first.import_id)


async def test_the_same_bytes_of_another_account_are_an_import_of_its_own() -> None:
    world = await memory_world()
    other = AccountId("other")
    entry = AccountEntry(other, 0, "create", {"defaultNamespace": "personal"}, "2026-01-01T00:00:00.000Z", None)
    await world.ports.catalog.batch(account_fold.statements(entry, "hash"))
    data = exports.as_json([conversation("a", "one")])
    assert [(await bring(world, data, account=account)).counts.created for account in (OWNER, other)] == [1, 1]


async def test_a_direct_upload_says_at_once_that_it_is_a_duplicate() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one")])
    first = await bring(world, data)
    again = await uploads.direct(world.ports, OWNER, filename="x.json", body=data, size=len(data))
    assert again.duplicate_of == first.import_id


async def test_forced_the_same_bytes_are_read_again_and_change_nothing() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one"), conversation("b", "two")])
    await bring(world, data)
    again = await bring(world, data, force=True)
    assert again.status == "complete"
    assert (again.counts.conversations.unchanged, again.counts.messages.unchanged) == (2, 2)
    assert await revisions(world) == {"a": 1, "b": 1}


async def test_after_a_deletion_the_same_bytes_bring_the_conversation_back() -> None:
    world = await memory_world()
    data = exports.as_json([conversation("a", "one"), conversation("b", "two")])
    await bring(world, data)
    rows = await world.ports.catalog.query("SELECT conversation_id FROM conversations WHERE source_id = 'a'")
    world.clock.advance(60_000)
    await delete_conversation(world.ports, OWNER, rows[0]["conversation_id"])
    await drain(world)
    again = await bring(world, data)
    assert again.status == "complete"
    assert (again.counts.created, again.counts.conversations.unchanged) == (1, 1)
    assert await shown(world, "a") == 1


async def test_an_import_that_failed_does_not_make_the_same_bytes_a_duplicate() -> None:
    world = await memory_world()
    data = exports.as_json([["no conversation"]])
    assert [(await bring(world, data)).status for _ in range(2)] == ["failed", "failed"]


async def test_a_newer_export_adds_revisions_only_where_something_changed() -> None:
    world = await memory_world()
    await bring(world, exports.as_json([conversation("a", "one"), conversation("b", "two")]))
    newer = [conversation("a", "one"), conversation("b", "two", "more", updated=LATER), conversation("c", "new")]
    receipt = await bring(world, exports.as_json(newer))
    counts = receipt.counts
    assert (counts.created, counts.updated, counts.conversations.unchanged) == (1, 1, 1)
    assert (counts.messages.imported, counts.messages.unchanged) == (3, 1)
    assert await revisions(world) == {"a": 1, "b": 2, "c": 1}


async def test_reordered_keys_are_no_change() -> None:
    world = await memory_world()
    original = conversation("a", "one", "two")
    await bring(world, exports.as_json([original]))
    reordered = {**dict(reversed(original.items())), "mapping": dict(reversed(original["mapping"].items()))}
    assert (await bring(world, exports.as_json([reordered]))).counts.conversations.unchanged == 1


async def test_what_a_newer_export_lacks_stays_and_many_of_them_are_noted() -> None:
    world = await memory_world()
    await bring(world, exports.as_json([conversation(name, "text") for name in "abcdefgh"]))
    few = await bring(world, exports.as_json([conversation(name, "text") for name in "abcdefg"]))
    assert few.counts.conversations_absent == 1
    assert codes(few) == []
    many = await bring(world, exports.as_json([conversation(name, "text") for name in "abcd"]))
    assert many.counts.conversations_absent == 4
    assert codes(many) == [("export", "CONVERSATIONS_ABSENT")]
    assert many.status == "complete"
    assert len(await revisions(world)) == 8


async def test_an_identical_copy_in_another_shard_is_skipped() -> None:
    world = await memory_world()
    item = conversation("a", "one", "two")
    data = exports.as_zip(
        {"conversations-000.json": exports.as_json([item]), "conversations-001.json": exports.as_json([item])}
    )
    receipt = await bring(world, data, "export.zip")
    assert receipt.status == "complete"
    assert (receipt.counts.created, receipt.counts.conversations.skipped, receipt.counts.messages.skipped) == (1, 1, 2)
    assert codes(receipt) == [("conversations-001.json:0", "DUPLICATE_CONVERSATION")]
    assert await revisions(world) == {"a": 1}


async def test_an_identical_copy_is_skipped_too_when_the_conversation_was_known_before() -> None:
    world = await memory_world()
    item = conversation("a", "one")
    await bring(world, exports.as_json([item]))
    receipt = await bring(world, exports.as_json([item, conversation("b", "x"), item]))
    assert (receipt.counts.conversations.unchanged, receipt.counts.conversations.skipped) == (1, 1)
    assert codes(receipt) == [("conversations.json:2", "DUPLICATE_CONVERSATION")]


async def test_of_two_differing_copies_the_newer_text_stands_and_no_message_is_lost() -> None:
    for order in ((0, 1), (1, 0)):
        world = await memory_world()
        rich = conversation("a", "one", "two", "three", updated=LATER)
        poor = conversation("a", "one", "two", updated=exports.EPOCH)
        poor["mapping"]["only-here"] = {
            "id": "only-here",
            "message": message("an older branch", "user", exports.EPOCH),
            "parent": "root",
            "children": [],
        }
        copies = [rich, poor]
        receipt = await bring(world, exports.as_json([copies[index] for index in order]))
        assert receipt.counts.conversations.found == 2
        assert receipt.counts.reasons == {"note": {"CONFLICTING_COPY": 1}}
        assert await shown(world, "a") == 3
        nodes = await world.ports.catalog.query("SELECT count(*) AS n FROM messages WHERE source_node_id = 'only-here'")
        assert nodes[0]["n"] == 1
