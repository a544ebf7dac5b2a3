"""Importing again: nothing is doubled, nothing is dropped, and what was written here stays."""

from __future__ import annotations

from dataclasses import replace

from mempersist.archive import read
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.memories import Written
from mempersist.archive.model import OWNER
from tests.rigs import conversations as make
from tests.rigs.worlds import World, drain, memory_world
from tests.rigs.writes import append, bring

LATER = "2026-03-01T00:00:00.000Z"
EARLIER = "2025-12-01T00:00:00.000Z"


async def shown(world: World, conversation_id: str) -> list[str]:
    page = await read.read_page(world.ports, OWNER, conversation_id, limit=100)
    return [message.node.text for message in page.messages]


async def all_texts(world: World, conversation_id: str) -> set[str]:
    page = await read.read_page(world.ports, OWNER, conversation_id, limit=100, branch="all")
    return {message.node.text for message in page.messages} - {""}


async def revisions(world: World) -> int:
    return int((await world.ports.catalog.query("SELECT count(*) AS n FROM revisions"))[0]["n"])


async def appended(world: World, conversation_id: str, text: str) -> Written:
    row = (await world.ports.catalog.query("SELECT revision_id FROM conversations"))[0]
    base = Written(conversation_id, row["revision_id"], None, 0, 0, None, True, None)
    return await append(world.ports, base, text)


async def test_the_same_export_again_changes_nothing() -> None:
    world = await memory_world()
    first = await bring(world.ports, make.chain("a", "one", "two"), import_id="i1")
    again = await bring(world.ports, make.chain("a", "one", "two"), import_id="i2")
    assert [item.status for item in (*first, *again)] == ["created", "unchanged"]
    assert again[0].revision_id == first[0].revision_id
    assert await revisions(world) == 1


async def test_an_extended_conversation_keeps_its_id_and_gets_a_revision() -> None:
    world = await memory_world()
    (first,) = await bring(world.ports, make.chain("a", "one"), import_id="i1")
    (second,) = await bring(world.ports, make.chain("a", "one", "two", updated_at=LATER), import_id="i2")
    assert second.status == "updated"
    assert second.conversation_id == first.conversation_id
    assert await shown(world, first.conversation_id) == ["one", "two"]
    assert await revisions(world) == 2


async def test_two_exports_give_the_ids_that_the_newer_gives_alone() -> None:
    both, alone = await memory_world(), await memory_world()
    newer = make.chain("a", "one", "two", "three", updated_at=LATER)
    await bring(both.ports, make.chain("a", "one"), import_id="i1")
    (last,) = await bring(both.ports, newer, import_id="i2")
    (only,) = await bring(alone.ports, newer)
    assert (last.conversation_id, last.revision_id) == (only.conversation_id, only.revision_id)


async def test_an_older_export_adds_what_is_missing_and_moves_nothing() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two", updated_at=LATER), import_id="i1")
    branch = [make.node("n000", None), make.node("n001", "n000", "one"), make.node("x", "n001", "regretted")]
    (old,) = await bring(world.ports, make.conversation("a", branch, title="Old", updated_at=EARLIER), import_id="i2")
    assert old.status == "updated"
    assert await shown(world, item.conversation_id) == ["one", "two"]
    assert await all_texts(world, item.conversation_id) == {"one", "two", "regretted"}
    view = (await read.read_page(world.ports, OWNER, item.conversation_id)).conversation
    assert view.title == "About a"


async def test_an_older_export_that_holds_nothing_new_is_unchanged() -> None:
    world = await memory_world()
    await bring(world.ports, make.chain("a", "one", "two", updated_at=LATER), import_id="i1")
    (old,) = await bring(world.ports, make.chain("a", "one", updated_at=EARLIER), import_id="i2")
    assert old.status == "unchanged"


async def test_a_node_that_a_newer_export_lacks_is_kept() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two"), import_id="i1")
    await bring(world.ports, make.chain("a", "one", updated_at=LATER), import_id="i2")
    assert await shown(world, item.conversation_id) == ["one"]
    assert await all_texts(world, item.conversation_id) == {"one", "two"}


async def test_an_edited_node_is_replaced_by_the_newer_export_only() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", updated_at=LATER), import_id="i1")
    await bring(world.ports, make.chain("a", "stale", updated_at=EARLIER), import_id="i2")
    assert await shown(world, item.conversation_id) == ["one"]
    await bring(world.ports, make.chain("a", "edited", updated_at=LATER), import_id="i3")
    assert await shown(world, item.conversation_id) == ["edited"]


async def test_only_a_new_title_is_a_new_head_and_no_new_revision() -> None:
    world = await memory_world()
    await bring(world.ports, make.chain("a", "one"), import_id="i1")
    (item,) = await bring(world.ports, make.chain("a", "one", title="Renamed", updated_at=LATER), import_id="i2")
    assert item.status == "updated"
    assert await revisions(world) == 1
    assert (await read.read_page(world.ports, OWNER, item.conversation_id)).conversation.title == "Renamed"


async def test_messages_written_here_stay_current_while_the_export_stands_still() -> None:
    world = await memory_world()
    source = make.chain("a", "one", "two")
    (item,) = await bring(world.ports, source, import_id="i1")
    await appended(world, item.conversation_id, "mine")
    await bring(world.ports, replace(source, metadata={"is_archived": True}, updated_at=LATER), import_id="i2")
    assert await shown(world, item.conversation_id) == ["one", "two", "mine"]


async def test_messages_written_here_become_a_branch_when_the_export_went_on_elsewhere() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two"), import_id="i1")
    await appended(world, item.conversation_id, "mine")
    await bring(world.ports, make.chain("a", "one", "two", "three", updated_at=LATER), import_id="i2")
    assert await shown(world, item.conversation_id) == ["one", "two", "three"]
    assert await all_texts(world, item.conversation_id) == {"one", "two", "three", "mine"}


async def test_namespace_and_tags_given_here_survive_an_import() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one"), import_id="i1", namespace="kept")
    await bring(world.ports, make.chain("a", "one", "two", updated_at=LATER), import_id="i2", namespace="other")
    view = (await read.read_page(world.ports, OWNER, item.conversation_id)).conversation
    assert view.namespace == "kept"


async def test_an_import_after_a_deletion_begins_anew() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one", "two"), import_id="i1")
    await delete_conversation(world.ports, OWNER, item.conversation_id)
    await drain(world)
    (again,) = await bring(world.ports, make.chain("a", "one"), import_id="i2")
    assert (again.status, again.conversation_id) == ("created", item.conversation_id)
    assert await all_texts(world, item.conversation_id) == {"one"}


async def test_a_second_copy_in_the_same_export_is_a_duplicate() -> None:
    world = await memory_world()
    items = [make.chain("a", "one"), make.chain("b", "x")]
    await bring(world.ports, *items, import_id="i1")
    (first, second) = await bring(world.ports, *reversed(items), import_id="i1")
    assert (first.status, second.status) == ("duplicate", "duplicate")


async def test_a_repeated_turn_reports_its_own_work_as_it_was() -> None:
    world = await memory_world()
    items = [make.chain("a", "one"), make.chain("b", "x")]
    first = await bring(world.ports, *items, import_id="i1")
    assert await bring(world.ports, *items, import_id="i1") == first


async def test_a_damaged_conversation_fails_alone() -> None:
    world = await memory_world()
    (item,) = await bring(world.ports, make.chain("a", "one"), import_id="i1")
    page = await world.ports.objects.list(f"canonical/conversations/{item.conversation_id}/segments/")
    await world.ports.objects.put(page.objects[0].key, b"damaged")
    newer = make.chain("a", "one", "two", updated_at=LATER)
    damaged, fine = await bring(world.ports, newer, make.chain("b", "x"), import_id="i2")
    assert (damaged.status, damaged.code) == ("failed", "STORED_OBJECT_DAMAGED")
    assert fine.status == "created"
