"""The receipt of a call that copies: one result a request, all of them together within the ceiling of a receipt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mempersist.archive.copying import CopyOutcome
from mempersist.archive.model import JsonObject
from mempersist.mcp import receipts
from mempersist.mcp.fields import COUNT, TEXT, TEXTS, result, results
from mempersist.mcp.receipts import READBACK, REQUESTS
from mempersist.ports import AccountId, Ports

_MESSAGE: Final = "error.message"
SHED_ORDER: Final = (*receipts.SHED_ORDER, "source_revision_id", "source_conversation_id", _MESSAGE)
_CUT_CHARS: Final = 80


async def copy_receipt(
    ports: Ports, account: AccountId, outcomes: Sequence[CopyOutcome], *, verify: bool
) -> JsonObject:
    """One result for each of ``outcomes``, in order. A copy that is durable is never told as failed."""
    items = [await _item(ports, account, index, outcome, verify=verify) for index, outcome in enumerate(outcomes)]
    requests = [receipts.readback_requests(outcome.written) if outcome.written else [] for outcome in outcomes]
    return fit(items, requests)


async def _item(ports: Ports, account: AccountId, index: int, outcome: CopyOutcome, *, verify: bool) -> JsonObject:
    item: JsonObject = {"request_index": index, "status": "copied" if outcome.written else "failed"}
    item["source_conversation_id"] = outcome.source_conversation_id
    if outcome.source_revision_id is not None:
        item["source_revision_id"] = outcome.source_revision_id
    if outcome.written is not None:
        return item | await receipts.unfitted_revision(ports, account, outcome.written, verify=verify)
    if outcome.error is not None:
        item["error"] = {"code": outcome.error.code.value, "message": receipts.short(outcome.error.message)}
    return item


def fit(items: Sequence[JsonObject], requests: Sequence[Sequence[JsonObject]]) -> JsonObject:
    """The results within the ceiling: shed in ``SHED_ORDER``, from the last result to the first.

    :param requests: for each item what takes the place of a readback that is not in it.
    """
    kept = list(items)
    omitted: dict[str, None] = {}
    for index, item in enumerate(kept):
        if item.get("verification", {}).get("readback_available") and not receipts.has(item, READBACK):
            omitted[READBACK] = None
            kept[index] = {**item, REQUESTS: list(requests[index])}
    for path in SHED_ORDER:
        for index in reversed(range(len(kept))):
            fitted = receipts.sized({"results": kept}, list(omitted))
            if receipts.fits(fitted):
                return fitted
            if receipts.has(kept[index], path):
                omitted[path] = None
                kept[index] = _less(kept[index], path, requests[index])
    return receipts.sized({"results": kept}, list(omitted))


def _less(item: JsonObject, path: str, requests: Sequence[JsonObject]) -> JsonObject:
    if path == _MESSAGE:
        return {**item, "error": {**item["error"], "message": item["error"]["message"][:_CUT_CHARS]}}
    less = receipts.without(item, path)
    return {**less, REQUESTS: list(requests)} if path == READBACK else less


SCHEMA: Final[JsonObject] = result(
    {
        "results": results(
            result(
                {
                    "request_index": COUNT,
                    "status": TEXT,
                    "source_conversation_id": TEXT,
                    "source_revision_id": TEXT,
                    **receipts.WRITTEN,
                    "error": result({"code": TEXT, "message": TEXT}),
                },
                optional=("source_conversation_id", "source_revision_id", *receipts.WRITTEN, "error"),
            )
        ),
        "omitted": TEXTS,
        "used_serialized_bytes": COUNT,
        "max_serialized_bytes": COUNT,
    },
    optional=("omitted",),
)
