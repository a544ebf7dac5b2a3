"""Sign-in by mail: a link for the browser that asked, and a code to type there when the mail is read elsewhere.

Whoever reads the mail proves the address; whoever holds the cookie is the browser that asked. Only both together sign
in, so a click in a mail that a stranger caused, or a scanner that follows links, opens nothing.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from mempersist import logs
from mempersist.accounts import by_address
from mempersist.accounts.sessions import digest
from mempersist.ports import AccountId, Mail, Mailer, MailUnavailable, Ports, Statement
from mempersist.rules.mail import check_mail
from mempersist.service import Settings

LINK_SECONDS: Final = 15 * 60
CODE_TRIES: Final = 5
CODE_CHARS: Final = 8
MAX_RETURN_CHARS: Final = 2000
ADDRESS_LIMIT: Final = (5, 15 * 60)
"""Requests in a window of seconds, for one address; the next two for one network and for all together."""
NETWORK_LIMIT: Final = (20, 3600)
TOTAL_LIMIT: Final = (1000, 3600)
_NETWORK_GROUPS: Final = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """``browser`` is the new value of the asking browser's cookie; ``deliver`` sends the mail, if there is one to
    send, and is to be awaited once the answer is out, so that its time tells nothing."""

    browser: str
    deliver: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Proven:
    """An address whose owner sits at this browser, and where they wanted to go."""

    address: str
    return_to: str


def normalise(address: str) -> str | None:
    """The one form of a mail address (trimmed, NFKC, lower case); None for what is none."""
    plain = unicodedata.normalize("NFKC", address.strip()).lower()
    try:
        check_mail(Mail(plain, "-", "-"))
    except ValueError:
        return None
    return plain


def local_path(target: str | None) -> str:
    """``target`` if it is a path on this server, else the sign-in page: nobody is sent elsewhere."""
    if (
        not target
        or len(target) > MAX_RETURN_CHARS
        or not target.startswith("/")
        or target.startswith("//")
        or "\\" in target
        or not (target.isascii() and target.isprintable() and " " not in target)
    ):
        return "/sign-in"
    return target


async def ask(ports: Ports, settings: Settings, address: str, client: str | None, return_to: str) -> Asked:
    """Begin a sign-in. The same is done and answered for every address; only a known or allowed one gets the mail."""
    browser, link = ports.ids.token(), ports.ids.token()
    code = _new_code(ports)
    now = ports.clock.now_ms()
    within = await _counted(ports, address, client)
    welcome = await by_address.is_welcome(ports, settings, address)
    challenge = (digest(address), address, digest(link), digest(browser), digest(browser + code), return_to)
    if within:
        await ports.catalog.batch(
            [
                Statement("DELETE FROM sign_in_challenges WHERE expires_ms <= ?", (now,)),
                Statement(
                    "INSERT INTO sign_in_challenges"
                    " (address_hash, address, link_hash, browser_hash, code_hash, return_to, expires_ms)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (address_hash) DO UPDATE SET"
                    " link_hash = excluded.link_hash, browser_hash = excluded.browser_hash,"
                    " code_hash = excluded.code_hash, tries = 0, return_to = excluded.return_to,"
                    " expires_ms = excluded.expires_ms",
                    (*challenge, now + LINK_SECONDS * 1000),
                ),
            ]
        )
    mailer = ports.mailer if within and welcome else None
    mail = _mail(settings, address, link, code)

    async def deliver() -> None:
        if mailer is not None:
            await _send(mailer, mail)

    return Asked(browser, deliver)


async def address_of(ports: Ports, link: str, browser: str) -> str | None:
    """Whose link this is, told to the browser that asked for it alone. Changes nothing."""
    rows = await ports.catalog.query(
        "SELECT address FROM sign_in_challenges WHERE link_hash = ? AND browser_hash = ? AND expires_ms > ?",
        (digest(link), digest(browser), ports.clock.now_ms()),
    )
    return str(rows[0]["address"]) if rows else None


async def use_link(ports: Ports, link: str, browser: str) -> Proven | None:
    """Use a link up. Of several at once one gets the answer, the others None."""
    rows = await ports.catalog.query(
        "DELETE FROM sign_in_challenges WHERE link_hash = ? AND browser_hash = ? AND expires_ms > ?"
        " RETURNING address, return_to",
        (digest(link), digest(browser), ports.clock.now_ms()),
    )
    return Proven(rows[0]["address"], rows[0]["return_to"]) if rows else None


async def use_code(ports: Ports, code: str, browser: str) -> Proven | None:
    """Use a typed code up. Each try is counted before it is looked at; after the fifth the challenge is dead."""
    asked = await ports.catalog.query(
        "UPDATE sign_in_challenges SET tries = tries + 1 WHERE browser_hash = ? AND expires_ms > ? AND tries < ?"
        " RETURNING code_hash",
        (digest(browser), ports.clock.now_ms(), CODE_TRIES),
    )
    typed = digest(browser + "".join(code.upper().replace("-", "").split()))
    if not asked or not hmac.compare_digest(asked[0]["code_hash"], typed):
        return None
    rows = await ports.catalog.query(
        "DELETE FROM sign_in_challenges WHERE browser_hash = ? AND code_hash = ? RETURNING address, return_to",
        (digest(browser), typed),
    )
    return Proven(rows[0]["address"], rows[0]["return_to"]) if rows else None


async def account_of(ports: Ports, settings: Settings, proven: Proven) -> AccountId | None:
    """The account of a proven address, made now if the settings welcome it."""
    return await by_address.account_of(ports, settings, proven.address)


async def _counted(ports: Ports, address: str, client: str | None) -> bool:
    now = ports.clock.now_ms()
    subjects = (
        ("address:" + digest(address), ADDRESS_LIMIT),
        ("network:" + digest(_network(client)), NETWORK_LIMIT),
        ("all", TOTAL_LIMIT),
    )
    statements = [Statement("DELETE FROM sign_in_counts WHERE expires_ms <= ?", (now,))]
    for subject, (_, seconds) in subjects:
        start = now - now % (seconds * 1000)
        statements.append(
            Statement(
                "INSERT INTO sign_in_counts (subject, window_start_ms, requests, expires_ms) VALUES (?, ?, 1, ?)"
                " ON CONFLICT (subject, window_start_ms) DO UPDATE SET requests = requests + 1 RETURNING requests",
                (subject, start, start + seconds * 1000),
            )
        )
    results = (await ports.catalog.batch(statements))[1:]
    allowed = (limit for _, (limit, _) in subjects)
    return all(result.rows[0]["requests"] <= limit for result, limit in zip(results, allowed, strict=True))


def _network(client: str | None) -> str:
    """An IPv4 address as it is, an IPv6 one as its /64, which one household has whole."""
    if client is None or ":" not in client:
        return client or "-"
    return ":".join(client.split("::")[0].split(":")[:_NETWORK_GROUPS])


def _new_code(ports: Ports) -> str:
    return base64.b32encode(hashlib.sha256(ports.ids.token().encode()).digest()).decode()[:CODE_CHARS]


def _mail(settings: Settings, address: str, link: str, code: str) -> Mail:
    url = f"{settings.public_url}/sign-in/link?{urlencode({'token': link})}"
    half = CODE_CHARS // 2
    text = (
        f"To sign in to MemPersist, open this link in the browser in which you asked for it:\n\n{url}\n\n"
        f"If you read this on another device, type this code in that browser instead: {code[:half]}-{code[half:]}\n\n"
        f"Link and code work once, for {LINK_SECONDS // 60} minutes. If you did not ask for this, do nothing, and tell"
        " nobody the code.\n"
    )
    return Mail(address, "Sign in to MemPersist", text)


async def _send(mailer: Mailer, mail: Mail) -> None:
    try:
        await mailer.send(mail)
    except MailUnavailable:
        logs.error("sign_in_mail_not_sent")
