"""What a host hands to the service's doors: its ports and what was configured."""

from __future__ import annotations

from dataclasses import dataclass, field

from mempersist.errors import MempersistError
from mempersist.ports import Ports


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration that the core reads.

    :param public_url: scheme and host that clients use, no trailing slash; never taken from a request.
    :param allowed_origins: values of ``Origin`` that a browser may send besides the public URL's own.
    :param api_token_sha256: hex SHA-256 of the owner's bearer token; None refuses every bearer.
    :param cursor_keys: id and secret of each key for cursors that hold what was resolved; the first signs, all verify.
    :param owner_address: mail address, in lower case, whose proof signs in to the owner's account.
    :param sign_up: addresses, or domains as ``@example.org``, that get an account of their own at their first sign-in.
    :param alert_address: who is told by mail of work that was given up; None tells nobody but the log.
    """

    public_url: str
    allowed_origins: tuple[str, ...] = ()
    api_token_sha256: str | None = None
    alert_address: str | None = None
    owner_address: str | None = None
    sign_up: tuple[str, ...] = ()
    cursor_keys: tuple[tuple[str, bytes], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Service:
    """``trouble``, where there is any, is what every caller is told instead of being served."""

    ports: Ports
    settings: Settings
    trouble: MempersistError | None = None
