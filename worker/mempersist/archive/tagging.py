"""Changing the live tags of a conversation: a head entry of its own, the revision stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mempersist import canonical, limits, names
from mempersist.archive import requests, writing
from mempersist.archive.commit import Draft
from mempersist.archive.writing import Prepared, Standing, Written
from mempersist.errors import validation
from mempersist.ports import AccountId, Ports


async def update_tags(
    ports: Ports,
    account: AccountId,
    *,
    conversation_id: str,
    base_revision_id: str,
    add: Sequence[str] = (),
    remove: Sequence[str] = (),
    idempotency_key: str | None = None,
) -> Written:
    """Take ``remove`` from the live tags, then put ``add`` behind the rest. What is absent or there already stays so.

    Two changes of tags never conflict: the second is made on what the first left.

    :raises MempersistError: VALIDATION for bad tags, none at all, or more than ``MAX_TAGS`` in the end; NOT_FOUND;
        IMPORT_CONFLICT; CANONICAL_STORAGE.
    """
    removed, added = names.tags(remove, "remove"), names.tags(add, "add")
    if not removed and not added:
        raise validation("add", "and remove name no tag; name at least one to add or to remove")
    material = canonical.dumps([list(removed), list(added)]).decode()
    request = requests.of("tags", idempotency_key, conversation_id, base_revision_id, material)

    async def prepare(standing: Standing, now: str) -> Prepared:
        stored = await writing.manifest(ports, standing.row["manifest_key"])
        entry = standing.next_entry(request, now, revision_id=base_revision_id)
        entry = replace(entry, tags=changed(standing.tags, remove=removed, add=added))
        return Prepared(Draft(entry, stored), 0, 0)

    return await writing.change(ports, account, request, conversation_id, base_revision_id, prepare)


def changed(tags: Sequence[str], *, remove: Sequence[str], add: Sequence[str]) -> tuple[str, ...]:
    """``tags`` without ``remove``, then with ``add``; all of them in their normal form.

    :raises MempersistError: VALIDATION for more than ``MAX_TAGS`` in the end.
    """
    result = tuple(dict.fromkeys([*(tag for tag in tags if tag not in remove), *add]))
    if len(result) > limits.MAX_TAGS:
        raise validation(
            "add", f"would leave {len(result)} tags; at most {limits.MAX_TAGS} are kept, remove some first"
        )
    return result
