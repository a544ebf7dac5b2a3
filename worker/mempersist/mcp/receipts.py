"""The receipt of a committed write: bounded, and never an error once the write is durable.

What does not fit is shed in a fixed order and named in ``omitted``; what says that the write happened, and which
write it was, is never shed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import Final

from mempersist.archive.model import JsonObject
from mempersist.archive.read import read_page
from mempersist.archive.verifying import Verification, verify_revision, verify_written
from mempersist.archive.writing import NewMessage, Written
from mempersist.limits import DEFAULT_PAGE_MESSAGES, MAX_RECEIPT_BYTES
from mempersist.mcp import budget
from mempersist.mcp.fields import COUNT, COUNT_OR_NULL, TEXT, TEXTS, TRUTH, result, results
from mempersist.mcp.messages import COMPACT_MESSAGE, compact
from mempersist.ports import AccountId, Ports
from mempersist.text import printable

HEADROOM_BYTES: Final = 512
MAX_ERROR_CHARS: Final = 200
READBACK: Final = "verification.readback"
REQUESTS: Final = "readback_requests"
SHED_ORDER: Final = (
    READBACK,
    REQUESTS,
    "verification.readback_error",
    "verification.checked_messages",
    "indexing.error",
    "indexing.job_id",
)


async def write_receipt(
    ports: Ports, account: AccountId, written: Written, messages: Sequence[NewMessage], *, verify: bool
) -> JsonObject:
    """The receipt of ``messages`` that are durable. Trouble after the commit is told inside it, never raised."""
    check = verify_written(ports, account, written, messages) if verify else None
    return fit(await unfitted(ports, account, written, check), readback_requests(written))


async def revision_receipt(ports: Ports, account: AccountId, written: Written, *, verify: bool) -> JsonObject:
    """The receipt of a write whose outcome is a whole revision."""
    return fit(await unfitted_revision(ports, account, written, verify=verify), readback_requests(written))


async def unfitted_revision(ports: Ports, account: AccountId, written: Written, *, verify: bool) -> JsonObject:
    """The same before it is fitted."""
    check = verify_revision(ports, account, written.conversation_id, written.revision_id) if verify else None
    return await unfitted(ports, account, written, check)


async def unfitted(
    ports: Ports, account: AccountId, written: Written, check: Awaitable[Verification] | None
) -> JsonObject:
    """What a receipt says before it is fitted; with a verification if there is a ``check`` to make."""
    receipt: JsonObject = {"conversation_id": written.conversation_id}
    if written.previous_revision_id is not None:
        receipt["previous_revision_id"] = written.previous_revision_id
    receipt |= {"revision_id": written.revision_id, "durable": True}
    if written.replayed:
        receipt["replayed"] = True
    receipt["indexing"] = indexing(written)
    if check is not None:
        receipt["verification"] = await _verification(ports, account, written, check)
    return receipt


def indexing(written: Written) -> JsonObject:
    """How the indexing of a write stands, which is no part of whether it is durable."""
    value: JsonObject = {"status": "queued" if written.index_queued else "failed"}
    if written.index_job_id is not None:
        value["job_id"] = written.index_job_id
    if written.index_error is not None:
        value["error"] = short(written.index_error)
    return value


def readback_requests(written: Written) -> list[JsonObject]:
    """Selectors that read all written messages at exactly this revision, page by page."""
    return [
        {
            "conversation_id": written.conversation_id,
            "revision_id": written.revision_id,
            "offset": offset,
            "limit": DEFAULT_PAGE_MESSAGES,
            "branch": "active",
        }
        for offset in range(written.first_offset, written.first_offset + written.message_count, DEFAULT_PAGE_MESSAGES)
    ]


async def _verification(
    ports: Ports, account: AccountId, written: Written, check: Awaitable[Verification]
) -> JsonObject:
    value: JsonObject = {"status": "failed", "revision_id": written.revision_id, "readback_available": False}
    try:
        outcome = await check
        value["checked_messages"] = outcome.checked_messages
        if not outcome.passed:
            return {**value, "readback_error": short(outcome.problem or "the messages differ")}
        value |= {"status": "passed", "readback_available": True}
        readback = await _readback(ports, account, written)
        if readback is not None:
            value["readback"] = readback
    except Exception as error:  # the write stands: whatever fails behind it is told in the receipt
        value["readback_error"] = f"the messages could not be read back ({type(error).__name__})"
    return value


async def _readback(ports: Ports, account: AccountId, written: Written) -> JsonObject | None:
    """The messages written, unless they are clearly more than a receipt holds."""
    page = await read_page(
        ports,
        account,
        written.conversation_id,
        offset=written.first_offset,
        limit=written.message_count,
        revision_id=written.revision_id,
        max_bytes=MAX_RECEIPT_BYTES,
    )
    if len(page.messages) < written.message_count:
        return None
    return {
        "offset": written.first_offset,
        "messages": [compact(view.node) for view in page.messages],
        "nextOffset": page.next_offset,
        "total": page.total,
    }


def short(problem: str) -> str:
    """An error's text as receipts hold it."""
    return printable(problem)[:MAX_ERROR_CHARS]


# ------------------------------------------------------------------ fitting


def fit(receipt: JsonObject, readback_requests: Sequence[JsonObject]) -> JsonObject:
    """The receipt within ``MAX_RECEIPT_BYTES``, its own size included.

    :param readback_requests: put in where a readback exists but is not in the receipt.
    """
    omitted: list[str] = []
    verification = receipt.get("verification", {})
    if verification.get("readback_available") and "readback" not in verification:
        omitted.append(READBACK)
        receipt = {**receipt, REQUESTS: list(readback_requests)}
    for path in SHED_ORDER:
        fitted = sized(receipt, omitted)
        if fits(fitted):
            return fitted
        if has(receipt, path):
            receipt = without(receipt, path)
            omitted.append(path)
            if path == READBACK:
                receipt = {**receipt, REQUESTS: list(readback_requests)}
    return sized(receipt, omitted)


def sized(receipt: JsonObject, omitted: Sequence[str]) -> JsonObject:
    """The receipt with its own size in it, which the digits of that size are a part of."""
    value = {**receipt, **({"omitted": list(omitted)} if omitted else {})}
    value |= {"used_serialized_bytes": 0, "max_serialized_bytes": MAX_RECEIPT_BYTES}
    while True:
        used = budget.size(value)
        if used == value["used_serialized_bytes"]:
            return value
        value["used_serialized_bytes"] = used


def fits(receipt: JsonObject) -> bool:
    """Whether a receipt that knows its size is within the ceiling, with room to spare."""
    used: int = receipt["used_serialized_bytes"]
    return used <= MAX_RECEIPT_BYTES - HEADROOM_BYTES


def has(receipt: JsonObject, path: str) -> bool:
    """Whether the receipt holds what ``path``, names joined by dots, leads to."""
    *parents, name = path.split(".")
    for parent in parents:
        receipt = receipt.get(parent, {})
    return name in receipt


def without(receipt: JsonObject, path: str) -> JsonObject:
    """A copy of the receipt that does not hold what ``path`` leads to."""
    name, _, rest = path.partition(".")
    if not rest:
        return {key: value for key, value in receipt.items() if key != name}
    return {**receipt, name: without(receipt[name], rest)}


# ------------------------------------------------------------------ schema

INDEXING: Final = result({"status": TEXT, "job_id": TEXT, "error": TEXT}, optional=("job_id", "error"))
_REQUEST: Final = result(
    {"conversation_id": TEXT, "revision_id": TEXT, "offset": COUNT, "limit": COUNT, "branch": TEXT}
)
WRITTEN: Final[Mapping[str, JsonObject]] = {
    "conversation_id": TEXT,
    "previous_revision_id": TEXT,
    "revision_id": TEXT,
    "durable": TRUTH,
    "replayed": TRUTH,
    "indexing": INDEXING,
    "verification": result(
        {
            "status": TEXT,
            "revision_id": TEXT,
            "readback_available": TRUTH,
            "checked_messages": COUNT,
            "readback_error": TEXT,
            "readback": result(
                {"offset": COUNT, "messages": results(COMPACT_MESSAGE), "nextOffset": COUNT_OR_NULL, "total": COUNT}
            ),
        },
        optional=("checked_messages", "readback_error", "readback"),
    ),
    "readback_requests": results(_REQUEST),
}
"""What a receipt says of one write."""
SCHEMA: Final[JsonObject] = result(
    {**WRITTEN, "omitted": TEXTS, "used_serialized_bytes": COUNT, "max_serialized_bytes": COUNT},
    optional=("previous_revision_id", "replayed", "verification", "readback_requests", "omitted"),
)
