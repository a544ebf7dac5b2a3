"""Accounts by proven mail address: whose an address is, and who may have an account at all."""

from __future__ import annotations

import contextlib
import hashlib
from typing import Final

from mempersist import timestamps
from mempersist.archive import accounts, codec, keys
from mempersist.archive.model import OWNER, AccountEntry, JsonObject
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, Ports, PreconditionFailed
from mempersist.service import Settings

_MAX_LIVES: Final = 100


async def is_welcome(ports: Ports, settings: Settings, address: str) -> bool:
    """Whether a mail to this address may sign in: it is the owner's, has an account, or may make one."""
    found = await _existing(ports, address)
    return address == settings.owner_address or found is not None or may_sign_up(settings, address)


def may_sign_up(settings: Settings, address: str) -> bool:
    """Whether ``settings.sign_up`` names the address or, as ``@example.org``, its domain."""
    return address in settings.sign_up or "@" + address.rpartition("@")[2] in settings.sign_up


async def account_of(ports: Ports, settings: Settings, address: str) -> AccountId | None:
    """The account of a proven address, written into its log now if it is new; None where none may be made."""
    if address == settings.owner_address:
        return OWNER
    found = await _existing(ports, address)
    if found is not None or not may_sign_up(settings, address):
        return found
    return await _create(ports, address)


async def _existing(ports: Ports, address: str) -> AccountId | None:
    rows = await ports.catalog.query("SELECT account_id FROM accounts WHERE email = ?", (address,))
    return AccountId(rows[0]["account_id"]) if rows else None


async def _create(ports: Ports, address: str) -> AccountId:
    """The id follows from the address, so that of two first sign-ins at once one makes the account and both have it.

    An address whose account was deleted gets the next id: what was deleted stays deleted.
    """
    for life in range(_MAX_LIVES):
        account = AccountId(hashlib.sha256(f"account\0{life}\0{address}".encode()).hexdigest()[:32])
        values: JsonObject = {"email": address, "defaultNamespace": accounts.DEFAULT_NAMESPACE}
        entry = AccountEntry(account, 0, "create", values, timestamps.from_ms(ports.clock.now_ms()), None)
        with contextlib.suppress(PreconditionFailed):
            await ports.objects.put(keys.account_log(account, 0), codec.encode_account_entry(entry), if_absent=True)
        written = await accounts.log(ports.objects, account)
        if written[-1][0].operation != "delete":
            await accounts.catch_up(ports, account)
            return account
    raise MempersistError(Code.VALIDATION, "this address had too many accounts")
