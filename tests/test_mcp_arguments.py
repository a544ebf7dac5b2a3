"""Tool arguments: what is taken as meant, what is refused, and in which words. Nothing is ever changed in silence."""

from __future__ import annotations

import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist.errors import Code, MempersistError
from mempersist.mcp import fields, schema
from mempersist.mcp.registry import TOOLS

SCHEMA = fields.arguments(
    ("name",),
    name=fields.text("Name.", minLength=2, maxLength=5),
    count=fields.integer("Count.", 1, 20, 8),
    offset={"type": "integer", "description": "Offset.", "minimum": 0},
    exact=fields.flag("Exact."),
    mode=fields.choice("Mode.", ("all", "any"), "all"),
    id=fields.text("Id.", pattern=fields.UUID_PATTERN),
    tags=fields.listing("Tags.", {"type": "string", "maxLength": 3}, minItems=1, maxItems=2, uniqueItems=True),
    people=fields.listing(
        "People.",
        fields.arguments(("role",), role=fields.text("Role."), age=fields.integer("Age.", 0, 150)),
        maxItems=3,
    ),
)
DEFAULTS = {"count": 8, "exact": False, "mode": "all"}


def check(**arguments: Any) -> Any:
    return schema.arguments(SCHEMA, {"name": "Ada", **arguments})


def problem(**arguments: Any) -> str:
    with pytest.raises(MempersistError) as refused:
        check(**arguments)
    assert refused.value.code is Code.VALIDATION
    return refused.value.message


def test_absent_arguments_get_the_schemas_defaults_and_nothing_else() -> None:
    assert check() == {"name": "Ada", **DEFAULTS}


def test_an_optional_null_is_absent_at_every_depth() -> None:
    assert check(count=None, id=None, tags=None, people=None) == check()
    assert check(people=[{"role": "x", "age": None}])["people"] == [{"role": "x"}]


def test_a_required_null_is_an_error_at_every_depth() -> None:
    assert problem(name=None) == "name: is required; null counts as absent"
    assert problem(people=[{"role": "x"}, {"role": None}]).startswith("people[1].role: is required")


def test_a_null_among_the_items_of_a_list_is_an_error() -> None:
    assert problem(tags=["a", None]) == "tags[1]: is null; leave the item out instead"


@pytest.mark.parametrize("value", [12, 12.0, "12"])
def test_whole_numbers_are_taken_however_they_are_written(value: Any) -> None:
    taken = check(count=value)["count"]
    assert taken == 12
    assert type(taken) is int


@pytest.mark.parametrize(
    "value", ["12px", "1.0", " 12", "12 ", "+12", "012", "1e1", "0x0c", "١٢", "", 12.5, True, [12], {"n": 12}]
)
def test_what_is_not_exactly_a_whole_number_is_refused(value: Any) -> None:
    assert problem(count=value).startswith("count: must be a whole number, not ")


def test_whole_numbers_as_text_are_taken_inside_lists_of_objects_too() -> None:
    assert check(people=[{"role": "x", "age": "36"}])["people"] == [{"role": "x", "age": 36}]


@pytest.mark.parametrize(("value", "meant"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_booleans_are_taken_as_text(value: Any, meant: bool) -> None:
    assert check(exact=value)["exact"] is meant


@pytest.mark.parametrize("value", ["True", "TRUE", "yes", "1", "", 1, 0, 1.0, []])
def test_nothing_else_is_a_boolean(value: Any) -> None:
    assert problem(exact=value).startswith("exact: must be true or false, not ")


def test_numbers_are_not_taken_for_text() -> None:
    assert problem(name=2026) == "name: must be text, not 2026"
    assert problem(name=True) == "name: must be text, not true"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"count": 0}, "count: must be from 1 to 20, not 0"),
        ({"count": 21}, "count: must be from 1 to 20, not 21"),
        ({"count": "21"}, "count: must be from 1 to 20, not 21"),
        ({"count": 10**60}, "count: must be from 1 to 20, not a very large number"),
        ({"offset": -1}, "offset: must be at least 0, not -1"),
        ({"name": "A"}, "name: has 1 characters; at least 2 are needed"),
        ({"name": "A" * 6}, "name: has 6 characters; at most 5 are allowed, shorten or split it"),
        ({"name": ["Ada"]}, "name: must be text, not a list"),
        ({"mode": "some"}, "mode: must be one of all, any; it is 'some'"),
        ({"id": "42"}, "id: must be a UUID in lower case, not '42'"),
        ({"tags": []}, "tags: has 0 items; at least 1 are needed"),
        ({"tags": ["a", "b", "c"]}, "tags: has 3 items; at most 2 are allowed, use several calls for more"),
        ({"tags": ["a", "a"]}, "tags[1]: repeats tags[0]; name each only once"),
        ({"tags": ["a", "long"]}, "tags[1]: has 4 characters; at most 3 are allowed, shorten or split it"),
        ({"tags": "a,b"}, "tags: must be a list, not 'a,b'"),
        ({"people": ["x"]}, "people[0]: must be an object, not 'x'"),
        ({"people": [{"role": "x", "years": 3}]}, "people[0].years: is not an argument here; these are: role, age"),
    ],
)
def test_a_refusal_names_the_argument_the_bound_and_the_way_out(arguments: dict[str, Any], words: str) -> None:
    assert problem(**arguments) == words


def test_an_unknown_argument_is_refused_with_the_known_ones() -> None:
    assert problem(nmae=1).startswith("nmae: is not an argument here; these are: name, count")


def test_a_refusal_never_repeats_a_long_text() -> None:
    secret = "s" * 40
    for words in (problem(id=secret), problem(mode=secret), problem(count=secret), problem(people=secret)):
        assert "ss" not in words
        assert "text of 40 characters" in words
    assert len(problem(**{"x" * 100_000: 1})) < 300


def test_a_pattern_holds_to_the_very_end_of_the_text() -> None:
    uuid = "0f0e0d0c-0b0a-4908-8706-050403020100"
    assert check(id=uuid)["id"] == uuid
    for near in (uuid + "\n", uuid + "0", " " + uuid, uuid.upper()):
        assert problem(id=near).startswith("id: must be a UUID")


@pytest.mark.parametrize("arguments", [[], "x", 7, True])
def test_arguments_are_an_object(arguments: Any) -> None:
    with pytest.raises(MempersistError, match="arguments: must be an object"):
        schema.arguments(SCHEMA, arguments)


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert schema.arguments(fields.arguments(), None) == {}


# ------------------------------------------------------------------ against a full validator

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["all", "any", "Ada", "12", "true", "0f0e0d0c-0b0a-4908-8706-050403020100"])
    | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["role", "age", "text", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
CALLS = st.dictionaries(st.sampled_from([*SCHEMA["properties"], "unknown"]), JSON, max_size=6)


def outcome(rules: schema.Schema, arguments: Any) -> tuple[Any, MempersistError | None]:
    try:
        return schema.arguments(rules, arguments), None
    except MempersistError as error:
        return None, error


@given(CALLS)
def test_what_is_taken_conforms_to_the_schema_and_what_conforms_is_taken(arguments: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(SCHEMA)
    taken, refusal = outcome(SCHEMA, arguments)
    if refusal is not None:
        assert not validator.is_valid(arguments)
        assert len(refusal.message) < 400
    else:
        validator.validate(taken)
        if validator.is_valid(arguments):
            assert json.loads(json.dumps(taken)) == {**DEFAULTS, **arguments}


@given(st.sampled_from(TOOLS), JSON)
def test_no_arguments_whatever_raise_anything_but_a_refusal(tool: Any, value: Any) -> None:
    for name in tool.input_schema["properties"]:
        _, refusal = outcome(tool.input_schema, {name: value})
        assert refusal is None or refusal.code is Code.VALIDATION
