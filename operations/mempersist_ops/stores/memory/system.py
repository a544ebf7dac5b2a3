"""A clock that stands still and ids that repeat, for tests."""

from __future__ import annotations

import base64
import random
import uuid


class ManualClock:
    """Shows ``start_ms`` until it is advanced."""

    def __init__(self, start_ms: int = 1_780_000_000_000) -> None:
        self._now = start_ms

    def now_ms(self) -> int:
        return self._now

    def advance(self, milliseconds: int) -> None:
        self._now += milliseconds


class SeededIds:
    """The same ids in the same order for the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self._random = random.Random(seed)  # noqa: S311

    def uuid(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))

    def token(self, size: int = 32) -> str:
        return base64.urlsafe_b64encode(self._random.randbytes(size)).rstrip(b"=").decode()
