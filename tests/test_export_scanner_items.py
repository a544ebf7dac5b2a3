"""The scanner yields every item of an export with its exact byte range, however the file is cut and resumed."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist.imports.scanner import START, ScannedItem, ScanPosition, scan
from tests.rigs.sources import BytesSource, collect

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
items_of_export = values.filter(lambda value: not (isinstance(value, list) and value and isinstance(value[0], dict)))
blanks = st.text(" \t\r\n", max_size=3)


@st.composite
def arrays(draw: st.DrawFn) -> tuple[list[Any], bytes]:
    """Values and a file that holds them, with blanks in places and either kind of escaping."""
    items = draw(st.lists(items_of_export, max_size=6))
    dumped = [json.dumps(item, ensure_ascii=draw(st.booleans())) for item in items]
    padded = [draw(blanks) + text + draw(blanks) for text in dumped]
    text = draw(blanks) + "[" + (",".join(padded) or draw(blanks)) + "]" + draw(blanks)
    return items, text.encode("utf-8", "surrogatepass")


async def items_of(data: bytes, at: ScanPosition = START, **options: int) -> list[ScannedItem]:
    found = await collect(scan(BytesSource(data), at, **options))
    assert all(isinstance(item, ScannedItem) for item in found), found
    return [item for item in found if isinstance(item, ScannedItem)]


@given(arrays(), st.sampled_from([1, 3, 7, 64, 1 << 20]))
async def test_any_window_yields_every_value(file: tuple[list[Any], bytes], window: int) -> None:
    values, data = file
    items = await items_of(data, window_bytes=window)
    assert [item.error for item in items] == [None] * len(values)
    assert [item.value for item in items] == values
    assert [item.ordinal for item in items] == list(range(len(values)))


@given(arrays(), st.sampled_from([1, 7, 1 << 20]))
async def test_byte_ranges_are_exact(file: tuple[list[Any], bytes], window: int) -> None:
    values, data = file
    for item, value in zip(await items_of(data, window_bytes=window), values, strict=True):
        assert json.loads(data[item.start : item.end].decode("utf-8", "surrogatepass"), strict=False) == value


@given(arrays())
async def test_resuming_after_any_item_yields_the_rest(file: tuple[list[Any], bytes]) -> None:
    _, data = file
    items = await items_of(data)
    for index, item in enumerate(items):
        position = ScanPosition.from_json(json.loads(json.dumps(item.next.as_json())))
        assert await items_of(data, position) == items[index + 1 :]


@pytest.mark.parametrize("window", [1, 3, 7, 1 << 20])
@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("array", b'[{"a": 1}, {"b": "\xe6\x97\xa5"}]'),
        ("array after a byte order mark", b'\xef\xbb\xbf[{"a": 1}, {"b": "\xe6\x97\xa5"}]'),
        ("conversations in an object", b'{"version": [1], "conversations": [{"a": 1}, {"b": "\xe6\x97\xa5"}], "n": 2}'),
        ("one object a line", b'{"a": 1}\n{"b": "\xe6\x97\xa5"}\n'),
        ("two arrays one after the other", b'[{"a": 1}]\n[{"b": "\xe6\x97\xa5"}]'),
        ("arrays in an array", b'[[{"a": 1}], [ {"b": "\xe6\x97\xa5"}]]'),
        ("a comma too many", b'[{"a": 1},, {"b": "\xe6\x97\xa5"},]'),
        ("a comma too few", b'[{"a": 1} {"b": "\xe6\x97\xa5"}]'),
    ],
)
async def test_the_shapes_that_exports_come_in(name: str, data: bytes, window: int) -> None:
    items = await items_of(data, window_bytes=window)
    assert [item.value for item in items] == [{"a": 1}, {"b": "日"}]
    for index, item in enumerate(items):
        assert json.loads(data[item.start : item.end]) == item.value
        assert await items_of(data, item.next, window_bytes=window) == items[index + 1 :]


async def test_a_single_object_is_one_item() -> None:
    data = b' {"mapping": {}, "title": "conversations"} '
    (item,) = await items_of(data)
    assert (item.value, item.start, item.end) == ({"mapping": {}, "title": "conversations"}, 1, len(data) - 1)


async def test_a_key_conversations_further_down_does_not_make_a_list() -> None:
    (item,) = await items_of(b'{"a": {"conversations": [1]}, "conversations": "none"}')
    assert item.value == {"a": {"conversations": [1]}, "conversations": "none"}


async def test_an_empty_array_yields_nothing() -> None:
    assert await items_of(b"[ ]") == []


async def test_resuming_reads_no_byte_before_the_position() -> None:
    data = json.dumps([{"text": "x" * 5000} for _ in range(40)]).encode()
    items = await items_of(data)
    source = BytesSource(data)
    await collect(scan(source, items[35].next, window_bytes=1024))
    assert source.total < 4 * 5100 * 4


@settings(max_examples=25)
@given(st.integers(1, 400), st.integers(1, 60))
async def test_a_string_cut_at_any_byte_is_read_whole(length: int, window: int) -> None:
    text = ('aé日😀\\"{}[]\n' * 40)[:length]
    data = json.dumps([text, {"k": text}], ensure_ascii=False).encode()
    assert [item.value for item in await items_of(data, window_bytes=window)] == [text, {"k": text}]
