"""Requests and routes as values: what a path, a query string and a body are taken to be."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mempersist.errors import Code, MempersistError
from mempersist.web.http import Request, Response, query_values, read_body, segments_of
from mempersist.web.router import Context, Match, Route, find


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def handler(_: Context) -> Response:
    return Response(200)


ROUTES = (
    Route("GET", "/api/things", handler),
    Route("POST", "/api/things", handler),
    Route("GET", "/api/things/:id", handler),
    Route("*", "/everything", handler),
)


def test_an_encoded_slash_does_not_split_a_segment() -> None:
    assert segments_of("/api/things/a%2Fb") == ("api", "things", "a/b")


def test_a_route_takes_its_variables_decoded() -> None:
    found = find(ROUTES, Request("GET", "/api/things/a%20b"))
    assert isinstance(found, Match)
    assert found.params == {"id": "a b"}


def test_an_unknown_path_is_not_found() -> None:
    found = find(ROUTES, Request("GET", "/api/nothing"))
    assert isinstance(found, Response)
    assert (found.status, found.code) == (404, "NOT_FOUND")


def test_an_empty_variable_is_no_match() -> None:
    found = find(ROUTES, Request("GET", "/api/things/"))
    assert isinstance(found, Response)
    assert found.status == 404


def test_a_wrong_method_is_told_which_ones_there_are() -> None:
    found = find(ROUTES, Request("DELETE", "/api/things"))
    assert isinstance(found, Response)
    assert (found.status, found.headers["Allow"]) == (405, "GET, HEAD, POST")


def test_head_is_answered_by_get() -> None:
    assert isinstance(find(ROUTES, Request("HEAD", "/api/things")), Match)


def test_a_route_for_every_method_takes_every_method() -> None:
    assert isinstance(find(ROUTES, Request("PROPFIND", "/everything")), Match)


def test_query_parameters_become_arguments_under_the_arguments_names() -> None:
    values = query_values("q=%C3%A4+b&tags=x&tags=y", single={"q": "query"}, repeated={"tags": "tags"})
    assert values == {"query": "ä b", "tags": ["x", "y"]}


def test_an_empty_parameter_is_kept_for_the_validation_to_judge() -> None:
    assert query_values("q=", single={"q": "query"}, repeated={}) == {"query": ""}


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("limitt=3", "unknown parameter 'limitt'; this route takes: q, tags"),
        ("q=a&q=b", "q: is given more than once"),
        ("q=%FF", "must be UTF-8"),
        ("&".join(["tags=a"] * 65), "at most 64 parameters"),
    ],
)
def test_a_query_string_that_is_not_understood_is_refused(query: str, problem: str) -> None:
    with pytest.raises(MempersistError, match=problem) as caught:
        query_values(query, single={"q": "query"}, repeated={"tags": "tags"})
    assert caught.value.code is Code.VALIDATION


async def test_a_body_at_the_limit_is_read_and_one_byte_more_is_refused() -> None:
    assert await read_body(Request("POST", "/", body=chunks(b"abc", b"de")), 5) == b"abcde"
    with pytest.raises(MempersistError) as caught:
        await read_body(Request("POST", "/", body=chunks(b"abc", b"def")), 5)
    assert caught.value.as_json()["request_bytes"] == 6
    assert caught.value.status == 413


async def test_a_body_declared_too_large_is_refused_unread() -> None:
    read = []

    async def body() -> AsyncIterator[bytes]:
        read.append(1)
        yield b"x"

    with pytest.raises(MempersistError) as caught:
        await read_body(Request("POST", "/", headers={"content-length": "6"}, body=body()), 5)
    assert caught.value.as_json()["request_bytes"] == 6
    assert read == []


@pytest.mark.parametrize(("declared", "length"), [("12", 12), ("", None), ("-1", None), ("1e3", None), ("١٢", None)])
def test_only_digits_are_a_length(declared: str, length: int | None) -> None:
    assert Request("POST", "/", headers={"content-length": declared}).content_length == length
