"""The queues of background work. Who takes from them is part of the service, which must be there first."""

from __future__ import annotations

from typing import Final

import pulumi_cloudflare as cloudflare

from mempersist_infra.context import Component, Context

RETENTION_SECONDS: Final = 4 * 86_400
DEAD_LETTERS_SECONDS: Final = 14 * 86_400
"""As long as a queue can keep anything: a message that was given up must outlast a holiday."""


class Queues(Component):
    """``imports`` and ``index`` are for work, ``dead_letters`` for messages that were tried too often."""

    imports: cloudflare.Queue
    index: cloudflare.Queue
    dead_letters: cloudflare.Queue

    def __init__(self, context: Context) -> None:
        super().__init__("Queues", context)
        inside = context.within(self)
        self.imports = _queue(inside, "import-queue", context.names.import_queue, RETENTION_SECONDS)
        self.index = _queue(inside, "index-queue", context.names.index_queue, RETENTION_SECONDS)
        self.dead_letters = _queue(inside, "dead-letter-queue", context.names.dead_letter_queue, DEAD_LETTERS_SECONDS)

    @property
    def all(self) -> tuple[cloudflare.Queue, ...]:
        return self.imports, self.index, self.dead_letters


def _queue(context: Context, name: str, physical: str, seconds: int) -> cloudflare.Queue:
    return cloudflare.Queue(
        name,
        account_id=context.account,
        queue_name=physical,
        settings={"delivery_delay": 0, "delivery_paused": False, "message_retention_period": seconds},
        opts=context.options(delete_first=True),
    )
