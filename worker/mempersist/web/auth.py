"""Who a request comes from, decided from its headers alone, before anything of its body is read."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from mempersist.accounts.principal import READ, WRITE, Principal
from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist.service import Settings
from mempersist.web.http import Response, error_response


def bearer_token(headers: Mapping[str, str]) -> str | None:
    """The token of an ``Authorization: Bearer`` header; None where there is no such header."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def authenticate(settings: Settings, headers: Mapping[str, str]) -> Principal | None:
    """The owner, for a bearer whose SHA-256 is the configured one, compared in constant time; else None."""
    token = bearer_token(headers)
    if not token or settings.api_token_sha256 is None:
        return None
    presented = hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
    if not hmac.compare_digest(presented, settings.api_token_sha256):
        return None
    return Principal(OWNER, frozenset({READ, WRITE}))


def unauthenticated(headers: Mapping[str, str]) -> Response:
    """401 with the challenge of RFC 6750: no error word for a request that brought no token."""
    if bearer_token(headers) is None:
        challenge, problem = 'Bearer realm="mempersist"', "needs an 'Authorization: Bearer <token>' header"
    else:
        challenge, problem = 'Bearer realm="mempersist", error="invalid_token"', "the bearer token is not valid here"
    return error_response(MempersistError(Code.AUTHENTICATION, problem), {"WWW-Authenticate": challenge})
