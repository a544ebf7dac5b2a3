"""Whether what a Worker is bound to exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.emulator.buckets import Buckets
from tests.emulator.d1 import Databases
from tests.emulator.queues import Queues
from tests.emulator.vectorize import Vectorize


@dataclass(frozen=True, slots=True)
class Targets:
    """The products that bindings lead to."""

    databases: Databases
    buckets: Buckets
    vectorize: Vectorize
    queues: Queues

    def exist(self, account: str, binding: Mapping[str, Any]) -> bool:
        """Whether the binding leads anywhere; one of a kind that needs no target does."""
        kind = binding["type"]
        if kind == "d1":
            return self.databases.exists(account, str(binding.get("id") or binding.get("database_id")))
        if kind == "r2_bucket":
            where = str(binding.get("jurisdiction", "default"))
            return self.buckets.find(account, str(binding.get("bucket_name")), where) is not None
        if kind == "vectorize":
            return self.vectorize.exists(account, str(binding.get("index_name")))
        if kind == "queue":
            return self.queues.exists(account, str(binding.get("queue_name")))
        return True
