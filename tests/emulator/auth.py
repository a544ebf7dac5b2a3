"""API tokens: what each may do, and how often. The codes 9106 and 10429 are from memory."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tests.emulator.wire import ApiError

Access = Literal["Read", "Write"]
WINDOW_SECONDS = 300
REQUESTS_PER_WINDOW = 1200

PRODUCTS = ("D1", "Vectorize", "Queues", "Workers AI", "Workers R2 Storage", "Workers Scripts")
EVERYTHING = frozenset(f"{product} Write" for product in PRODUCTS)


@dataclass(frozen=True, slots=True)
class Token:
    """``permissions`` are names such as ``D1 Write``, which holds ``D1 Read`` too.

    ``is_runtime`` marks the token with which the emulator's own Workers reach what they are bound to: no limit counts
    for it, and it takes from the queues of which a Worker is the consumer.
    """

    id: str
    value: str = field(repr=False)
    account: str
    permissions: frozenset[str] = EVERYTHING
    is_runtime: bool = False

    @property
    def s3_secret(self) -> str:
        """The secret that goes with the token's id as an S3 access key."""
        return hashlib.sha256(self.value.encode()).hexdigest()

    def allows(self, product: str, access: Access) -> bool:
        wanted = {f"{product} Write"} if access == "Write" else {f"{product} Write", f"{product} Read"}
        return bool(wanted & self.permissions)


class Tokens:
    """The tokens that exist, and the requests that each has made in its window.

    :param seconds: a clock, for the windows.
    """

    def __init__(self, seconds: Callable[[], float], requests_per_window: int = REQUESTS_PER_WINDOW) -> None:
        self._seconds = seconds
        self._allowed = requests_per_window
        self._by_value: dict[str, Token] = {}
        self._windows: dict[str, tuple[float, int]] = {}

    def add(self, token: Token) -> None:
        self._by_value[token.value] = token

    def with_id(self, token_id: str) -> Token | None:
        return next((token for token in self._by_value.values() if token.id == token_id), None)

    def bearer(self, headers: Mapping[str, str]) -> Token:
        """:raises ApiError: for a request without a token, or with one that does not exist."""
        scheme, _, value = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise ApiError(400, 9106, "Missing X-Auth-Key, X-Auth-Email or Authorization headers")
        if value not in self._by_value:
            raise ApiError(401, 10000, "Authentication error")
        return self._by_value[value]

    def count(self, token: Token) -> dict[str, str]:
        """Count one request, and give the headers that say what is left.

        :raises ApiError: 429 when nothing is; the token then waits for the end of its window.
        """
        if token.is_runtime:
            return {}
        now = self._seconds()
        began, used = self._windows.get(token.id, (now, 0))
        if now - began >= WINDOW_SECONDS:
            began, used = now, 0
        self._windows[token.id] = (began, used + 1)
        left = int(began + WINDOW_SECONDS - now) + 1
        headers = {
            "ratelimit": f'"default";r={max(0, self._allowed - used - 1)};t={left}',
            "ratelimit-policy": f'"default";q={self._allowed};w={WINDOW_SECONDS}',
        }
        if used >= self._allowed:
            raise ApiError(429, 10429, "Rate limit exceeded", {**headers, "retry-after": str(left)})
        return headers
