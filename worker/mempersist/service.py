"""What a host hands to the service's doors: its ports and what was configured."""

from __future__ import annotations

from dataclasses import dataclass

from mempersist.ports import Ports


@dataclass(frozen=True, slots=True)
class Settings:
    """Configuration that the core reads.

    :param public_url: scheme and host that clients use, no trailing slash; never taken from a request.
    :param allowed_origins: values of ``Origin`` that a browser may send besides the public URL's own.
    :param api_token_sha256: hex SHA-256 of the owner's bearer token; None refuses every bearer.
    """

    public_url: str
    allowed_origins: tuple[str, ...] = ()
    api_token_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class Service:
    ports: Ports
    settings: Settings
