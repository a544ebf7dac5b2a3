"""The contract of the object store port: what R2 promises, and so what every adapter does."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mempersist.limits import MIN_MULTIPART_PART_BYTES
from mempersist.ports import (
    ObjectNotFound,
    ObjectStore,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from tests.rigs.adapters import adapters
from tests.rigs.stores import OBJECT_STORES

ODD_KEYS = [
    "a",
    "a/b",
    "a/b/c",
    "A",
    "a-b",
    "a!",
    "a/",
    "/",
    "//",
    ".",
    "..",
    "../x",
    "x/..",
    "x/../y",
    ".hidden",
    "x.json",
    "x.json/y",
    "a%",
    "a%2F",
    "%41",
    "%+",
    "%-",
    "%-/x",
    " ",
    "é/ü",
    "e\u0301",
    "日本語.json",
    "a" * 300,
    "a" * 300 + "/b",
    "." * 250,
    "a." * 130,
    "é" * 512,
    "\x01\x7f",
]
keys = st.one_of(
    st.sampled_from(ODD_KEYS),
    st.text(alphabet=st.sampled_from("ab/.-%A"), min_size=1, max_size=6),
)


@pytest.fixture(params=adapters(OBJECT_STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ObjectStore]:
    opened = OBJECT_STORES[request.param](tmp_path)
    yield opened
    close = getattr(opened, "close", None)
    if close:
        close()


async def stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def every(store: ObjectStore, prefix: str = "", *, limit: int = 1000, delimiter: str | None = None) -> list[str]:
    """All keys and folded prefixes, page by page."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await store.list(prefix, limit=limit, cursor=cursor, delimiter=delimiter)
        assert len(page.objects) + len(page.prefixes) <= limit
        found += sorted([*(info.key for info in page.objects), *page.prefixes], key=str.encode)
        cursor = page.cursor
        if cursor is None:
            return found


# ------------------------------------------------------------------ put, get, head, delete


async def test_what_was_put_is_there(store: ObjectStore) -> None:
    info = await store.put("k", b"hello")
    assert (info.key, info.size) == ("k", 5)
    assert await store.get("k") == b"hello"
    assert await store.head("k") == info


async def test_a_put_replaces_the_whole_object_and_its_etag(store: ObjectStore) -> None:
    first = await store.put("k", b"a longer text")
    second = await store.put("k", b"short")
    assert await store.get("k") == b"short"
    assert first.etag != second.etag


async def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    await store.put("k", b"")
    assert await store.get("k") == b""
    head = await store.head("k")
    assert head is not None
    assert head.size == 0


async def test_a_streamed_body_is_stored_whole(store: ObjectStore) -> None:
    await store.put("k", stream(b"one", b"", b"two"))
    assert await store.get("k") == b"onetwo"


async def test_a_stream_that_breaks_leaves_what_was_there(store: ObjectStore) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise ConnectionError

    await store.put("k", b"before")
    with pytest.raises(ConnectionError):
        await store.put("k", broken())
    assert await store.get("k") == b"before"
    with pytest.raises(ConnectionError):
        await store.put("new", broken())
    assert await every(store) == ["k"]


@pytest.mark.parametrize(
    ("offset", "length", "expected"),
    [
        (0, None, b"0123456789"),
        (3, None, b"3456789"),
        (0, 4, b"0123"),
        (8, 5, b"89"),
        (9, 1, b"9"),
        (10, 5, b""),
        (50, 5, b""),
        (4, 0, b""),
    ],
)
async def test_a_range_ends_where_the_object_ends(
    store: ObjectStore, offset: int, length: int | None, expected: bytes
) -> None:
    await store.put("k", b"0123456789")
    assert await store.get("k", offset=offset, length=length) == expected


async def test_what_is_missing_is_not_found(store: ObjectStore) -> None:
    await store.put("a/b", b"x")
    for key in ("k", "a", "a/b/c", "a/", "A/b"):
        with pytest.raises(ObjectNotFound):
            await store.get(key)
        assert await store.head(key) is None


async def test_deleting_is_done_once_and_repeated_without_harm(store: ObjectStore) -> None:
    for key in ("a", "a/b", "a/c", "d/e/f"):
        await store.put(key, b"x")
    await store.delete(["a/b", "missing", "d/e/f", "a/b"])
    await store.delete([])
    assert await every(store) == ["a", "a/c"]


@pytest.mark.parametrize("key", ["", "x" * 1025, "é" * 513])
async def test_a_key_that_is_no_key_is_refused(store: ObjectStore, key: str) -> None:
    with pytest.raises(ValueError, match="1024"):
        await store.put(key, b"x")


# ------------------------------------------------------------------ exclusive create


async def test_an_exclusive_put_never_replaces(store: ObjectStore) -> None:
    await store.put("k", b"first", if_absent=True)
    with pytest.raises(PreconditionFailed):
        await store.put("k", b"second", if_absent=True)
    with pytest.raises(PreconditionFailed):
        await store.put("k", stream(b"second"), if_absent=True)
    assert await store.get("k") == b"first"


async def test_of_many_exclusive_puts_one_wins_and_its_bytes_are_there(store: ObjectStore) -> None:
    results = await asyncio.gather(
        *(store.put("k", bytes([number]) * 1000, if_absent=True) for number in range(16)), return_exceptions=True
    )
    winners = [number for number, result in enumerate(results) if not isinstance(result, BaseException)]
    assert len(winners) == 1
    assert sum(isinstance(result, PreconditionFailed) for result in results) == 15
    assert await store.get("k") == bytes(winners) * 1000


async def test_after_a_deletion_the_key_is_free_again(store: ObjectStore) -> None:
    await store.put("a/k", b"first", if_absent=True)
    await store.delete(["a/k"])
    await store.put("a/k", b"second", if_absent=True)
    assert await store.get("a/k") == b"second"


# ------------------------------------------------------------------ listing


async def test_odd_keys_are_all_different_objects_in_byte_order(store: ObjectStore) -> None:
    for key in ODD_KEYS:
        await store.put(key, key.encode(), if_absent=True)
    for key in ODD_KEYS:
        assert await store.get(key) == key.encode()
    assert await every(store, limit=7) == sorted(ODD_KEYS, key=str.encode)
    await store.delete(ODD_KEYS)
    assert await every(store) == []


async def test_folders_fold_into_prefixes(store: ObjectStore) -> None:
    for key in ("c/1/a", "c/1/b", "c/2/a", "c/x", "d"):
        await store.put(key, b"x")
    page = await store.list("c/", delimiter="/")
    assert [info.key for info in page.objects] == ["c/x"]
    assert page.prefixes == ("c/1/", "c/2/")


async def test_an_emptied_folder_is_no_prefix(store: ObjectStore) -> None:
    await store.put("c/1/a", b"x")
    await store.delete(["c/1/a"])
    assert await every(store, "c/", delimiter="/") == []


async def test_an_object_put_during_a_walk_does_not_disturb_it(store: ObjectStore) -> None:
    for key in ("a", "c", "e"):
        await store.put(key, b"x")
    page = await store.list("", limit=2)
    await store.put("b", b"x")
    await store.delete(["a"])
    rest = await store.list("", limit=2, cursor=page.cursor)
    assert [info.key for info in rest.objects] == ["e"]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(keys, unique=True, max_size=14),
    st.text(alphabet=st.sampled_from("ab/.-"), max_size=3),
    st.integers(1, 5),
    st.sampled_from([None, "/", "-"]),
)
@pytest.mark.parametrize("name", adapters(OBJECT_STORES))
def test_any_listing_is_what_a_plain_dictionary_gives(
    name: str, written: list[str], prefix: str, limit: int, delimiter: str | None
) -> None:
    expected: dict[str, None] = {}
    for key in sorted(written, key=str.encode):
        if key.startswith(prefix):
            head, found, _ = key[len(prefix) :].partition(delimiter or "\0")
            expected[prefix + head + found if found and delimiter else key] = None

    async def check() -> None:
        with tempfile.TemporaryDirectory() as directory:
            store = OBJECT_STORES[name](Path(directory))
            for key in written:
                await store.put(key, b"x")
            assert await every(store, prefix, limit=limit, delimiter=delimiter) == sorted(expected, key=str.encode)
            if hasattr(store, "close"):
                store.close()

    asyncio.run(check())


# ------------------------------------------------------------------ multipart

PART = b"part " * (MIN_MULTIPART_PART_BYTES // 5)
"""As small as R2 takes a part that is not the last."""


async def uploaded(store: ObjectStore, key: str, upload_id: str, *parts: bytes) -> list[UploadedPart]:
    return [await store.put_part(key, upload_id, number, part) for number, part in enumerate(parts, start=1)]


async def test_parts_become_the_object_in_the_order_of_their_numbers(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    second = await store.put_part("k", upload_id, 2, stream(b"wor", b"ld"))
    first = await store.put_part("k", upload_id, 1, PART)
    assert (first.size, second.size) == (len(PART), 5)
    assert await store.head("k") is None
    info = await store.complete_multipart("k", upload_id, [first, second])
    assert info.size == len(PART) + 5
    assert await store.get("k") == PART + b"world"


async def test_a_part_written_again_counts_as_last_written(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    (stale,) = await uploaded(store, "k", upload_id, b"old")
    (fresh,) = await uploaded(store, "k", upload_id, b"new")
    with pytest.raises((StorageError, ObjectNotFound)):
        await store.complete_multipart("k", upload_id, [stale])
    await store.complete_multipart("k", upload_id, [fresh])
    assert await store.get("k") == b"new"


async def test_parts_left_out_are_left_out(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    parts = await uploaded(store, "k", upload_id, PART, PART[::-1], b"c")
    await store.complete_multipart("k", upload_id, [parts[0], parts[2]])
    assert await store.get("k") == PART + b"c"


async def test_a_long_stream_is_stored_whole_or_not_at_all(store: ObjectStore) -> None:
    await store.put("k", stream(PART, PART[:-7], PART, b"end"))
    assert await store.get("k") == PART + PART[:-7] + PART + b"end"

    async def broken() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield PART
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await store.put("k", broken())
    assert await store.get("k", offset=3 * len(PART) - 7) == b"end"


async def test_a_part_that_was_never_written_is_not_found(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    parts = await uploaded(store, "k", upload_id, b"a")
    with pytest.raises((ObjectNotFound, StorageError)):
        await store.complete_multipart("k", upload_id, [*parts, UploadedPart(2, parts[0].etag, 1)])


async def test_parts_out_of_order_are_refused(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    parts = await uploaded(store, "k", upload_id, b"a", b"b")
    for wrong in ([], parts[::-1], [parts[0], parts[0]]):
        with pytest.raises(ValueError, match="order"):
            await store.complete_multipart("k", upload_id, wrong)


@pytest.mark.parametrize("number", [0, -1, 10_001])
async def test_part_numbers_have_bounds(store: ObjectStore, number: int) -> None:
    upload_id = await store.create_multipart("k")
    with pytest.raises(ValueError, match="10000"):
        await store.put_part("k", upload_id, number, b"x")


@pytest.mark.parametrize("upload_id", ["unknown", "", "../objects", "0" * 32])
async def test_an_unknown_upload_is_not_found(store: ObjectStore, upload_id: str) -> None:
    with pytest.raises(ObjectNotFound):
        await store.put_part("k", upload_id, 1, b"x")
    with pytest.raises((ObjectNotFound, StorageError)):
        await store.complete_multipart("k", upload_id, [UploadedPart(1, "e", 1)])
    await store.abort_multipart("k", upload_id)


async def test_an_upload_belongs_to_its_key(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    with pytest.raises(ObjectNotFound):
        await store.put_part("other", upload_id, 1, b"x")
    await store.abort_multipart("other", upload_id)
    await store.put_part("k", upload_id, 1, b"x")


async def test_an_aborted_upload_is_gone_and_no_object_came_of_it(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    parts = await uploaded(store, "k", upload_id, b"a")
    await store.abort_multipart("k", upload_id)
    await store.abort_multipart("k", upload_id)
    with pytest.raises((ObjectNotFound, StorageError)):
        await store.complete_multipart("k", upload_id, parts)
    assert await every(store) == []


async def test_a_completed_upload_cannot_be_completed_again(store: ObjectStore) -> None:
    upload_id = await store.create_multipart("k")
    parts = await uploaded(store, "k", upload_id, b"a")
    await store.complete_multipart("k", upload_id, parts)
    with pytest.raises((ObjectNotFound, StorageError)):
        await store.complete_multipart("k", upload_id, parts)
    assert await store.get("k") == b"a"
