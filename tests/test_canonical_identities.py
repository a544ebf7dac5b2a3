"""Promise 9: the same input gives the same bytes and the same ids."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import canonical

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(json_values)
def test_canonical_json_reads_back_as_it_was(value: object) -> None:
    assert canonical.loads(canonical.dumps(value)) == value


@given(st.dictionaries(st.text(), json_values, min_size=2), st.randoms())
def test_key_order_changes_no_byte(value: dict[str, object], random: object) -> None:
    keys = list(value)
    random.shuffle(keys)  # type: ignore[attr-defined]
    assert canonical.dumps({key: value[key] for key in keys}) == canonical.dumps(value)


def test_canonical_json_has_no_spaces_and_is_utf8() -> None:
    assert canonical.dumps({"b": [1, "ü"], "a": None}) == '{"a":null,"b":[1,"ü"]}'.encode()


def test_a_lone_surrogate_survives_as_a_json_escape() -> None:
    data = canonical.dumps({"text": "half \ud83d"})
    assert data == b'{"text":"half \\ud83d"}'
    assert canonical.loads(data) == json.loads(data) == {"text": "half \ud83d"}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical.dumps({"x": value})


def test_an_identity_is_the_hash_of_its_parts_joined_by_a_unit_separator() -> None:
    assert canonical.identity("job", "a", None, "b") == canonical.sha256_hex(b"job\x1fa\x1f\x1fb")


def test_the_same_source_conversation_in_two_accounts_is_two_conversations() -> None:
    assert canonical.conversation_id("owner", "chatgpt", "c1") != canonical.conversation_id("other", "chatgpt", "c1")


@given(st.lists(st.text(), max_size=6), st.integers(0, 6))
def test_a_nodes_digest_can_be_extended_where_it_ended(hashes: list[str], cut: int) -> None:
    whole = canonical.extend_digest("", hashes)
    assert canonical.extend_digest(canonical.extend_digest("", hashes[:cut]), hashes[cut:]) == whole


def test_a_chunk_keeps_its_id_when_a_later_revision_still_has_its_text() -> None:
    ranges = [("n1", 0, 10), ("n2", 0, 4)]
    first = canonical.chunk_id("s", "g", "c", "active", ranges)
    assert first == canonical.chunk_id("s", "g", "c", "active", list(ranges))
    assert first != canonical.chunk_id("s", "g", "c", "active", [("n1", 0, 10), ("n2", 0, 5)])
