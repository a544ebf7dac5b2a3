"""A committed write is answered by a bounded receipt, whatever failed behind it; a refused one by none."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import limits
from mempersist.mcp import budget, receipts
from mempersist.ports import Ports, QueueUnavailable, StorageError
from tests.rigs.hosts import new_world
from tests.rigs.mcp import Client, client

EVERY_HOST = True

CEILING = limits.MAX_RECEIPT_BYTES


def messages(*texts: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text} for text in texts]


async def store(at: Client, *texts: str, **arguments: Any) -> dict[str, Any]:
    return await at.answer("memory_store", title="T", messages=messages(*texts), **arguments)


def replaced(ports: Ports, port: str, **methods: Any) -> Ports:
    """The ports with some methods of one of them replaced, for this test's world only."""
    for name, method in methods.items():
        setattr(getattr(ports, port), name, method)
    return ports


# ------------------------------------------------------------------ shape


async def test_a_store_says_what_was_written_and_how_its_indexing_stands() -> None:
    receipt = await store(await client(), "one", "two")
    assert set(receipt) == {
        "conversation_id",
        "revision_id",
        "durable",
        "indexing",
        "used_serialized_bytes",
        "max_serialized_bytes",
    }
    assert receipt["durable"] is True
    assert receipt["indexing"]["status"] == "queued"
    assert len(receipt["indexing"]["job_id"]) == 64
    assert receipt["max_serialized_bytes"] == CEILING


async def test_an_append_names_the_revision_before_and_adds_tags_to_the_live_ones() -> None:
    at = await client()
    first = await store(at, "one", tags=["A"])
    second = await at.answer(
        "memory_append",
        conversation_id=first["conversation_id"],
        base_revision_id=first["revision_id"],
        messages=messages("two"),
        tags=["b", "B "],
    )
    assert second["previous_revision_id"] == first["revision_id"] != second["revision_id"]
    page = await at.answer("memory_get_conversation", conversation_id=first["conversation_id"])
    assert [message["text"] for message in page["messages"]] == ["one", "two"]
    assert page["conversation"]["tags"] == ["a", "b"]


@pytest.mark.parametrize("verify", [True, "true"])
async def test_verify_reads_back_what_was_committed(verify: Any) -> None:
    at = await client()
    first = await store(at, "one", "two", verify=verify)
    assert first["verification"]["status"] == "passed"
    assert first["verification"]["revision_id"] == first["revision_id"]
    assert first["verification"]["checked_messages"] == 2
    readback = first["verification"]["readback"]
    assert [message["text"] for message in readback["messages"]] == ["one", "two"]
    assert (readback["offset"], readback["nextOffset"], readback["total"]) == (0, None, 2)
    second = await at.answer(
        "memory_append",
        conversation_id=first["conversation_id"],
        base_revision_id=first["revision_id"],
        messages=messages("three"),
        verify=verify,
    )
    readback = second["verification"]["readback"]
    assert [message["text"] for message in readback["messages"]] == ["three"]
    assert (readback["offset"], readback["total"]) == (2, 3)


async def test_a_stale_base_is_a_conflict_that_names_the_current_revision() -> None:
    at = await client()
    first = await store(at, "one")
    arguments = {"conversation_id": first["conversation_id"], "base_revision_id": first["revision_id"]}
    second = await at.answer("memory_append", **arguments, messages=messages("two"))
    error = await at.refused("memory_append", **arguments, messages=messages("three"))
    assert error["code"] == "IMPORT_CONFLICT"
    assert error["current_revision_id"] == second["revision_id"]


async def test_a_repeated_key_answers_with_the_first_write() -> None:
    at = await client()
    first = await store(at, "one", idempotency_key="k")
    again = await store(at, "one", idempotency_key="k")
    assert again["replayed"] is True
    assert "replayed" not in first
    assert (again["conversation_id"], again["revision_id"]) == (first["conversation_id"], first["revision_id"])
    assert (await at.answer("memory_stats"))["totals"]["conversations"] == 1
    error = await at.refused("memory_store", title="T", messages=messages("two"), idempotency_key="k")
    assert error["code"] == "IMPORT_CONFLICT"


@pytest.mark.parametrize(
    "arguments",
    [
        {"messages": []},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": None}]},
        {"messages": [{"role": "", "content": "x"}]},
        {"messages": [{"role": "user", "content": "x", "timestamp": "yesterday"}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"messages": [{"role": "user", "content": "x", "colour": "red"}]},
        {"messages": [{"role": "user", "content": "x"}] * 1001},
        {"title": ""},
        {"title": "  "},
        {"title": "x" * 501},
        {"namespace": " "},
        {"namespace": "x" * 101},
        {"tags": [str(index) for index in range(21)]},
        {"tags": [" "]},
        {"tags": ["x" * 65]},
        {"idempotency_key": " "},
        {"idempotency_key": "x" * 129},
        {"idempotency_key": "\ud800"},
        {"verify": "maybe"},
    ],
)
async def test_a_bad_write_is_refused_before_storage_is_touched(arguments: dict[str, Any]) -> None:
    world = await new_world()
    at = await client(world.ports)
    keys = await world.ports.objects.list("")
    error = await at.refused("memory_store", **{"title": "T", "messages": messages("x"), **arguments})
    assert error["code"] == "VALIDATION"
    assert error["field"].startswith(next(iter(arguments)))
    assert await world.ports.objects.list("") == keys


# ------------------------------------------------------------------ trouble


@pytest.mark.in_process
async def test_a_queue_that_is_down_leaves_the_write_durable() -> None:
    async def send(*_: object, **__: object) -> None:
        raise QueueUnavailable("down")

    world = await new_world()
    receipt = await store(await client(replaced(world.ports, "queue", send=send)), "one", verify=True)
    assert receipt["durable"] is True
    assert receipt["indexing"]["status"] == "failed"
    assert 0 < len(receipt["indexing"]["error"]) <= 200
    assert receipt["verification"]["status"] == "passed"


@pytest.mark.in_process
async def test_storage_that_is_down_is_a_refusal_without_a_receipt() -> None:
    async def put(*_: object, **__: object) -> None:
        raise StorageError("down")

    world = await new_world()
    error = await (await client(replaced(world.ports, "objects", put=put))).refused(
        "memory_store", title="T", messages=messages("one")
    )
    assert error["code"] == "CANONICAL_STORAGE"
    assert "durable" not in error


@pytest.mark.in_process
@pytest.mark.parametrize("failure", [StorageError("secret"), RuntimeError("secret"), RecursionError("secret")])
async def test_a_readback_that_fails_leaves_the_write_durable(failure: Exception) -> None:
    world = await new_world()
    head = world.ports.objects.get

    async def get(key: str, **range_of: Any) -> bytes:
        if "/segments/" in key:
            raise failure
        return await head(key, **range_of)

    receipt = await store(await client(replaced(world.ports, "objects", get=get)), "one", verify=True)
    assert receipt["durable"] is True
    verification = receipt["verification"]
    assert (verification["status"], verification["readback_available"]) == ("failed", False)
    assert type(failure).__name__ in verification["readback_error"]
    assert "secret" not in verification["readback_error"]


@pytest.mark.in_process
async def test_a_readback_that_fails_after_the_check_passed_is_told_apart() -> None:
    world = await new_world()
    at = await client(world.ports)
    query = world.ports.catalog.query

    async def failing(sql: str, params: Any = ()) -> Any:
        if "FROM messages" in sql:
            raise StorageError("secret")
        return await query(sql, params)

    receipt = await store(at, "one")
    arguments = {"conversation_id": receipt["conversation_id"], "base_revision_id": receipt["revision_id"]}
    written = await at.answer("memory_append", **arguments, messages=messages("two"), idempotency_key="k")
    replaced(world.ports, "catalog", query=failing)
    again = await at.answer("memory_append", **arguments, messages=messages("two"), idempotency_key="k", verify=True)
    assert again["revision_id"] == written["revision_id"]
    assert again["verification"]["status"] == "passed"
    assert again["verification"]["readback_error"]
    assert again["omitted"] == ["verification.readback"]
    assert again["readback_requests"]


# ------------------------------------------------------------------ fitting


async def test_a_readback_that_does_not_fit_becomes_requests_that_read_it() -> None:
    at = await client()
    texts = [f"{index} " + 'x"\\\n' * 400 for index in range(45)]
    receipt = await store(at, *texts, verify=True)
    assert receipt["omitted"] == ["verification.readback"]
    assert "readback" not in receipt["verification"]
    assert receipt["verification"]["checked_messages"] == 45
    assert [request["offset"] for request in receipt["readback_requests"]] == [0, 20, 40]
    read = []
    for request in receipt["readback_requests"]:
        page = await at.answer("memory_get_conversation", **request)
        end: int = min(45, request["offset"] + 20)
        while True:
            read += [message["text"] for message in page["messages"]]
            if len(read) >= end:
                break
            page = await at.answer("memory_get_conversation", **{**request, "offset": page["nextOffset"]})
            page["messages"] = page["messages"][: end - len(read)]
    assert read == texts


@pytest.mark.parametrize("text", ["a", '"', "\\", "\x00", "\x1b", "é", "क", "😀", "\ud800", "\n"])
@pytest.mark.parametrize("size", [1, 10_000, 24_000, 24_300, 48_500, 48_700, 100_000])
async def test_a_receipt_never_exceeds_its_ceiling_and_knows_its_size(text: str, size: int) -> None:
    receipt = await store(await client(), text * (size // len(text.encode("utf-8", "surrogatepass"))), "x", verify=True)
    assert budget.size(receipt) == receipt["used_serialized_bytes"] <= CEILING
    assert receipt["verification"]["status"] == "passed"
    assert ("readback" in receipt["verification"]) is ("omitted" not in receipt)


async def test_the_largest_store_has_a_receipt_like_any_other() -> None:
    receipt = await store(await client(), *["x" * 100] * 1000, verify=True)
    assert budget.size(receipt) == receipt["used_serialized_bytes"] <= CEILING
    assert len(receipt["readback_requests"]) == 50
    assert receipt["verification"]["checked_messages"] == 1000


def full_receipt(readback: int, requests: int, error: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    receipt = {
        "conversation_id": "c" * 64,
        "previous_revision_id": "p" * 64,
        "revision_id": "r" * 64,
        "durable": True,
        "indexing": {"status": "failed", "job_id": "j" * error, "error": "e" * error},
        "verification": {
            "status": "passed",
            "revision_id": "r" * 64,
            "readback_available": True,
            "checked_messages": 10,
            "readback_error": "f" * error,
            "readback": {"messages": "m" * readback},
        },
    }
    return receipt, [{"conversation_id": "c" * 64}] * requests


@given(st.integers(0, 120_000), st.integers(0, 2000), st.sampled_from([0, 200, 20_000, 60_000]))
def test_shedding_follows_the_order_and_never_touches_identity_or_outcome(
    readback: int, requests: int, error: int
) -> None:
    receipt, selectors = full_receipt(readback, requests, error)
    fitted = receipts.fit(receipt, selectors)
    assert budget.size(fitted) == fitted["used_serialized_bytes"] <= CEILING
    omitted = fitted.get("omitted", [])
    assert omitted == list(receipts.SHED_ORDER[: len(omitted)])
    for name in ("conversation_id", "previous_revision_id", "revision_id", "durable"):
        assert fitted[name] == receipt[name]
    assert fitted["indexing"]["status"] == "failed"
    for name in ("status", "revision_id", "readback_available"):
        assert fitted["verification"][name] == receipt["verification"][name]
    assert ("readback_requests" in fitted) is (omitted == ["verification.readback"])


def test_nothing_is_shed_while_everything_fits() -> None:
    receipt, selectors = full_receipt(10, 1, 10)
    fitted = receipts.fit(receipt, selectors)
    assert fitted == {
        **receipt,
        "used_serialized_bytes": fitted["used_serialized_bytes"],
        "max_serialized_bytes": CEILING,
    }


async def test_the_namespace_left_out_is_the_accounts_default() -> None:
    at = await client()
    receipt = await store(at, "one", namespace=None)
    page = await at.answer("memory_get_conversation", conversation_id=receipt["conversation_id"])
    listed = (await at.answer("memory_list_namespaces"))["namespaces"]
    assert page["conversation"]["namespace"] == next(row["namespace"] for row in listed if row["default"])
