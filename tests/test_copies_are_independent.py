"""Copies hold all that their sources hold, live on their own, and are made once however often they are asked for."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist import canonical, limits
from mempersist.archive import keys, load
from mempersist.archive.copying import CopyRequest
from mempersist.archive.deletion import delete_conversation
from mempersist.archive.model import OWNER
from mempersist.archive.read import read_page
from mempersist.catalog.digest import digest
from mempersist.errors import Code, MempersistError
from mempersist.mcp import budget, copy_receipts
from mempersist.ports import AccountId, StorageError
from mempersist.recovery.rebuild import rebuild_catalog
from mempersist.search.query import search
from tests.rigs import conversations as make
from tests.rigs.mcp import Client, client, principal
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog
from tests.rigs.writes import append, bring, copy, replace, retag, store

A_REVISION = "0" * 64
A_UUID = "00000000-0000-4000-8000-000000000000"


async def texts(world: World, conversation_id: str, **query: Any) -> list[str]:
    page = await read_page(world.ports, OWNER, conversation_id, limit=1000, **query)
    return [message.node.text for message in page.messages]


async def one_copy(world: World, wanted: CopyRequest, **changes: Any) -> str:
    (outcome,) = await copy(world.ports, wanted, **changes)
    assert outcome.written, outcome.error
    return outcome.written.conversation_id


async def with_branches(world: World) -> str:
    """An imported conversation with two branches, a node that says odd things, and a node of no parent."""
    nodes = [
        make.node("a", None),
        make.node("b", "a", "left \ud800 \x00 words", created_at="2026-01-01T10:00:00.000Z"),
        make.node("c", "a", "right", hidden=True),
        make.node("d", "gone", "orphan"),
        make.node("e", "b", "answer", role="assistant", model_slug="m-1"),
    ]
    source = make.conversation("s1", nodes, metadata={"extra": [1, None, "x"]}, anomalies=("dangling_parent:d",))
    (outcome,) = await bring(world.ports, source)
    return outcome.conversation_id


# ------------------------------------------------------------------ lossless


async def test_a_copy_has_every_node_line_byte_for_byte_and_all_that_the_source_says_of_itself() -> None:
    world = await memory_world()
    source = await with_branches(world)
    page = await read_page(world.ports, OWNER, source, branch="all")
    copied = await one_copy(world, CopyRequest(source))
    there = await read_page(world.ports, OWNER, copied, branch="all")
    assert there.messages == page.messages
    before, after = page.conversation, there.conversation
    for name in ("title", "source_type", "source_id", "tags", "current_source_node_id", "created_at", "updated_at"):
        assert getattr(after, name) == getattr(before, name), name
    assert (after.anomalies, after.metadata) == (before.anomalies, before.metadata)
    assert after.namespace == "copies"
    assert await texts(world, copied) == await texts(world, source)
    lines = [await node_lines(world, which) for which in (source, copied)]
    assert lines[0] == lines[1]


async def node_lines(world: World, conversation_id: str) -> list[bytes]:
    prefix = f"{keys.conversation(conversation_id)}segments/"
    bodies = [await world.ports.objects.get(info.key) for info in (await world.ports.objects.list(prefix)).objects]
    return sorted(line for body in bodies for line in body.split(b"\n")[1:])


async def test_a_copy_says_where_it_comes_from() -> None:
    world = await memory_world()
    base = await store(world.ports, "words", namespace="here")
    copied = await one_copy(world, CopyRequest(base.conversation_id))
    (stored,) = (await load.manifests(world.ports.objects, copied)).values()
    assert stored.manifest.derived_from == {
        "operation": "copy",
        "conversationId": base.conversation_id,
        "revisionId": base.revision_id,
        "namespace": "here",
        "copiedAt": stored.manifest.created_at,
    }


async def test_a_copy_of_many_segments_and_compactions_is_whole() -> None:
    world = await memory_world()
    written = await store(world.ports, "message 0")
    for index in range(1, 70):
        written = await append(world.ports, written, f"message {index}")
    await drain(world)
    copied = await one_copy(world, CopyRequest(written.conversation_id))
    assert await texts(world, copied) == [f"message {index}" for index in range(70)]


async def test_an_earlier_revision_is_copied_with_the_tags_it_had() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", tags=["a"])
    await retag(world.ports, base, add=["b"])
    second = await append(world.ports, base, "two", tags=["c"])
    await retag(world.ports, second, remove=["a"])
    copied = await one_copy(world, CopyRequest(base.conversation_id, revision_id=base.revision_id))
    page = await read_page(world.ports, OWNER, copied)
    assert page.conversation.tags == ("a", "b")
    assert [message.node.text for message in page.messages] == ["one"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("a", "b")),
        ({"remove": ("A ",), "add": ("c", "a")}, ("b", "c", "a")),
        ({"tags_mode": "replace"}, ()),
        ({"tags_mode": "replace", "remove": ("c",), "add": ("c",)}, ("c",)),
    ],
)
async def test_tags_begin_with_those_inherited_or_none_then_lose_then_gain(
    changes: dict[str, Any], expected: tuple[str, ...]
) -> None:
    world = await memory_world()
    base = await store(world.ports, "one", tags=["a", "b"])
    copied = await one_copy(world, CopyRequest(base.conversation_id, title="Other", **changes))
    view = (await read_page(world.ports, OWNER, copied)).conversation
    assert (view.tags, view.title) == (expected, "Other")


# ------------------------------------------------------------------ independent


async def test_what_happens_to_one_does_not_happen_to_the_other() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", tags=["a"])
    (outcome,) = await copy(world.ports, CopyRequest(base.conversation_id), target="personal")
    assert outcome.written
    await append(world.ports, base, "of the source")
    await append(world.ports, outcome.written, "of the copy", tags=["b"])
    assert await texts(world, base.conversation_id) == ["one", "of the source"]
    assert await texts(world, outcome.written.conversation_id) == ["one", "of the copy"]
    await delete_conversation(world.ports, OWNER, base.conversation_id)
    await drain(world)
    assert await texts(world, outcome.written.conversation_id) == ["one", "of the copy"]
    (hit,) = (await search(world.ports, OWNER, query="of the copy", limit=5)).results
    assert (hit.conversation_id, hit.tags) == (outcome.written.conversation_id, ("a", "b"))


async def test_a_later_import_of_the_source_leaves_the_copy_alone() -> None:
    world = await memory_world()
    (outcome,) = await bring(world.ports, make.chain("a", "one"))
    copied = await one_copy(world, CopyRequest(outcome.conversation_id))
    newer = make.chain("a", "one", "two", updated_at="2026-03-01T00:00:00.000Z")
    await bring(world.ports, newer, import_id="newer")
    assert await texts(world, outcome.conversation_id) == ["one", "two"]
    assert await texts(world, copied) == ["one"]


async def test_a_rebuild_gives_the_same_rows() -> None:
    world = await memory_world()
    source = await with_branches(world)
    copied = await one_copy(world, CopyRequest(source, add=("t",)))
    await replace(world.ports, await store(world.ports, "x"), "y")
    await retag(world.ports, (await copy(world.ports, CopyRequest(source, add=("t",))))[0].written, add=["u"])  # type: ignore[arg-type]
    live = await digest(world.ports.catalog)
    rebuilt = await with_empty_catalog(world)
    await rebuild_catalog(rebuilt.ports)
    assert await digest(rebuilt.ports.catalog) == live
    assert (await read_page(rebuilt.ports, OWNER, copied)).conversation.tags == ("t", "u")


# ------------------------------------------------------------------ once


async def objects(world: World) -> dict[str, bytes]:
    return {info.key: await world.ports.objects.get(info.key) for info in (await world.ports.objects.list("")).objects}


async def test_a_repeated_call_answers_with_the_same_copies_and_writes_nothing() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    first = await copy(world.ports, CopyRequest(base.conversation_id), CopyRequest(A_UUID))
    before = await objects(world)
    world.clock.advance(60_000)
    await append(world.ports, base, "two")
    again = await copy(world.ports, CopyRequest(base.conversation_id), CopyRequest(A_UUID))
    assert first[0].written
    assert again[0].written
    assert (first[0].written.replayed, again[0].written.replayed) == (False, True)
    assert again[0].written.conversation_id == first[0].written.conversation_id
    assert again[0].written.revision_id == first[0].written.revision_id
    assert {key: body for key, body in (await objects(world)).items() if key in before} == before
    assert [key for key in await objects(world) if key not in before and base.conversation_id not in key] == []
    assert again[1].error
    assert again[1].error.code is Code.NOT_FOUND


async def test_another_key_makes_another_copy() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    ids = {await one_copy(world, CopyRequest(base.conversation_id), key=key) for key in ("a", "b")}
    (both) = await copy(world.ports, CopyRequest(base.conversation_id), CopyRequest(base.conversation_id), key="c")
    ids |= {outcome.written.conversation_id for outcome in both if outcome.written}
    assert len(ids) == 4


@pytest.mark.parametrize(
    "changes",
    [
        {"wanted": {"title": "Other"}},
        {"wanted": {"add": ("t",)}},
        {"wanted": {"tags_mode": "replace"}},
        {"target": "elsewhere"},
        {"create": False},
    ],
)
async def test_a_key_that_stands_for_another_request_is_a_conflict(changes: dict[str, Any]) -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    await copy(world.ports, CopyRequest(base.conversation_id))
    wanted = CopyRequest(base.conversation_id, **changes.pop("wanted", {}))
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT):
        await copy(world.ports, wanted, **changes)


async def test_one_key_never_stands_for_a_copy_and_another_write() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", idempotency_key="store")
    await copy(world.ports, CopyRequest(base.conversation_id), key="copy")
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT):
        await copy(world.ports, CopyRequest(base.conversation_id), key="store")
    with pytest.raises(MempersistError, check=lambda error: error.code is Code.IMPORT_CONFLICT):
        await append(world.ports, base, "two", idempotency_key="copy")


async def test_a_copy_that_was_deleted_since_is_not_made_again() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    copied = await one_copy(world, CopyRequest(base.conversation_id))
    await delete_conversation(world.ports, OWNER, copied)
    await drain(world)
    (again,) = await copy(world.ports, CopyRequest(base.conversation_id))
    assert again.error
    assert again.error.code is Code.NOT_FOUND


async def test_what_is_kept_of_a_request_holds_no_title_tag_or_text() -> None:
    world = await memory_world()
    base = await store(world.ports, "secret words", title="Secret title", tags=["secret-tag"], namespace="secret")
    await copy(world.ports, CopyRequest(base.conversation_id, title="Secret copy", add=("secret-too",)))
    record = await world.ports.objects.get(keys.request_record(OWNER, "copy"))
    assert base.revision_id.encode() in record
    assert b"secret" not in record.lower()


async def test_a_lost_record_of_the_request_makes_no_second_copy() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    copied = await one_copy(world, CopyRequest(base.conversation_id))
    await world.ports.objects.delete([keys.request_record(OWNER, "copy")])
    world.clock.advance(60_000)
    assert await one_copy(world, CopyRequest(base.conversation_id)) == copied


# ------------------------------------------------------------------ one by one


async def test_trouble_with_one_request_leaves_the_others_alone() -> None:
    world = await memory_world()
    base = await store(world.ports, "one", tags=[f"t{index}" for index in range(limits.MAX_TAGS)])
    damaged = await store(world.ports, "two")
    (info,) = (await world.ports.objects.list(f"{keys.conversation(damaged.conversation_id)}segments/")).objects
    await world.ports.objects.delete([info.key])
    outcomes = await copy(
        world.ports,
        CopyRequest(A_UUID),
        CopyRequest(base.conversation_id, revision_id=A_REVISION),
        CopyRequest(base.conversation_id, add=("one-more",)),
        CopyRequest(damaged.conversation_id),
        CopyRequest(base.conversation_id),
    )
    assert [outcome.error.code if outcome.error else None for outcome in outcomes] == [
        Code.NOT_FOUND,
        Code.NOT_FOUND,
        Code.VALIDATION,
        Code.CANONICAL_STORAGE,
        None,
    ]


async def test_what_failed_for_a_while_is_made_by_the_repeated_call() -> None:
    world = await memory_world()
    base, other = await store(world.ports, "one"), await store(world.ports, "two")
    get = world.ports.objects.get

    async def failing(key: str, **range_of: Any) -> bytes:
        if other.conversation_id in key and "/segments/" in key:
            raise StorageError("down")
        return await get(key, **range_of)

    wanted = [CopyRequest(base.conversation_id), CopyRequest(other.conversation_id)]
    world.ports.objects.get = failing  # type: ignore[method-assign]
    first = await copy(world.ports, *wanted)
    assert [outcome.written is not None for outcome in first] == [True, False]
    world.ports.objects.get = get  # type: ignore[method-assign]
    world.clock.advance(60_000)
    again = await copy(world.ports, *wanted)
    assert [outcome.written.replayed for outcome in again if outcome.written] == [True, False]


# ------------------------------------------------------------------ the tool


async def ask(at: Client, *wanted: dict[str, Any], **changes: Any) -> dict[str, Any]:
    values = {"target_namespace": "copies", "create_target_namespace": True, "idempotency_key": "k", **changes}
    return await at.answer("memory_copy_conversations", requests=list(wanted), **values)


async def test_each_result_is_a_receipt_that_verifies_the_whole_copy() -> None:
    world = await memory_world()
    source = await with_branches(world)
    receipt = await ask(
        await client(world.ports),
        {"conversation_id": source, "title": "Copy", "tags": {"mode": "replace", "add": ["T"]}},
        {"conversation_id": A_UUID},
        verify=True,
    )
    good, bad = receipt["results"]
    assert (good["request_index"], good["status"], good["durable"]) == (0, "copied", True)
    assert good["source_conversation_id"] == source
    assert (good["verification"]["status"], good["verification"]["checked_messages"]) == ("passed", 2)
    assert [item["text"] for item in good["verification"]["readback"]["messages"]][1] == "answer"
    assert bad == {
        "request_index": 1,
        "status": "failed",
        "source_conversation_id": A_UUID,
        "error": {"code": "NOT_FOUND", "message": "conversation not found"},
    }
    assert receipt["used_serialized_bytes"] == budget.size(receipt)


@pytest.mark.parametrize("count", [1, limits.MAX_COPY_REQUESTS - 1, limits.MAX_COPY_REQUESTS])
@pytest.mark.parametrize("size", [10, 3000])
async def test_receipts_of_many_copies_stay_within_the_ceiling(count: int, size: int) -> None:
    world = await memory_world()
    base = await store(world.ports, *["é" * size] * 45)
    receipt = await ask(await client(world.ports), *[{"conversation_id": base.conversation_id}] * count, verify=True)
    assert receipt["used_serialized_bytes"] == budget.size(receipt) <= limits.MAX_RECEIPT_BYTES
    assert [item["verification"]["status"] for item in receipt["results"]] == ["passed"] * count
    assert len({item["conversation_id"] for item in receipt["results"]}) == count
    if size == 3000:
        assert receipt["omitted"][0] == "verification.readback"


def test_shedding_goes_through_all_results_in_the_fixed_order_and_keeps_identity_and_outcome() -> None:
    def item(size: int) -> dict[str, Any]:
        return {
            "request_index": 0,
            "status": "copied",
            "source_conversation_id": "s" * size,
            "source_revision_id": "r" * size,
            "conversation_id": "c" * 64,
            "revision_id": "r" * 64,
            "durable": True,
            "indexing": {"status": "failed", "job_id": "j" * size, "error": "e" * size},
            "verification": {
                "status": "failed",
                "revision_id": "r" * 64,
                "readback_available": True,
                "checked_messages": 10,
                "readback_error": "f" * size,
                "readback": {"messages": "m" * size},
            },
            "error": {"code": "NOT_FOUND", "message": "x" * 200},
        }

    for size in (1, 100, 300, 400, 500, 800, 1500, 3000):
        fitted = copy_receipts.fit([item(size)] * 20, [[{"n": "n" * size}]] * 20)
        assert fitted["used_serialized_bytes"] == budget.size(fitted) <= limits.MAX_RECEIPT_BYTES
        omitted = fitted.get("omitted", [])
        assert omitted == list(copy_receipts.SHED_ORDER[: len(omitted)])
        for kept in fitted["results"]:
            for name in ("request_index", "status", "conversation_id", "revision_id", "durable"):
                assert kept[name] == item(size)[name]
            assert kept["indexing"]["status"] == "failed"
            assert {"status", "revision_id", "readback_available"} <= set(kept["verification"])
            assert kept["error"]["code"] == "NOT_FOUND"
    assert len(omitted) == len(copy_receipts.SHED_ORDER) - 1


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"requests": []}, "requests"),
        ({"requests": [{"conversation_id": A_UUID}] * (limits.MAX_COPY_REQUESTS + 1)}, "requests"),
        ({"requests": [{}]}, "requests[0].conversation_id"),
        ({"requests": [{"conversation_id": A_UUID, "revision_id": "x"}]}, "requests[0].revision_id"),
        ({"requests": [{"conversation_id": A_UUID, "title": ""}]}, "requests[0].title"),
        ({"requests": [{"conversation_id": A_UUID, "title": " "}]}, "requests[0].title"),
        ({"requests": [{"conversation_id": A_UUID, "title": "x" * 501}]}, "requests[0].title"),
        ({"requests": [{"conversation_id": A_UUID, "tags": {"mode": "keep"}}]}, "requests[0].tags.mode"),
        ({"requests": [{"conversation_id": A_UUID, "tags": {"add": ["x" * 65]}}]}, "requests[0].tags.add[0]"),
        ({"requests": [{"conversation_id": A_UUID, "tags": {"remove": [" "]}}]}, "requests[0].tags.remove[0]"),
        ({"requests": [{"conversation_id": A_UUID, "tags": {"add": ["x"] * 21}}]}, "requests[0].tags.add"),
        ({"requests": [{"conversation_id": A_UUID, "namespace": "x"}]}, "requests[0].namespace"),
        ({"target_namespace": None}, "target_namespace"),
        ({"target_namespace": " "}, "target_namespace"),
        ({"target_namespace": "x" * 101}, "target_namespace"),
        ({"idempotency_key": None}, "idempotency_key"),
        ({"idempotency_key": " "}, "idempotency_key"),
        ({"idempotency_key": "k" * 129}, "idempotency_key"),
        ({"create_target_namespace": "maybe"}, "create_target_namespace"),
    ],
)
async def test_bad_arguments_refuse_the_whole_call_before_storage_is_touched(
    arguments: dict[str, Any], field: str
) -> None:
    world = await memory_world()
    before = await objects(world)
    valid = {
        "target_namespace": "copies",
        "create_target_namespace": True,
        "idempotency_key": "k",
        "requests": [{"conversation_id": A_UUID}],
    }
    error = await (await client(world.ports)).refused("memory_copy_conversations", **{**valid, **arguments})
    assert error["code"] == "VALIDATION"
    assert error["field"] == field
    assert await objects(world) == before


async def test_arguments_at_their_bounds_are_taken() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    wanted = {
        "conversation_id": base.conversation_id,
        "revision_id": base.revision_id,
        "title": "x" * limits.MAX_TITLE_CHARS,
        "tags": {"add": [f"{index:064d}" for index in range(limits.MAX_TAGS)], "remove": ["x" * limits.MAX_TAG_CHARS]},
    }
    receipt = await ask(
        await client(world.ports),
        wanted,
        target_namespace="n" * limits.MAX_NAMESPACE_CHARS,
        idempotency_key="k" * limits.MAX_IDEMPOTENCY_KEY_CHARS,
    )
    assert receipt["results"][0]["status"] == "copied"


async def test_a_target_that_the_account_does_not_own_is_refused_unless_it_may_be_created() -> None:
    world = await memory_world()
    base = await store(world.ports, "one")
    at = await client(world.ports)
    before = await objects(world)
    wanted = {"idempotency_key": "k", "requests": [{"conversation_id": base.conversation_id}]}
    error = await at.refused("memory_copy_conversations", target_namespace="new", **wanted)
    assert error["code"] == "AUTHENTICATION"
    assert await objects(world) == before
    created = await at.answer(
        "memory_copy_conversations", target_namespace="new", create_target_namespace=True, **wanted
    )
    assert created["results"][0]["status"] == "copied"
    spaces = [row["namespace"] for row in (await at.answer("memory_list_namespaces"))["namespaces"]]
    assert "new" in spaces


async def test_missing_deleted_and_foreign_sources_are_one_answer() -> None:
    world = await memory_world()
    kept, gone = await store(world.ports, "kept"), await store(world.ports, "gone")
    await delete_conversation(world.ports, OWNER, gone.conversation_id)
    stranger = AccountId("stranger")
    await world.ports.catalog.query(
        "INSERT INTO accounts (account_id, default_namespace, created_at, log_seq, log_hash)"
        " VALUES ('stranger', 'copies', '2026-01-01T00:00:00.000Z', 0, '')"
    )
    await world.ports.catalog.query(
        "INSERT INTO namespaces (account_id, namespace, created_at) VALUES ('stranger', 'copies', '')"
    )
    owner, other = await client(world.ports), await client(world.ports, principal(account=stranger))
    answers = []
    for at, which, revision in (
        (owner, A_UUID, None),
        (owner, gone.conversation_id, gone.revision_id),
        (other, kept.conversation_id, kept.revision_id),
        (other, kept.conversation_id, None),
    ):
        key = canonical.identity("test", which, revision)
        wanted = {"conversation_id": which, "revision_id": revision}
        (answer,) = (await ask(at, wanted, idempotency_key=key))["results"]
        answers.append({**answer, "source_conversation_id": ""})
    assert all(answer == answers[0] for answer in answers)
    assert answers[0]["error"] == {"code": "NOT_FOUND", "message": "conversation not found"}
