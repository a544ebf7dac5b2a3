"""Personal access tokens: shown once, kept as a hash, scoped, expiring, revocable, each account's own."""

from __future__ import annotations

from typing import Any

import pytest

from mempersist.accounts import tokens
from mempersist.accounts.principal import READ, WRITE
from mempersist.errors import MempersistError
from mempersist.ports import AccountId
from tests.rigs.hosts import is_worker
from tests.rigs.http import Door, door

EVERY_HOST = True


async def _made(at: Door, **fields: Any) -> dict[str, Any]:
    answer = await at.client.post("/api/tokens", json={"name": "script", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


def _bearer(made: dict[str, Any]) -> dict[str, str]:
    return {"Authorization": f"Bearer {made['token']}"}


async def test_a_token_works_until_it_is_revoked() -> None:
    async with door() as at:
        made = await _made(at)
        assert made["token"].startswith("mps_")
        assert (await at.client.get("/api/stats", headers=_bearer(made))).status_code == 200
        listed = (await at.client.get("/api/tokens")).json()["tokens"]
        assert [(token["id"], token["lastUsedAt"] is not None) for token in listed] == [(made["id"], True)]
        assert (await at.client.delete(f"/api/tokens/{made['id']}")).status_code == 200
        assert (await at.client.get("/api/stats", headers=_bearer(made))).status_code == 401
        assert (await at.client.delete(f"/api/tokens/{made['id']}")).status_code == 404


async def test_a_token_is_told_once_and_kept_as_a_hash() -> None:
    async with door() as at:
        secret = (await _made(at))["token"]
        assert secret not in (await at.client.get("/api/tokens")).text
        assert secret not in repr(await at.world.ports.catalog.query("SELECT * FROM personal_tokens"))


async def test_a_token_does_what_its_scopes_allow() -> None:
    message = {"title": "t", "messages": [{"role": "user", "content": "x"}]}
    async with door() as at:
        reader, writer = await _made(at), await _made(at, scopes=[READ, WRITE])
        assert (await at.client.post("/api/memories", json=message, headers=_bearer(reader))).status_code == 403
        assert (await at.client.post("/api/memories", json=message, headers=_bearer(writer))).status_code in {200, 201}


async def test_a_token_ends_by_itself() -> None:
    async with door() as at:
        made = await _made(at, expires_in_days=1)
        at.world.clock.advance(24 * 3600 * 1000)
        assert (await at.client.get("/api/stats", headers=_bearer(made))).status_code == 401


async def test_a_token_makes_no_tokens() -> None:
    async with door() as at:
        made = await _made(at, scopes=[READ, WRITE])
        for method, path in (("GET", "/api/tokens"), ("POST", "/api/tokens"), ("DELETE", f"/api/tokens/{made['id']}")):
            answer = await at.client.request(method, path, json={"name": "more"}, headers=_bearer(made))
            assert answer.status_code == 403


@pytest.mark.parametrize(
    "fields",
    [
        {"name": " "},
        {"name": "x" * 101},
        {"scopes": []},
        {"scopes": ["admin"]},
        {"expires_in_days": 0},
        {"expires_in_days": 366},
        {"expires_in_days": True},
        {"account": "other"},
    ],
)
async def test_bad_fields_are_refused(fields: dict[str, Any]) -> None:
    async with door() as at:
        assert (await at.client.post("/api/tokens", json={"name": "script", **fields})).status_code == 400


@pytest.mark.in_process
async def test_another_accounts_token_is_as_if_it_did_not_exist() -> None:
    async with door() as at:
        assert not is_worker(at.world.ports)
        foreign = await tokens.create(at.world.ports, AccountId("other"), name="theirs", scopes=[READ])
        assert (await at.client.get("/api/tokens")).json()["tokens"] == []
        theirs = await at.client.delete(f"/api/tokens/{foreign.info.token_id}")
        nobodys = await at.client.delete("/api/tokens/00000000-0000-4000-8000-000000000000")
        assert (theirs.status_code, theirs.json()) == (nobodys.status_code, nobodys.json())
        assert await tokens.principal_of(at.world.ports, foreign.token) is not None


@pytest.mark.in_process
async def test_an_account_has_at_most_fifty_tokens() -> None:
    async with door() as at:
        for _ in range(tokens.MAX_TOKENS):
            await tokens.create(at.world.ports, AccountId("owner"), name="one", scopes=[READ])
        with pytest.raises(MempersistError, match="50"):
            await tokens.create(at.world.ports, AccountId("owner"), name="one more", scopes=[READ])
