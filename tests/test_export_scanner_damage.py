"""A damaged item is an error of its own: what stands around it is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import limits
from mempersist.errors import Code, MempersistError
from mempersist.imports.problems import Finding
from mempersist.imports.scanner import START, ScannedItem, scan
from tests.rigs.sources import BytesSource, PatternSource, collect, literal, repeated

WINDOWS = [1, 7, 1 << 20]


def conversation(name: str) -> dict[str, Any]:
    nodes = {"r": {"id": "r", "message": {"id": "m", "create_time": 1.5, "content": {"parts": ["a, {b} ]"]}}}}
    return {"title": name, "create_time": 1700000000.25, "update_time": 1700000001, "mapping": nodes, "id": name}


def outcomes(found: list[ScannedItem | Finding]) -> list[Any]:
    """The id of a conversation, the value of another item, or the code of an error or finding."""
    out: list[Any] = []
    for each in found:
        if isinstance(each, Finding):
            out.append(each.code)
        elif each.error:
            out.append(each.error.code)
        else:
            out.append(each.value.get("id", each.value) if isinstance(each.value, dict) else each.value)
    return out


async def scanned(data: bytes, **options: int) -> list[Any]:
    return outcomes(await collect(scan(BytesSource(data), START, **options)))


def export(*items: str) -> bytes:
    return ("[" + ", ".join(items) + "]").encode()


DAMAGE = [bytes([byte]) for byte in b'{}[]",:x\\\xff ']
GOOD = [json.dumps(conversation(name)) for name in ("one", "two", "three")]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("damage", "bad"),
    [
        ("a bare word", '{"title": tru}'),
        ("a comma too many", '{"a": 1,}'),
        ("no colon", '{"a" 1}'),
        ("a bad escape", r'{"a": "\x"}'),
        ("a cut surrogate escape", r'{"a": "\ud83"}'),
        ("no value at all", "{:}"),
        ("a bare word for an item", "nonsense"),
        ("the wrong bracket in an object", '{"a": [1}}'),
    ],
)
async def test_a_malformed_item_leaves_its_neighbours_alone(damage: str, bad: str, window: int) -> None:
    found = await scanned(export(GOOD[0], bad, GOOD[1]), window_bytes=window)
    assert found == ["one", "MALFORMED_JSON", "two"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize(
    ("damage", "bad"),
    [
        ("a quote is missing", GOOD[0].replace('"one", "create', 'one", "create')),
        ("a quote is too many", GOOD[0].replace('"one"', '"o"ne"')),
        ("a bracket is missing", GOOD[0].replace("]", "")),
        ("a brace is missing", GOOD[0][:-1]),
        ("a brace is too many", GOOD[0] + "}}"),
        ("half of it is missing", GOOD[0][: len(GOOD[0]) // 2]),
    ],
)
async def test_the_head_of_the_next_conversation_ends_a_runaway(damage: str, bad: str, window: int) -> None:
    found = await scanned(export(GOOD[1], bad, GOOD[2], GOOD[1]), window_bytes=window)
    whole = ["one"] if bad.startswith(GOOD[0]) else []
    assert found == ["two", *whole, "MALFORMED_JSON", "three", "two"]


@given(st.data())
async def test_any_byte_overwritten_costs_at_most_its_own_conversation_and_what_cannot_be_told_apart(
    data: st.DataObject,
) -> None:
    names = ["a0", "b1", "c2", "d3"]
    clean = export(*(json.dumps(conversation(name)) for name in names))
    at = data.draw(st.integers(1, len(clean) - 2))
    dirty = bytearray(clean)
    dirty[at : at + 1] = data.draw(st.sampled_from(DAMAGE))
    starts = [clean.index(b'{"title": "' + name.encode()) for name in names]
    hit = max((index for index, start in enumerate(starts) if start <= at), default=0)
    found = await scanned(bytes(dirty))
    for index, name in enumerate(names):
        if abs(index - hit) > 1:
            assert name in found, (at, bytes(dirty[at - 5 : at + 5]), found)


damages = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 40), st.binary(max_size=4) | st.sampled_from(DAMAGE)),
    max_size=4,
)


def comparable(found: list[ScannedItem | Finding]) -> list[Any]:
    return [
        each
        if isinstance(each, Finding)
        else (each.start, each.end, repr(each.value), each.error and each.error.code, each.notes, each.next)
        for each in found
    ]


@given(damages, st.sampled_from([1, 2, 3, 9, 33, 100]), st.sampled_from([60, 250, 1 << 20]), st.booleans())
async def test_a_damaged_file_is_the_same_in_any_window_and_after_any_resumption(
    damage: list[tuple[float, int, bytes]], window: int, most: int, by_lines: bool
) -> None:
    items = [*GOOD, json.dumps({"a": [1, 2.5, "é日😀"]}, ensure_ascii=False), "null", "123456", '{"k": "\\"}{"}']
    data = "\n".join(GOOD).encode() if by_lines else export(*items)
    for place, length, replacement in damage:
        at = int(place * len(data))
        data = data[:at] + replacement + data[at + length :]
    source = BytesSource(data)
    try:
        found = await collect(scan(source, max_item_bytes=most))
    except MempersistError:
        return
    assert comparable(await collect(scan(source, max_item_bytes=most, window_bytes=window))) == comparable(found)
    for index, each in enumerate(found):
        if isinstance(each, ScannedItem):
            rest = await collect(scan(source, each.next, max_item_bytes=most))
            assert comparable(rest) == comparable(found[index + 1 :])


@pytest.mark.parametrize("window", WINDOWS)
async def test_a_file_cut_within_an_item_yields_the_whole_ones_and_then_says_so(window: int) -> None:
    data = export(*GOOD)
    cut = data.index(b'"three"')
    (*whole, last) = await collect(scan(BytesSource(data[:cut]), window_bytes=window))
    assert outcomes(whole) == ["one", "two"]
    assert isinstance(last, ScannedItem)
    assert last.error is not None
    assert (last.error.code, last.end, last.next.shape) == ("TRUNCATED", cut, "end")
    assert await collect(scan(BytesSource(data[:cut]), last.next)) == []


@pytest.mark.parametrize("cut", [b'{"a": 1}', b'{"a": 1}, ', b'{"a": 1} ,\n'])
async def test_a_file_cut_between_items_says_so_again_when_resumed(cut: bytes) -> None:
    source = BytesSource(b"[" + cut)
    item, finding = await collect(scan(source))
    assert isinstance(item, ScannedItem)
    assert isinstance(finding, Finding)
    assert (finding.code, finding.severity) == ("TRUNCATED", "failed")
    assert await collect(scan(source, item.next)) == [finding]


async def test_a_file_cut_at_every_byte_never_loses_a_whole_item() -> None:
    data = export('{"a": "b\\"}"}', '{"c": [1, [2]]}', "null")
    ends = [data.index(b"}", 12) + 1, data.index(b"]]}") + 3, len(data) - 1]
    for cut in range(1, len(data)):
        found = await collect(scan(BytesSource(data[:cut]), window_bytes=3))
        whole = [each for each in found if isinstance(each, ScannedItem) and not each.error]
        assert len(whole) == sum(end <= cut for end in ends)
        assert "TRUNCATED" in outcomes(found)


async def test_a_truncated_single_object_is_truncated_and_a_malformed_one_malformed() -> None:
    assert await scanned(b'{"mapping": {"a": [') == ["TRUNCATED"]
    assert await scanned(b'{"mapping": tru}') == ["MALFORMED_JSON"]


async def test_a_malformed_line_costs_its_line() -> None:
    assert await scanned(b'{"id": "a"}\n{"id": "b"\n{"id": "c"}\n{"id": }') == [
        "a",
        "MALFORMED_JSON",
        "c",
        "MALFORMED_JSON",
    ]


@pytest.mark.parametrize("data", [b'[{"id": "a"}] garbage', b'{"id": "a"} garbage', b'[{"id": "a"}] {"id": "b"}'])
async def test_trailing_data_is_reported(data: bytes) -> None:
    assert await scanned(data) == ["a", "TRAILING_DATA"]


async def test_an_end_of_the_list_in_the_middle_of_it_is_not_believed() -> None:
    data = export(GOOD[0], GOOD[1], GOOD[2]).replace(b', {"title": "two"', b'] ? , {"title": "two"')
    assert await scanned(data) == ["one", "MALFORMED_JSON", "two", "three"]


async def test_ten_thousand_levels_are_an_error_of_one_item() -> None:
    deep = "[" * 10_000 + "]" * 10_000
    nested = '{"a":' * 10_000 + "1" + "}" * 10_000
    for window in (1000, 1 << 20):
        found = await scanned(export(GOOD[0], deep, GOOD[1], nested, GOOD[2]), window_bytes=window)
        assert found == ["one", "TOO_DEEP", "two", "TOO_DEEP", "three"]


async def test_the_depth_limit_is_exact() -> None:
    levels = limits.MAX_JSON_DEPTH
    fits = '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"
    assert await scanned(export(fits, '{"a":' + fits + "}")) == [json.loads(fits), "TOO_DEEP"]


async def test_ten_thousand_levels_that_never_close_are_a_truncated_item() -> None:
    assert await scanned(b'[{"a":' + b"[" * 10_000) == ["TRUNCATED"]


@pytest.mark.parametrize("window", [1, 16, 1 << 20])
async def test_the_size_limit_is_exact(window: int) -> None:
    fits, over = json.dumps({"a": "x" * 92}), json.dumps({"a": "x" * 93})
    assert len(fits) == 101
    found = await scanned(export(fits, over, fits), window_bytes=window, max_item_bytes=101)
    assert found == [json.loads(fits), "TOO_LARGE", json.loads(fits)]


async def test_a_forty_megabyte_conversation_is_passed_over_without_being_held() -> None:
    source = PatternSource(
        [
            literal(b"[" + GOOD[0].encode() + b', {"id": "huge", "text": "'),
            repeated(b"x", 40 * limits.MIB),
            literal(b'"}, ' + GOOD[1].encode() + b"]"),
        ]
    )
    found = await collect(scan(source, max_item_bytes=2 * limits.MIB))
    assert outcomes(found) == ["one", "TOO_LARGE", "two"]
    assert source.longest <= 2 * limits.MIB + 8
    assert isinstance(found[1], ScannedItem)
    assert found[1].end - found[1].start == 40 * limits.MIB + len('{"id": "huge", "text": ""}')


async def test_a_large_item_of_many_small_values_is_passed_over_in_any_block_size() -> None:
    inner = ",".join(r'{"k": ["\"}", "\\"], "t": "a\\\"]"}' for _ in range(400))
    data = export(GOOD[0], '{"big": [' + inner + "]}", GOOD[1])
    for window in (1, 2, 3, 5, 50, 1 << 20):
        assert await scanned(data, window_bytes=window, max_item_bytes=1000) == ["one", "TOO_LARGE", "two"]


async def test_numbers_that_canonical_json_lacks_are_kept_as_text_and_noted() -> None:
    data = b'[{"n": [NaN, Infinity, -Infinity, 1e400, -1e999]}, {"n": 1e300}]'
    first, second = await collect(scan(BytesSource(data), window_bytes=3))
    assert isinstance(first, ScannedItem)
    assert isinstance(second, ScannedItem)
    assert first.value == {"n": ["NaN", "Infinity", "-Infinity", "1e400", "-1e999"]}
    assert [note.code for note in first.notes] == ["NON_FINITE_NUMBER"]
    assert (second.value, second.notes) == ({"n": 1e300}, ())


async def test_large_whole_numbers_are_exact_and_absurd_ones_an_error() -> None:
    exact, absurd = "9" * 4300, "9" * 4301
    assert await scanned(export(exact, f'{{"n": {absurd}}}', "null")) == [int(exact), "NUMBER_TOO_LONG", None]


async def test_lone_surrogates_are_kept() -> None:
    (found,) = await scanned(rb'[{"id": "\ud83d \ude00 \ud83d\ude00"}]')
    assert found == "\ud83d \ude00 \U0001f600"


async def test_control_characters_within_strings_are_kept() -> None:
    assert await scanned(b'[{"id": "a\tb\nc\x01"}]') == ["a\tb\nc\x01"]


@pytest.mark.parametrize("window", WINDOWS)
async def test_bytes_that_are_not_utf8_are_read_as_windows_1252_and_noted(window: int) -> None:
    data = '[{"id": "Gr\xfc\xdfe \x93ok\x94"}, {"id": "'.encode("latin-1") + 'schön"}]'.encode()
    first, second = await collect(scan(BytesSource(data), window_bytes=window))
    assert isinstance(first, ScannedItem)
    assert isinstance(second, ScannedItem)
    assert (first.value, [note.code for note in first.notes]) == ({"id": "Grüße “ok”"}, ["BAD_ENCODING"])
    assert (second.value, second.notes) == ({"id": "schön"}, ())
    assert data[first.start : first.end].startswith(b'{"id": "Gr\xfc')
    assert data[second.start : second.end].decode() == '{"id": "schön"}'


async def test_surrogates_written_in_utf8s_scheme_are_kept() -> None:
    data = '[{"id": "\ud83d"}]'.encode("utf-8", "surrogatepass")
    assert await scanned(data) == ["\ud83d"]


async def test_a_repeated_key_keeps_its_last_value_and_is_noted() -> None:
    first, second = await collect(scan(BytesSource(b'[{"a": 1, "a": 2}, {"a": "\\":\\":"}]')))
    assert isinstance(first, ScannedItem)
    assert isinstance(second, ScannedItem)
    assert (first.value, [note.code for note in first.notes]) == ({"a": 2}, ["DUPLICATE_KEYS"])
    assert second.notes == ()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "EMPTY_FILE"),
        (b" \n\t ", "EMPTY_FILE"),
        (b"\xef\xbb\xbf", "EMPTY_FILE"),
        (b"<html>", "NOT_JSON"),
        (b'"text"', "NOT_JSON"),
        (b"PK\x05\x06", "NOT_JSON"),
        ('[{"a": 1}]'.encode("utf-16"), "UNSUPPORTED_ENCODING"),
        ('[{"a": 1}]'.encode("utf-16-be"), "UNSUPPORTED_ENCODING"),
        ('[{"a": 1}]'.encode("utf-32"), "UNSUPPORTED_ENCODING"),
    ],
)
async def test_a_file_that_is_no_json_is_refused_as_a_whole(data: bytes, reason: str) -> None:
    with pytest.raises(MempersistError) as caught:
        await collect(scan(BytesSource(data)))
    assert (caught.value.code, caught.value.details) == (Code.PERMANENT_PARSER, {"reason": reason})


async def test_messages_hold_no_text_of_the_item() -> None:
    (item,) = await collect(scan(BytesSource(b'[{"secret": sesame}]')))
    assert isinstance(item, ScannedItem)
    assert item.error is not None
    assert "sesame" not in item.error.message
