"""The physical names of everything, made from project and stack alone, so that nobody else's thing can be meant."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from mempersist_infra.values import SettingsError

_NAME: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_MOST_CHARS: Final = 40
"""The longest name made here adds 19 characters; a bucket's may have 63."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a deployment. Queues are told apart by how their names end (see worker/entry.py)."""

    base: str

    @property
    def worker(self) -> str:
        return self.base

    @property
    def bucket(self) -> str:
        return f"{self.base}-archive"

    @property
    def database(self) -> str:
        return f"{self.base}-catalog"

    @property
    def import_queue(self) -> str:
        return f"{self.base}-import"

    @property
    def index_queue(self) -> str:
        return f"{self.base}-index"

    @property
    def dead_letter_queue(self) -> str:
        return f"{self.base}-dead-letter"

    @property
    def queues(self) -> tuple[str, str, str]:
        return self.import_queue, self.index_queue, self.dead_letter_queue

    @property
    def jobs_token(self) -> str:
        return f"{self.base}-jobs"

    def index(self, generation: str) -> str:
        """The vector index of a generation."""
        return f"{self.base}-vectors-{generation}"


def names(project: str, stack: str) -> Names:
    """:raises SettingsError: if project and stack make no name that every product of Cloudflare takes."""
    base = f"{project}-{stack}"
    if not _NAME.fullmatch(base) or len(base) > _MOST_CHARS:
        raise SettingsError(
            f'the stack "{stack}" gives the name "{base}", and every resource is named after it: it may have up to'
            f" {_MOST_CHARS} of a-z, 0-9 and -; choose another with: pulumi stack init NAME"
        )
    return Names(base)
