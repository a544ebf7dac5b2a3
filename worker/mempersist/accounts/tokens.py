"""Personal access tokens, for clients that cannot sign in with a browser: scoped, expiring, revocable, shown once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.accounts.sessions import digest
from mempersist.errors import validation
from mempersist.ports import AccountId, Ports, Row

PREFIX: Final = "mps_"
DEFAULT_DAYS: Final = 90
MAX_DAYS: Final = 365
MAX_TOKENS: Final = 50
MAX_NAME_CHARS: Final = 100
_DAY_MS: Final = 24 * 3600 * 1000
_USED_STEP_MS: Final = 60 * 1000
_COLUMNS: Final = "token_id, name, scopes, created_ms, expires_ms, used_ms"


@dataclass(frozen=True, slots=True)
class TokenInfo:
    """What is known of a token; times are epoch milliseconds. ``used_ms`` is exact to a minute."""

    token_id: str
    name: str
    scopes: tuple[str, ...]
    created_ms: int
    expires_ms: int
    used_ms: int | None


@dataclass(frozen=True, slots=True)
class NewToken:
    """``token`` is the secret: it is told here once and stored nowhere."""

    info: TokenInfo
    token: str = field(repr=False)


async def create(
    ports: Ports, account: AccountId, *, name: str, scopes: Sequence[str], days: int = DEFAULT_DAYS
) -> NewToken:
    """A new token of the account. :raises MempersistError: VALIDATION for a bad field, or if there are 50 already."""
    label = " ".join(name.split())
    if not 1 <= len(label) <= MAX_NAME_CHARS or not label.isprintable():
        raise validation("name", f"must have 1 to {MAX_NAME_CHARS} printable characters")
    if not scopes or set(scopes) - {READ, WRITE}:
        raise validation("scopes", f"must name one or both of {READ} and {WRITE}")
    if not 1 <= days <= MAX_DAYS:
        raise validation("expires_in_days", f"must be 1 to {MAX_DAYS}")
    secret = PREFIX + ports.ids.token()
    now = ports.clock.now_ms()
    info = TokenInfo(ports.ids.uuid(), label, tuple(sorted(set(scopes))), now, now + days * _DAY_MS, None)
    made = await ports.catalog.query(
        "INSERT INTO personal_tokens (token_hash, token_id, account_id, name, scopes, created_ms, expires_ms)"
        " SELECT ?, ?, ?, ?, ?, ?, ?"
        " WHERE (SELECT count(*) FROM personal_tokens WHERE account_id = ?) < ? RETURNING token_id",
        (
            digest(secret),
            info.token_id,
            account,
            label,
            " ".join(info.scopes),
            now,
            info.expires_ms,
            account,
            MAX_TOKENS,
        ),
    )
    if not made:
        raise validation("name", f"there are {MAX_TOKENS} tokens already; revoke one that is not needed")
    return NewToken(info, secret)


async def listed(ports: Ports, account: AccountId) -> tuple[TokenInfo, ...]:
    """The account's tokens, expired ones too, the newest first."""
    rows = await ports.catalog.query(
        f"SELECT {_COLUMNS} FROM personal_tokens WHERE account_id = ? ORDER BY created_ms DESC, token_id",
        (account,),
    )
    return tuple(_info(row) for row in rows)


async def revoke(ports: Ports, account: AccountId, token_id: str) -> bool:
    """The token is of no use from now on; False where the account has no such token."""
    gone = await ports.catalog.query(
        "DELETE FROM personal_tokens WHERE token_id = ? AND account_id = ? RETURNING token_id", (token_id, account)
    )
    return bool(gone)


async def principal_of(ports: Ports, token: str) -> Principal | None:
    """Whom a presented token stands for, and with which scopes; its use is noted."""
    if not token.startswith(PREFIX):
        return None
    now = ports.clock.now_ms()
    hashed = digest(token)
    rows = await ports.catalog.query(
        "SELECT account_id, scopes, used_ms FROM personal_tokens WHERE token_hash = ? AND expires_ms > ?", (hashed, now)
    )
    for row in rows:
        if row["used_ms"] is None or row["used_ms"] < now - _USED_STEP_MS:
            await ports.catalog.query("UPDATE personal_tokens SET used_ms = ? WHERE token_hash = ?", (now, hashed))
        return Principal(AccountId(row["account_id"]), frozenset(row["scopes"].split()))
    return None


def _info(row: Row) -> TokenInfo:
    return TokenInfo(
        row["token_id"], row["name"], tuple(row["scopes"].split()), row["created_ms"], row["expires_ms"], row["used_ms"]
    )
