"""Where a deployment's plan, ledger and approvers are kept, below the project's root."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DIRECTORY: Final = ".gates"
_KEY_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Places:
    """Files of one stack. The ledger and the approvers are meant to be committed; the plan and the key are not."""

    root: Path
    stack: str

    @property
    def plan(self) -> Path:
        return self.root / DIRECTORY / self.stack / "plan.json"

    @property
    def ledger(self) -> Path:
        return self.root / DIRECTORY / self.stack / "ledger.jsonl"

    @property
    def policy(self) -> Path:
        return self.root / DIRECTORY / "approvers.json"

    def key(self) -> bytes:
        """What keys the digests of secrets in plans; made when there is none."""
        path = self.root / DIRECTORY / "plan.key"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return path.read_bytes()
        made = secrets.token_bytes(_KEY_BYTES)
        with os.fdopen(descriptor, "wb") as file:
            file.write(made)
        return made
