"""Answers gone wrong, on demand: instead of the work, or after it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Kind = Literal["instead", "afterwards", "lose", "silence"]


@dataclass(slots=True)
class Fault:
    """What becomes of the next ``times`` requests that fit, after ``skip`` others that fit.

    ``instead`` answers with ``status``, ``headers`` and ``body`` and does nothing; ``afterwards`` does the work first;
    ``lose`` does the work and breaks the connection; ``silence`` does nothing and never answers.

    :param path: a regular expression that is searched for in the path.
    """

    kind: Kind = "instead"
    method: str = "*"
    path: str = ""
    status: int = 500
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = '{"success":false,"errors":[{"code":10001,"message":"Internal error"}],"messages":[],"result":null}'
    times: int = 1
    skip: int = 0

    def fits(self, method: str, path: str) -> bool:
        return self.times > 0 and self.method in ("*", method) and re.search(self.path, path) is not None


class Faults:
    """The faults that are still to happen."""

    def __init__(self) -> None:
        self._waiting: list[Fault] = []

    def add(self, fault: Fault) -> None:
        self._waiting.append(fault)

    def add_json(self, given: Mapping[str, Any]) -> None:
        """:raises TypeError: for a name that a fault does not have."""
        self.add(Fault(**given))

    def clear(self) -> None:
        self._waiting.clear()

    def take(self, method: str, path: str) -> Fault | None:
        """The fault of this request, used up by one."""
        for fault in self._waiting:
            if fault.fits(method, path):
                if fault.skip:
                    fault.skip -= 1
                    return None
                fault.times -= 1
                return fault
        return None
