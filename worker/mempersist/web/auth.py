"""Who a request comes from, decided from its headers alone, before anything of its body is read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from mempersist.accounts import tokens
from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.service import Service, Settings
from mempersist.web.http import Response, error_response

Check = Callable[[Service, str], Awaitable[Principal | None]]
"""Whom a bearer token stands for; None where it is not of this kind, or not valid."""


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The token of an ``Authorization: Bearer`` header; None where there is no such header."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def is_owners(settings: Settings, token: str | None) -> bool:
    """Whether the token's SHA-256 is the configured one, compared in constant time."""
    if not token or settings.api_token_sha256 is None:
        return False
    presented = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    return hmac.compare_digest(presented, settings.api_token_sha256)


async def _owners_token(service: Service, token: str) -> Principal | None:
    return Principal(OWNER, frozenset({READ, WRITE})) if is_owners(service.settings, token) else None


async def _personal_token(service: Service, token: str) -> Principal | None:
    return await tokens.principal_of(service.ports, token)


CHECKS: Final[tuple[Check, ...]] = (_owners_token, _personal_token)
"""Tried in this order; the first answer counts."""


async def authenticate(service: Service, headers: Mapping[str, str]) -> Principal | None:
    """Whom the request's bearer token stands for. :raises CatalogError: if it cannot be looked up."""
    token = bearer_token(headers)
    if not token:
        return None
    for check in CHECKS:
        principal = await check(service, token)
        if principal is not None:
            return principal
    return None


def unauthenticated(headers: Mapping[str, str]) -> Response:
    """401 with the challenge of RFC 6750: no error word for a request that brought no token."""
    if bearer_token(headers) is None:
        challenge, problem = 'Bearer realm="mempersist"', "needs an 'Authorization: Bearer <token>' header"
    else:
        challenge, problem = 'Bearer realm="mempersist", error="invalid_token"', "the bearer token is not valid here"
    return error_response(MempersistError(Code.AUTHENTICATION, problem), {"WWW-Authenticate": challenge})
