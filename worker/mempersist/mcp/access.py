"""Who may talk to the endpoint at all: hosts, browser origins, and the challenge for a missing bearer.

The Host and Origin checks stop a web page from reaching a server on its visitor's machine under another name (DNS
rebinding). Clients that are not browsers send no Origin.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mempersist.accounts.principal import READ, WRITE
from mempersist.service import Settings

_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}
_ALLOWED_HEADERS: Final = "Accept, Authorization, Content-Type, Mcp-Method, Mcp-Name, MCP-Protocol-Version"


@dataclass(frozen=True, slots=True)
class _Place:
    """Scheme, host name and port of an http(s) URL."""

    scheme: str
    host: str
    port: int

    @property
    def loopback(self) -> bool:
        return self.host in _LOOPBACK


def _place(url: str) -> _Place | None:
    """None for anything but a plain http(s) URL."""
    try:
        parts = urlsplit(url)
        scheme = parts.scheme.lower()
        if scheme not in _DEFAULT_PORTS or not parts.hostname or "@" in parts.netloc:
            return None
        return _Place(scheme, parts.hostname.lower(), parts.port or _DEFAULT_PORTS[scheme])
    except ValueError:
        return None


def host_allowed(settings: Settings, host: str | None) -> bool:
    """Whether a request may name ``host``: the public one, or a loopback name, which no DNS server can hand out."""
    if host is None:
        return True
    named = _place(f"{urlsplit(settings.public_url).scheme}://{host}")
    return named is not None and (named.loopback or named == _place(settings.public_url))


def origin_allowed(settings: Settings, origin: str | None) -> bool:
    """Whether a browser at ``origin`` may talk to the endpoint: its own origin, the configured ones, and, for a
    server on a loopback address, pages on such addresses."""
    if origin is None:
        return True
    named, public = _place(origin), _place(settings.public_url)
    if named is None:
        return False
    if named in {public, *map(_place, settings.allowed_origins)}:
        return True
    return named.loopback and public is not None and public.loopback


def cross_origin_headers(origin: str) -> dict[str, str]:
    """What lets a page of an allowed origin read an answer."""
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Expose-Headers": "WWW-Authenticate",
        "Vary": "Origin",
    }


def preflight_headers() -> dict[str, str]:
    return {
        "Access-Control-Allow-Methods": "POST",
        "Access-Control-Allow-Headers": _ALLOWED_HEADERS,
        "Access-Control-Max-Age": "600",
    }


def resource_metadata_url(settings: Settings) -> str:
    """Where the protected-resource document (RFC 9728) of the endpoint is."""
    return f"{settings.public_url}/.well-known/oauth-protected-resource/mcp"


def challenge(settings: Settings, headers: Mapping[str, str]) -> str:
    """``WWW-Authenticate`` of a 401; it says ``invalid_token`` only to a request that brought a token."""
    parts = [f'resource_metadata="{resource_metadata_url(settings)}"']
    if "authorization" in headers:
        parts.append('error="invalid_token"')
    return f"Bearer {', '.join([*parts, _scope(READ, WRITE)])}"


def scope_challenge(settings: Settings, scope: str) -> str:
    """The challenge of a principal that lacks ``scope``."""
    metadata = resource_metadata_url(settings)
    return f'Bearer resource_metadata="{metadata}", error="insufficient_scope", {_scope(scope)}'


def _scope(*scopes: str) -> str:
    return f'scope="{" ".join(scopes)}"'
