"""When the next request may go: Cloudflare counts 1,200 in five minutes for all that one token's owner does."""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

REQUESTS: Final = 1200
WINDOW_SECONDS: Final = 300.0

_LEFT: Final = re.compile(r"\br=(\d+)\s*;\s*t=(\d+)")


class Pace:
    """Lets requests through while the window has room, and none while Cloudflare asks for a pause.

    What other programs use of the same allowance is known only from Cloudflare's own headers, so tell :meth:`heed` of
    every answer's.
    """

    def __init__(
        self,
        *,
        requests: int = REQUESTS,
        window: float = WINDOW_SECONDS,
        seconds: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._window, self._seconds, self._sleep = window, seconds, sleep
        self._sent: deque[float] = deque(maxlen=requests)
        self._paused_until = float("-inf")

    async def turn(self) -> None:
        """Wait until a request may be sent, and count it."""
        while (wait := self._wait()) > 0:
            await self._sleep(wait)
        self._sent.append(self._seconds())

    def pause(self, seconds: float) -> None:
        """Hold back every request for so long."""
        self._paused_until = max(self._paused_until, self._seconds() + seconds)

    def heed(self, headers: Mapping[str, str]) -> None:
        """Pause when an answer says that nothing is left of the allowance: ``"default";r=0;t=30``."""
        for left, seconds in _LEFT.findall(headers.get("ratelimit", "")):
            if int(left) == 0:
                self.pause(float(seconds))

    def _wait(self) -> float:
        now = self._seconds()
        for_room = self._sent[0] + self._window - now if len(self._sent) == self._sent.maxlen else 0.0
        return max(for_room, self._paused_until - now)
