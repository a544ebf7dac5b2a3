"""Progress on standard error: one line that rewrites itself on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final, TextIO

_TERMINAL_SECONDS: Final = 0.2
_PLAIN_SECONDS: Final = 5.0
_UNITS: Final = ("B", "kB", "MB", "GB", "TB")


class Progress:
    """One step of work. Call :meth:`at` as often as you like; it says something only when it is time to.

    :param unit: what is counted; ``bytes`` are shown in kB, MB and so on.
    """

    def __init__(
        self, step: str, unit: str, *, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._step = step
        self._unit = unit
        self._stream = stream or sys.stderr
        self._clock = clock
        self._terminal = self._stream.isatty()
        self._began = clock()
        self._first: int | None = None
        self._said = self._began - _TERMINAL_SECONDS if self._terminal else self._began
        self._shown = False

    def at(self, done: int, total: int) -> None:
        """``done`` of ``total``; what was done before the first call does not count as this run's speed."""
        if self._first is None:
            self._first = done
        now = self._clock()
        if now - self._said < (_TERMINAL_SECONDS if self._terminal else _PLAIN_SECONDS):
            return
        self._said = now
        line = f"{self._step}: {describe(done, total, self._unit, done - self._first, now - self._began)}"
        self._stream.write(f"\r\x1b[K{line}" if self._terminal else f"{line}\n")
        self._stream.flush()
        self._shown = True

    def close(self) -> None:
        """Clear the terminal's line, so that what is printed next stands alone."""
        if self._terminal and self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


class Steps:
    """Progress of work that has several steps, one after the other."""

    def __init__(self) -> None:
        self._step = ""
        self._current: Progress | None = None

    def at(self, step: str, unit: str, done: int, total: int) -> None:
        if self._current is None or step != self._step:
            self.close()
            self._step, self._current = step, Progress(step, unit)
        self._current.at(done, total)

    def close(self) -> None:
        if self._current is not None:
            self._current.close()


def describe(done: int, total: int, unit: str, since: int, seconds: float) -> str:
    """``done`` of ``total`` with percentage, rate and time left; ``since`` of them took ``seconds``."""
    share = f" ({100 * done // total} %)" if total else ""
    counted = amount(done, unit) if unit == "bytes" else f"{done:,}"
    text = f"{counted} of {amount(total, unit)}{share}"
    if since > 0 and seconds > 0:
        rate = since / seconds
        text += f", {amount(rate, unit)}/s"
        if done < total:
            text += f", {duration((total - done) / rate)} left"
    return text


def amount(value: float, unit: str) -> str:
    if unit != "bytes":
        return f"{value:,.0f} {unit}" if value >= 10 or value == int(value) else f"{value:.1f} {unit}"
    power = 0
    while value >= 1000 and power < len(_UNITS) - 1:
        value /= 1000
        power += 1
    return f"{value:.0f} {_UNITS[power]}" if power == 0 else f"{value:.1f} {_UNITS[power]}"


def duration(seconds: float) -> str:
    whole = round(seconds)
    hours, minutes, left = whole // 3600, whole % 3600 // 60, whole % 60
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {left:02d} s" if minutes else f"{left} s"
