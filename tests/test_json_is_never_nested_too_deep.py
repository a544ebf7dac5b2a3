"""Text that would overflow a parser's stack is refused unparsed: in WebAssembly it would end the isolate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import nesting
from mempersist.limits import MAX_JSON_DEPTH
from tests.rigs.http import door

EVERY_HOST = True

values = st.recursive(
    st.none() | st.integers() | st.text(st.characters(codec=None)) | st.sampled_from(['"', "\\", "[{", "\\]", '"}']),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=30,
)


def depth_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth_of, value), default=0)
    return 0


@pytest.mark.in_process
@given(values, values, st.booleans())
def test_the_depth_is_that_of_the_first_value(first: Any, second: Any, ascii_only: bool) -> None:
    text = json.dumps(first, ensure_ascii=ascii_only) + " " + json.dumps(second)
    depth = depth_of(first)
    if depth:
        assert not nesting.nested_deeper(text, depth)
        assert nesting.nested_deeper(text, depth - 1)
        assert nesting.excess("[1, " + text, start=4, levels=depth, containers=10_000) is None


def containers_of(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + sum(map(containers_of, value.values()))
    return 1 + sum(map(containers_of, value)) if isinstance(value, list) else 0


@pytest.mark.in_process
@given(values, values)
def test_the_objects_and_lists_are_those_of_the_first_value(first: Any, second: Any) -> None:
    text = json.dumps(first) + " " + json.dumps(second)
    count = containers_of(first)
    if count:
        assert nesting.excess(text, levels=100, containers=count) is None
        assert nesting.excess(text, levels=100, containers=count - 1) == "containers"


@pytest.mark.in_process
@given(st.text(st.sampled_from('[]{}"\\,: a\ud800é'), max_size=60), st.integers(1, 3))
def test_any_text_has_an_answer(text: str, limit: int) -> None:
    assert nesting.nested_deeper(text, limit) in {True, False}


@pytest.mark.in_process
@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":[', '["]]]]",'])
def test_a_value_that_never_ends_is_too_deep(opening: str) -> None:
    assert nesting.nested_deeper(opening * 100_000)


@pytest.mark.in_process
@pytest.mark.parametrize("scalar", ["null", "1", '"["', "tru"])
def test_what_follows_a_value_without_brackets_is_not_its_own(scalar: str) -> None:
    assert not nesting.nested_deeper(f"{scalar}, {'[' * 10_000}")


@pytest.mark.in_process
def test_brackets_in_texts_and_beside_each_other_do_not_count() -> None:
    assert nesting.loads(json.dumps(["[" * 10_000])) == ["[" * 10_000]
    assert nesting.loads(json.dumps([[]] * 10_000)) == [[]] * 10_000


async def test_a_body_nested_without_end_is_refused_and_the_service_goes_on() -> None:
    async with door() as at:
        for path in ("/api/memories", "/mcp", "/api/imports/multipart"):
            for body in (b"[" * 60_000, b'{"a":' * 12_000, b"[" * 500_000):
                answer = await at.client.post(path, content=body)
                assert answer.status_code in {400, 413}
        assert (await at.client.get("/readyz")).status_code == 200


async def test_a_body_as_deep_as_is_allowed_is_read() -> None:
    body = {"title": "T", "messages": [{"role": "user", "content": "x"}], "odd": 0}
    deep = json.dumps(body).replace("0}", "[" * (MAX_JSON_DEPTH - 1) + "]" * (MAX_JSON_DEPTH - 1) + "}")
    async with door() as at:
        answer = await at.client.post("/api/memories", content=deep)
    assert (answer.status_code, answer.json()["error"]["field"]) == (400, "odd")
