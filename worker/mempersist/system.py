"""The machine's clock and randomness."""

from __future__ import annotations

import secrets
import time
import uuid


class SystemClock:
    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000


class SystemIds:
    def uuid(self) -> str:
        return str(uuid.uuid4())

    def token(self, size: int = 32) -> str:
        return secrets.token_urlsafe(size)
