"""A cursor that holds pins cannot be made, changed, kept or lent: every failure is the same ``Invalid cursor``."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import cursors, sealing
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId
from tests.rigs import writes
from tests.rigs.mcp import CURSOR_KEYS, Client, client, principal
from tests.rigs.worlds import World, memory_world

NEW, OLD = ("new", b"n" * 32), ("old", b"o" * 32)
REFUSAL = "cursor: Invalid cursor; start again without one"
NOW = 1_800_000_000_000
QUARTER = sealing.LIFETIME_SECONDS * 1000


async def begun(world: World, at: Client) -> str:
    """The cursor of a batch that has more to read."""
    written = await writes.store(world.ports, *("x" * 3000 for _ in range(3)))
    answer = await at.answer(
        "memory_get_conversations",
        requests=[{"conversation_id": written.conversation_id}],
        max_serialized_bytes=4096,
    )
    assert answer["nextCursor"]
    return str(answer["nextCursor"])


async def refusal(at: Client, cursor: str) -> tuple[str, str]:
    error = await at.refused("memory_get_conversations", cursor=cursor)
    return error["code"], error["message"]


# ------------------------------------------------------------------ through the tool


async def test_a_cursor_of_another_account_is_invalid_even_with_the_same_keys() -> None:
    world = await memory_world()
    cursor = await begun(world, await client(world.ports))
    stranger = await client(world.ports, principal(account="stranger"))
    assert await refusal(stranger, cursor) == ("VALIDATION", REFUSAL)


async def test_a_cursor_lives_for_fifteen_minutes() -> None:
    world = await memory_world()
    at = await client(world.ports)
    cursor = await begun(world, at)
    world.clock.advance(QUARTER - 1000)
    assert (await at.answer("memory_get_conversations", cursor=cursor))["results"]
    world.clock.advance(1000)
    assert await refusal(at, cursor) == ("VALIDATION", REFUSAL)


async def test_keys_can_be_rotated_while_cursors_are_out() -> None:
    world = await memory_world()
    cursor = await begun(world, await client(world.ports, cursor_keys=(OLD,)))
    both = await client(world.ports, cursor_keys=(NEW, OLD))
    following = (await both.answer("memory_get_conversations", cursor=cursor))["nextCursor"]
    only_new = await client(world.ports, cursor_keys=(NEW,))
    assert (await only_new.answer("memory_get_conversations", cursor=following))["results"]
    assert await refusal(only_new, cursor) == ("VALIDATION", REFUSAL)


async def test_a_key_of_the_same_id_with_another_secret_verifies_nothing() -> None:
    world = await memory_world()
    cursor = await begun(world, await client(world.ports, cursor_keys=(OLD,)))
    other = await client(world.ports, cursor_keys=(("old", b"x" * 32),))
    assert await refusal(other, cursor) == ("VALIDATION", REFUSAL)


async def test_a_server_without_keys_answers_what_needs_no_cursor_and_says_what_is_missing() -> None:
    world = await memory_world()
    at = await client(world.ports, cursor_keys=())
    written = await writes.store(world.ports, "small")
    requests = [{"conversation_id": written.conversation_id}]
    assert (await at.answer("memory_get_conversations", requests=requests))["nextCursor"] is None
    with pytest.raises(AssertionError, match="no cursor keys"):
        await begun(world, at)


@pytest.mark.parametrize(
    "cursor", ["x", "AAAA", "é", "=", "a b", "A" * 16_384, cursors.encode("conversations", ("a",))]
)
async def test_what_is_no_cursor_at_all_is_invalid(cursor: str) -> None:
    assert await refusal(await client(), cursor) == ("VALIDATION", REFUSAL)


async def test_nothing_is_read_before_a_cursor_is_verified() -> None:
    world = await memory_world()
    cursor = await begun(world, await client(world.ports))
    other = await client(world.ports, cursor_keys=(NEW,))
    await world.ports.objects.delete([info.key for info in (await world.ports.objects.list("canonical/")).objects])
    assert await refusal(other, cursor) == ("VALIDATION", REFUSAL)


async def test_a_cursor_names_neither_account_nor_key() -> None:
    world = await memory_world()
    cursor = await begun(world, await client(world.ports))
    data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    assert OWNER.encode() not in data
    assert CURSOR_KEYS[0][0].encode() not in data
    assert CURSOR_KEYS[0][1] not in data


# ------------------------------------------------------------------ the seal itself


@given(st.binary(max_size=200), st.sampled_from([(NEW,), (NEW, OLD)]))
def test_what_was_sealed_comes_back(body: bytes, keys: Any) -> None:
    cursor = sealing.seal(keys, "kind", OWNER, body, NOW)
    assert len(cursor) == sealing.sealed_length(len(body))
    assert sealing.unseal((OLD, NEW), "kind", OWNER, cursor, NOW + QUARTER - 1000) == body


@given(st.binary(min_size=1, max_size=60), st.data())
def test_no_byte_of_it_can_be_changed(body: bytes, data: st.DataObject) -> None:
    cursor = sealing.seal((NEW,), "kind", OWNER, body, NOW)
    raw = bytearray(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= data.draw(st.integers(1, 255))
    with pytest.raises(MempersistError, match="Invalid cursor"):
        sealing.unseal((NEW,), "kind", OWNER, base64.urlsafe_b64encode(raw).decode().rstrip("="), NOW)


@pytest.mark.parametrize(
    "use",
    [
        lambda cursor: sealing.unseal((NEW,), "other kind", OWNER, cursor, NOW),
        lambda cursor: sealing.unseal((NEW,), "kind", AccountId("other"), cursor, NOW),
        lambda cursor: sealing.unseal((NEW,), "kind\x1fowner", AccountId(""), cursor, NOW),
        lambda cursor: sealing.unseal((OLD,), "kind", OWNER, cursor, NOW),
        lambda cursor: sealing.unseal((), "kind", OWNER, cursor, NOW),
        lambda cursor: sealing.unseal((NEW,), "kind", OWNER, cursor, NOW + QUARTER),
        lambda cursor: sealing.unseal((NEW,), "kind", OWNER, cursor[:-1], NOW),
        lambda cursor: sealing.unseal((NEW,), "kind", OWNER, cursor + "A", NOW),
        lambda cursor: sealing.unseal((NEW,), "kind", OWNER, "", NOW),
    ],
)
def test_any_other_use_is_the_same_refusal(use: Callable[[str], bytes]) -> None:
    cursor = sealing.seal((NEW,), "kind", OWNER, b"body", NOW)
    with pytest.raises(MempersistError) as caught:
        use(cursor)
    assert (caught.value.code, caught.value.message) == (Code.VALIDATION, REFUSAL)


@given(st.text(max_size=100))
def test_no_text_is_a_cursor_by_chance(text: str) -> None:
    with pytest.raises(MempersistError, match="Invalid cursor"):
        sealing.unseal((NEW,), "kind", OWNER, text, NOW)


# ------------------------------------------------------------------ configuration


def test_keys_are_pairs_of_id_and_hexadecimal_secret() -> None:
    assert sealing.parse_keys("") == ()
    text = f"b:{'62' * 32}\n  a:{'61' * 33}\n"
    assert sealing.parse_keys(text) == (("b", b"b" * 32), ("a", b"a" * 33))


@pytest.mark.parametrize(
    "text", ["a", "a:", f":{'61' * 32}", f"a:{'61' * 31}", f"a:{'6g' * 32}", f"a:{'61' * 32} a:{'62' * 32}", "é:é"]
)
def test_anything_else_is_refused_without_showing_it(text: str) -> None:
    with pytest.raises(MempersistError, match="cursor keys: each is a new id") as caught:
        sealing.parse_keys(text)
    assert "61" * 10 not in caught.value.message


def test_no_server_signs_without_a_key() -> None:
    with pytest.raises(MempersistError, match="operator has to set them"):
        sealing.seal((), "kind", OWNER, b"", NOW)


def test_the_length_of_the_largest_batch_is_within_the_bound() -> None:
    assert sealing.sealed_length(19 + 20 * 71) < 2100
