"""Which revision a reader is held to, decided before any canonical object is read."""

from __future__ import annotations

import json
from collections.abc import Sequence

from mempersist.errors import MempersistError, not_found
from mempersist.ports import AccountId, Ports


async def pin_revisions(
    ports: Ports, account: AccountId, wanted: Sequence[tuple[str, str | None]]
) -> list[str | MempersistError]:
    """For each conversation and perhaps revision in ``wanted`` the revision to read: the named one if it is the
    conversation's, else the current one. An error stands where there is none."""
    rows = await ports.catalog.query(
        "SELECT wanted.key AS place, c.conversation_id, coalesce(wanted.value ->> 1, c.revision_id) AS wanted_revision,"
        " r.revision_id FROM json_each(?) AS wanted CROSS JOIN conversations AS c"
        " ON c.conversation_id = wanted.value ->> 0 AND c.account_id = ? AND c.deleted_at IS NULL"
        " LEFT JOIN revisions AS r ON r.conversation_id = c.conversation_id AND r.account_id = c.account_id"
        " AND r.revision_id = coalesce(wanted.value ->> 1, c.revision_id)",
        (json.dumps([list(item) for item in wanted]), account),
    )
    found = {int(row["place"]): row["revision_id"] for row in rows}
    pins: list[str | MempersistError] = []
    for index, (_, revision_id) in enumerate(wanted):
        pinned = found.get(index)
        if pinned is not None:
            pins.append(str(pinned))
        else:
            pins.append(not_found("revision" if revision_id is not None and index in found else "conversation"))
    return pins
