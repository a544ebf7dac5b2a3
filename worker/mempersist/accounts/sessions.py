"""Who is signed in in a browser: a random id in a cookie, of which the catalog keeps the SHA-256 alone."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from mempersist.ports import AccountId, Ports, Statement

SESSION_COOKIE: Final = "mempersist_session"
SESSION_SECONDS: Final = 30 * 24 * 3600
_SECURE_PREFIX: Final = "__Host-"


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that is signed in. ``session_id`` is the stored hash, not the cookie; ``csrf`` goes into each form."""

    account: AccountId
    session_id: str
    csrf: str = field(repr=False)


def digest(secret: str) -> str:
    """The form in which a secret is stored and looked up: hexadecimal SHA-256."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def cookies(headers: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The values of our cookie ``name``, those with the ``__Host-`` prefix first: the others may be planted ones."""
    pairs = [piece.strip().partition("=") for piece in headers.get("cookie", "").replace(",", ";").split(";")]
    return tuple(value for wanted in (_SECURE_PREFIX + name, name) for key, _, value in pairs if key == wanted)


def set_cookie(public_url: str, name: str, value: str, seconds: int) -> str:
    """A ``Set-Cookie`` value: ``__Host-`` and Secure, but for an http address (the local server's), where browsers
    refuse both. ``seconds`` 0 takes the cookie away."""
    secure = public_url.startswith("https:")
    prefix, flag = (_SECURE_PREFIX, "; Secure") if secure else ("", "")
    return f"{prefix}{name}={value}; Path=/; Max-Age={seconds}; HttpOnly{flag}; SameSite=Lax"


async def begin(ports: Ports, account: AccountId) -> str:
    """A new session of ``account``; the answer is the cookie's value, which is kept nowhere."""
    value = ports.ids.token()
    now = ports.clock.now_ms()
    csrf = ports.ids.token()
    await ports.catalog.batch(
        [
            Statement("DELETE FROM sessions WHERE expires_ms <= ?", (now,)),
            Statement(
                "INSERT INTO sessions (session_hash, account_id, csrf, created_ms, expires_ms) VALUES (?, ?, ?, ?, ?)",
                (digest(value), account, csrf, now, now + SESSION_SECONDS * 1000),
            ),
        ]
    )
    return value


async def signed_in(ports: Ports, headers: Mapping[str, str]) -> Session | None:
    """The session that the request's cookie names, if it is still open."""
    for value in cookies(headers, SESSION_COOKIE)[:1]:
        rows = await ports.catalog.query(
            "SELECT account_id, session_hash, csrf FROM sessions WHERE session_hash = ? AND expires_ms > ?",
            (digest(value), ports.clock.now_ms()),
        )
        for row in rows:
            return Session(AccountId(row["account_id"]), row["session_hash"], row["csrf"])
    return None


async def end(ports: Ports, session: Session) -> None:
    """Sign the browser out."""
    await ports.catalog.query(
        "DELETE FROM sessions WHERE session_hash = ? AND account_id = ?", (session.session_id, session.account)
    )


async def end_all(ports: Ports, account: AccountId) -> None:
    """Sign every browser of the account out."""
    await ports.catalog.query("DELETE FROM sessions WHERE account_id = ?", (account,))


def csrf_matches(session: Session, presented: str | None) -> bool:
    """Whether a form carries this session's token; compared in constant time."""
    return presented is not None and hmac.compare_digest(session.csrf.encode(), presented.encode("utf-8", "replace"))
