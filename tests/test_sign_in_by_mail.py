"""Signing in takes both the mail and the browser that asked for it; link and code work once."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import httpx
import pytest

from mempersist_ops.stores.memory.mailer import MemoryMailer
from tests.rigs.http import SETTINGS, Door, door
from tests.rigs.worlds import World, memory_world

ALLOWED = replace(SETTINGS, owner_address="owner@example.org", sign_up=("ada@example.org", "@example.net"))
CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def _csrf(answer: httpx.Response) -> str:
    found = CSRF.search(answer.text)
    assert found, answer.text
    return found[1]


def _mails(world: World) -> list[str]:
    assert isinstance(world.ports.mailer, MemoryMailer)
    return [mail.text for mail in world.ports.mailer.sent]


def _link(text: str) -> str:
    return text.split("token=")[1].split("\n", maxsplit=1)[0]


def _code(text: str) -> str:
    return text.split("browser instead: ")[1].split("\n", maxsplit=1)[0]


async def _ask(client: httpx.AsyncClient, address: str, return_to: str = "/tokens") -> httpx.Response:
    form = await client.get("/sign-in", params={"return_to": return_to})
    given = {"csrf": _csrf(form), "email": address, "return_to": return_to}
    return await client.post("/sign-in", data=given)


async def _open(at: Door, address: str = "ada@example.org") -> tuple[str, dict[str, str]]:
    """The newest link after asking, and the form that its page holds."""
    await _ask(at.client, address)
    link = _link(_mails(at.world)[-1])
    shown = await at.client.get("/sign-in/link", params={"token": link})
    return link, {"csrf": _csrf(shown), "token": link}


async def test_looking_at_a_link_changes_nothing_and_posting_it_signs_in_once() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        link, form = await _open(at)
        await at.client.head("/sign-in/link", params={"token": link})
        shown = await at.client.get("/sign-in/link", params={"token": link})
        assert "ada@example.org" in shown.text
        signed = await at.client.post("/sign-in/link", data=form)
        assert (signed.status_code, signed.headers["location"]) == (303, "/tokens")
        assert "Signed in" in (await at.client.get("/sign-in")).text
        assert (await at.client.post("/sign-in/link", data=form)).status_code == 400


async def test_two_clicks_at_once_make_one_session() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        _, form = await _open(at)
        answers = await asyncio.gather(*(at.client.post("/sign-in/link", data=form) for _ in range(2)))
        assert sorted(answer.status_code for answer in answers) == [303, 400]
        assert len(await at.world.ports.catalog.query("SELECT 1 FROM sessions")) == 1


async def test_another_browser_is_neither_signed_in_nor_told_whose_link_it_is() -> None:
    world = await memory_world()
    async with door(world, settings=ALLOWED, token=None) as at, door(world, settings=ALLOWED, token=None) as other:
        link, form = await _open(at)
        foreign = _csrf(await other.client.get("/sign-in"))
        shown = await other.client.get("/sign-in/link", params={"token": link})
        assert "ada@example.org" not in shown.text
        for given in ({**form, "csrf": foreign}, form, {"token": link}):
            assert (await other.client.post("/sign-in/link", data=given)).status_code in {400, 403}
        assert (await at.client.post("/sign-in/link", data=form)).status_code == 303


async def test_the_code_of_the_mail_signs_the_asking_browser_in() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        asked = await _ask(at.client, "ada@example.org")
        code = _code(_mails(at.world)[-1])
        given = {"csrf": _csrf(asked), "code": f" {code.lower()} "}
        assert (await at.client.post("/sign-in/code", data=given)).status_code == 303


async def test_five_wrong_codes_end_the_code() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        csrf = _csrf(await _ask(at.client, "ada@example.org"))
        for _ in range(5):
            assert (await at.client.post("/sign-in/code", data={"csrf": csrf, "code": "0"})).status_code == 400
        right = {"csrf": csrf, "code": _code(_mails(at.world)[-1])}
        assert (await at.client.post("/sign-in/code", data=right)).status_code == 400


async def test_of_two_links_only_the_newest_works() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        await _ask(at.client, "ada@example.org")
        first = _link(_mails(at.world)[0])
        _, form = await _open(at)
        assert (await at.client.post("/sign-in/link", data={**form, "token": first})).status_code == 400
        assert (await at.client.post("/sign-in/link", data=form)).status_code == 303


async def test_a_link_ends_after_fifteen_minutes() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        _, form = await _open(at)
        at.world.clock.advance(15 * 60 * 1000)
        assert (await at.client.post("/sign-in/link", data=form)).status_code == 400


async def test_known_unknown_and_limited_addresses_get_one_answer() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        answers = [await _ask(at.client, "stranger@example.com")]
        assert _mails(at.world) == []
        answers += [await _ask(at.client, "ada@example.org") for _ in range(6)]
        assert len(_mails(at.world)) == 5
        assert {(answer.status_code, CSRF.sub("", answer.text)) for answer in answers} == {
            (200, CSRF.sub("", answers[0].text))
        }


async def test_an_account_is_made_at_the_proof_and_the_owners_address_is_the_owner() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        _, form = await _open(at, "New@Example.net ")
        accounts = "SELECT account_id, email FROM accounts ORDER BY email"
        assert len(await at.world.ports.catalog.query(accounts)) == 1
        await at.client.post("/sign-in/link", data=form)
        assert [row["email"] for row in await at.world.ports.catalog.query(accounts)] == [None, "new@example.net"]
        at.client.cookies.clear()
        _, form = await _open(at, "owner@example.org")
        await at.client.post("/sign-in/link", data=form)
        sessions = await at.world.ports.catalog.query("SELECT account_id FROM sessions")
        assert "owner" in {row["account_id"] for row in sessions}
        assert len(await at.world.ports.catalog.query(accounts)) == 2


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "/a\r\nb: c"])
async def test_nobody_is_sent_elsewhere_after_signing_in(target: str) -> None:
    async with door(settings=ALLOWED, token=None) as at:
        await _ask(at.client, "ada@example.org", target)
        link = _link(_mails(at.world)[-1])
        form = {"csrf": _csrf(await at.client.get("/sign-in/link", params={"token": link})), "token": link}
        assert (await at.client.post("/sign-in/link", data=form)).headers["location"] == "/sign-in"


async def test_forms_without_their_token_change_nothing() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        _, form = await _open(at)
        for path in ("/sign-in", "/sign-in/link", "/sign-in/code", "/sign-out", "/tokens", "/tokens/revoke"):
            given = {**form, "email": "ada@example.org", "csrf": "x"}
            assert (await at.client.post(path, data=given)).status_code == 403
        assert (await at.client.post("/sign-in/link", data=form)).status_code == 303


async def test_signing_out_ends_the_session_for_good() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        _, form = await _open(at)
        await at.client.post("/sign-in/link", data=form)
        kept = dict(at.client.cookies)
        csrf = _csrf(await at.client.get("/sign-in"))
        assert (await at.client.post("/sign-out", data={"csrf": csrf})).status_code == 303
        at.client.cookies.update(kept)
        assert "Signed in" not in (await at.client.get("/sign-in")).text


async def test_pages_are_strict_and_cookies_are_bound_to_the_host() -> None:
    async with door(settings=replace(ALLOWED, public_url="https://memory.example"), token=None) as at:
        answer = await at.client.get("/sign-in")
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("__Host-")
    assert {"Path=/", "HttpOnly", "Secure", "SameSite=Lax"} <= set(cookie.split("; "))
    assert "form-action 'self'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["x-frame-options"] == "DENY"


async def test_no_secret_is_kept_in_clear() -> None:
    async with door(settings=ALLOWED, token=None) as at:
        link, form = await _open(at)
        code = _code(_mails(at.world)[-1]).replace("-", "")
        stored = [await at.world.ports.catalog.query("SELECT * FROM sign_in_challenges")]
        await at.client.post("/sign-in/link", data=form)
        stored.append(await at.world.ports.catalog.query("SELECT * FROM sessions"))
        secrets = [link, code, *at.client.cookies.values()]
        assert not [secret for secret in secrets if secret in repr(stored)]
