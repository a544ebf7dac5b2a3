"""How an export arrives: nothing is acknowledged that is not kept, and nothing kept depends on the catalog."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AbstractContextManager
from typing import Any

import pytest

from mempersist import limits
from mempersist.archive import accounts, keys
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.imports import uploads
from mempersist.imports.status import import_status, list_imports
from mempersist.limits import MIB
from mempersist.ports import AccountId, ObjectNotFound
from mempersist.recovery.sweep import sweep
from tests.rigs import exports
from tests.rigs.faults import Crash, FaultPlan, wrap
from tests.rigs.worlds import World, drain, memory_world, with_empty_catalog

EXPORT = exports.as_json([exports.conversation("a", "one", "two")])
STRANGER = AccountId("stranger")


def refusal(code: Code) -> AbstractContextManager[Any]:
    return pytest.raises(MempersistError, check=lambda error: error.code is code)


async def send(world: World, data: bytes = EXPORT, **changes: object) -> uploads.Accepted:
    values: dict[str, object] = {"filename": "conversations.json", "body": data, "size": len(data), **changes}
    return await uploads.direct(world.ports, OWNER, **values)  # type: ignore[arg-type]


async def begin(world: World, parts: dict[int, bytes], filename: str = "big export.zip") -> str:
    upload = await uploads.begin_multipart(world.ports, OWNER, filename=filename)
    for number, body in parts.items():
        await uploads.put_part(world.ports, OWNER, upload.import_id, number, body)
    return upload.import_id


async def objects_under(world: World, prefix: str) -> list[str]:
    return [info.key for info in (await world.ports.objects.list(prefix)).objects]


async def test_a_direct_upload_is_kept_byte_for_byte_with_a_record_of_whose_it_is() -> None:
    world = await memory_world()
    accepted = await send(world, body=exports.chunked(EXPORT, 7), namespace=" work ", filename="my export!.json")
    assert await world.ports.objects.get(accepted.object_key) == EXPORT
    assert accepted.object_key == f"raw/imports/{accepted.import_id}/source/my_export_.json"
    record = json.loads(await world.ports.objects.get(keys.import_record(accepted.import_id)))
    assert record == {
        "format": "mempersist.import.v1",
        "importId": accepted.import_id,
        "accountId": OWNER,
        "namespace": "work",
        "sourceType": "chatgpt",
        "filename": "my export!.json",
        "sizeBytes": len(EXPORT),
        "sha256": accepted.sha256,
        "createdAt": record["createdAt"],
    }


async def test_without_a_namespace_an_upload_goes_to_the_accounts_default() -> None:
    world = await memory_world()
    assert (await send(world)).namespace == "personal"


@pytest.mark.parametrize(
    ("announced", "code"),
    [(len(EXPORT) - 1, Code.VALIDATION), (len(EXPORT) + 1, Code.VALIDATION)],
    ids=["longer", "shorter"],
)
async def test_a_body_of_another_length_than_announced_is_refused_and_leaves_nothing(
    announced: int, code: Code
) -> None:
    world = await memory_world()
    with refusal(code):
        await send(world, body=exports.chunked(EXPORT, 10), size=announced)
    assert await objects_under(world, keys.IMPORTS) == []
    assert await list_imports(world.ports, OWNER) == ()


async def test_a_direct_upload_over_the_bound_is_refused_before_it_is_read() -> None:
    world = await memory_world()

    async def untouched() -> AsyncIterator[bytes]:
        yield b"".join([pytest.fail("the body was read")])

    with refusal(Code.REQUEST_TOO_LARGE):
        await send(world, body=untouched(), size=limits.MAX_DIRECT_IMPORT_BYTES + 1)


@pytest.mark.parametrize("filename", ["", " \n", "x" * 256])
async def test_a_filename_has_1_to_255_characters(filename: str) -> None:
    world = await memory_world()
    with refusal(Code.VALIDATION):
        await send(world, filename=filename)
    with refusal(Code.VALIDATION):
        await uploads.begin_multipart(world.ports, OWNER, filename=filename)


async def test_parts_may_come_in_any_order_and_again_and_are_joined_by_number() -> None:
    world = await memory_world()
    data = exports.as_json([exports.conversation("a", "x" * 10 * MIB)])
    first, second, last = data[: 5 * MIB], data[5 * MIB : 10 * MIB], data[10 * MIB :]
    import_id = await begin(world, {3: b"not this", 1: first})
    await uploads.put_part(world.ports, OWNER, import_id, 2, exports.chunked(second, 100_000))
    await uploads.put_part(world.ports, OWNER, import_id, 3, last)
    listed = await uploads.list_parts(world.ports, OWNER, import_id)
    assert [(part.number, part.size) for part in listed.parts] == [(1, 5 * MIB), (2, 5 * MIB), (3, len(last))]
    accepted = await uploads.complete(world.ports, OWNER, import_id)
    assert await world.ports.objects.get(accepted.object_key) == data
    await drain(world)
    assert (await import_status(world.ports, OWNER, import_id)).status == "complete"


async def test_missing_parts_are_named() -> None:
    world = await memory_world()
    import_id = await begin(world, {2: b"two", 5: b"five"})
    with pytest.raises(MempersistError) as refused:
        await uploads.complete(world.ports, OWNER, import_id)
    assert refused.value.details["missing_parts"] == [1, 3, 4]
    with refusal(Code.VALIDATION):
        await uploads.complete(world.ports, OWNER, await begin(world, {}))


@pytest.mark.parametrize(
    "sizes", [(5 * MIB, 6 * MIB, 1), (4, 4, 4), (5 * MIB, 5 * MIB + 1)], ids=["unequal", "small", "long last"]
)
async def test_parts_that_r2_would_not_join_are_refused_with_the_rule(sizes: tuple[int, ...]) -> None:
    world = await memory_world()
    import_id = await begin(world, {number: b"x" * size for number, size in enumerate(sizes, start=1)})
    with pytest.raises(MempersistError, match="same size, at least 5 MiB"):
        await uploads.complete(world.ports, OWNER, import_id)


@pytest.mark.parametrize("number", [0, -1, 10_001])
async def test_part_numbers_are_bounded(number: int) -> None:
    world = await memory_world()
    import_id = await begin(world, {})
    with refusal(Code.VALIDATION):
        await uploads.put_part(world.ports, OWNER, import_id, number, b"x")


async def test_a_part_is_neither_empty_nor_over_its_bound() -> None:
    world = await memory_world()
    import_id = await begin(world, {})
    with refusal(Code.REQUEST_TOO_LARGE):
        await uploads.put_part(
            world.ports, OWNER, import_id, 1, exports.chunked(bytes(limits.MAX_MULTIPART_PART_BYTES + 1), MIB)
        )
    with refusal(Code.VALIDATION):
        await uploads.put_part(world.ports, OWNER, import_id, 1, b"")
    assert (await uploads.list_parts(world.ports, OWNER, import_id)).parts == ()


async def test_completing_twice_answers_the_same_before_during_and_after_the_import() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT}, "conversations.json")
    first = await uploads.complete(world.ports, OWNER, import_id)
    assert await uploads.complete(world.ports, OWNER, import_id) == first
    assert (await uploads.list_parts(world.ports, OWNER, import_id)).status == "accepted"
    await drain(world)
    again = await uploads.complete(world.ports, OWNER, import_id)
    assert (again.import_id, again.object_key, again.size_bytes) == (import_id, first.object_key, len(EXPORT))
    assert len(await list_imports(world.ports, OWNER)) == 1


async def test_completing_goes_on_where_an_earlier_try_joined_the_parts_and_died() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT}, "conversations.json")
    row = (await world.ports.catalog.query("SELECT object_key, upload_id FROM import_runs"))[0]
    listed = await uploads.list_parts(world.ports, OWNER, import_id)
    await world.ports.objects.complete_multipart(row["object_key"], row["upload_id"], listed.parts)
    await uploads.complete(world.ports, OWNER, import_id)
    await drain(world)
    assert (await import_status(world.ports, OWNER, import_id)).status == "complete"


async def test_an_aborted_upload_is_forgotten() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT})
    await uploads.abort(world.ports, OWNER, import_id)
    with refusal(Code.NOT_FOUND):
        await import_status(world.ports, OWNER, import_id)
    with refusal(Code.NOT_FOUND):
        await uploads.put_part(world.ports, OWNER, import_id, 2, b"late")
    assert await objects_under(world, keys.IMPORTS) == []


async def test_a_completed_upload_takes_no_more_parts_and_cannot_be_aborted() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT}, "conversations.json")
    await uploads.complete(world.ports, OWNER, import_id)
    with refusal(Code.IMPORT_CONFLICT):
        await uploads.put_part(world.ports, OWNER, import_id, 1, b"more")
    with refusal(Code.IMPORT_CONFLICT):
        await uploads.abort(world.ports, OWNER, import_id)


async def test_an_unknown_and_a_foreign_import_look_the_same() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT})
    answers = set()
    for account, asked in ((STRANGER, import_id), (OWNER, "00000000-0000-4000-8000-000000000000")):
        for call in (
            lambda a, i: uploads.put_part(world.ports, a, i, 1, b"x"),
            lambda a, i: uploads.list_parts(world.ports, a, i),
            lambda a, i: uploads.complete(world.ports, a, i),
            lambda a, i: uploads.abort(world.ports, a, i),
            lambda a, i: import_status(world.ports, a, i),
        ):
            with pytest.raises(MempersistError) as refused:
                await call(account, asked)
            answers.add((refused.value.code, refused.value.message))
    assert answers == {(Code.NOT_FOUND, "import not found")}
    assert await list_imports(world.ports, STRANGER) == ()


async def test_an_accepted_upload_is_imported_even_if_the_catalog_is_lost() -> None:
    world = await memory_world()
    accepted = await send(world, namespace="work")
    world = await with_empty_catalog(world)
    await accounts.ensure_owner(world.ports)
    world.clock.advance((limits.INTENT_GRACE_SECONDS + 1) * 1000)
    await sweep(world.ports)
    await drain(world)
    status = await import_status(world.ports, OWNER, accepted.import_id)
    assert (status.status, status.counts.created, status.namespace) == ("complete", 1, "work")


async def test_an_upload_without_a_record_was_not_accepted_and_is_left_alone() -> None:
    world = await memory_world()
    accepted = await send(world)
    await world.ports.objects.delete([keys.import_record(accepted.import_id)])
    world = await with_empty_catalog(world)
    await accounts.ensure_owner(world.ports)
    world.clock.advance((limits.INTENT_GRACE_SECONDS + 1) * 1000)
    assert (await sweep(world.ports)).imports == 0
    with pytest.raises(ObjectNotFound):
        await world.ports.objects.get(keys.import_record(accepted.import_id))


async def test_the_sweeper_drops_uploads_that_nobody_completed() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: EXPORT})
    world.clock.advance((limits.UPLOAD_EXPIRY_SECONDS - 10) * 1000)
    await sweep(world.ports)
    assert (await uploads.list_parts(world.ports, OWNER, import_id)).size_bytes == len(EXPORT)
    world.clock.advance(20_000)
    await sweep(world.ports)
    with refusal(Code.NOT_FOUND):
        await uploads.list_parts(world.ports, OWNER, import_id)


async def test_a_part_that_was_being_replaced_when_the_sender_died_counts_as_missing() -> None:
    world = await memory_world()
    import_id = await begin(world, {1: b"old"})
    count = FaultPlan()
    await uploads.put_part(wrap(world.ports, count), OWNER, import_id, 1, b"new")
    plan = FaultPlan(count.calls.index("objects.put_part"), "after")
    with pytest.raises(Crash):
        await uploads.put_part(wrap(world.ports, plan), OWNER, import_id, 1, b"newer")
    assert (await uploads.list_parts(world.ports, OWNER, import_id)).parts == ()


async def test_the_sweeper_leaves_an_upload_alone_that_is_just_being_accepted() -> None:
    world = await memory_world()
    count = FaultPlan()
    await uploads.direct(wrap(world.ports, count), OWNER, filename="x.json", body=EXPORT, size=len(EXPORT))
    world = await memory_world()
    ports = wrap(world.ports, FaultPlan(count.calls.index("catalog.batch")))
    with pytest.raises(Crash):
        await uploads.direct(ports, OWNER, filename="x.json", body=EXPORT, size=len(EXPORT))
    assert (await sweep(world.ports)).imports == 0
    world.clock.advance((limits.INTENT_GRACE_SECONDS + 1) * 1000)
    assert (await sweep(world.ports)).imports == 1
