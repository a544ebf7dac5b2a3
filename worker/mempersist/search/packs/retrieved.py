"""What searches bring into a pack, best first, each hit with the messages around it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, Ports
from mempersist.search.context import get_context
from mempersist.search.packs.model import Diagnostics, Evidence, Omitted, Pin, Retrieve, Section, Warned
from mempersist.search.query import Hit, SearchResult, search

WAVE: Final = 4
CHANNELS: Final = ("fts", "semantic", "recent_canonical")


@dataclass(frozen=True, slots=True)
class Found:
    """A hit, the search that brought it and that search's place among them."""

    request_index: int
    request: Retrieve
    hit: Hit


async def find(ports: Ports, account: AccountId, retrieve: Sequence[Retrieve], diagnostics: Diagnostics) -> list[Found]:
    """The hits of all searches in the order in which they may go into the pack.

    :raises MempersistError: AUTHENTICATION for a namespace that the account does not own.
    """
    results = await gather((_search(ports, account, item) for item in retrieve), limit=WAVE)
    down = {name for result in results for name in result.unavailable}
    diagnostics.unavailable += [name for name in CHANNELS if name in down]
    found = [
        Found(index, request, hit)
        for index, (request, result) in enumerate(zip(retrieve, results, strict=True))
        for hit in result.results
    ]
    return sorted(
        found,
        key=lambda item: (
            -item.request.priority,
            -item.hit.score,
            item.request_index,
            item.hit.conversation_id,
            item.hit.chunk_id,
        ),
    )


async def _search(ports: Ports, account: AccountId, item: Retrieve) -> SearchResult:
    try:
        return await search(
            ports,
            account,
            query=item.query,
            limit=item.limit,
            namespace=item.namespace,
            tags=item.tags,
            tag_mode=item.tag_mode,
        )
    except MempersistError as error:
        if error.code is not Code.RETRYABLE_INFRASTRUCTURE:
            raise
        return SearchResult((), degraded=True, unavailable=CHANNELS)


async def sections(
    ports: Ports,
    account: AccountId,
    found: Sequence[Found],
    pins: Mapping[str, str],
    diagnostics: Diagnostics,
    has_room: Callable[[], bool],
) -> AsyncIterator[Section]:
    """A section for each of ``found``, read a few at a time as long as there is room. One whose conversation has
    changed since it was found, or is pinned at another revision, is told as stale.

    :param pins: the revision of each conversation that the pack has already.
    """
    pinned = dict(pins)
    for start in range(0, len(found), WAVE):
        if not has_room():
            diagnostics.omitted += [_omitted(item, "budget") for item in found[start:]]
            return
        wave = found[start : start + WAVE]
        for item, section in zip(wave, await gather(_section(ports, account, item) for item in wave), strict=True):
            if isinstance(section, str):
                reason = section
            else:
                expected = pinned.setdefault(item.hit.conversation_id, item.hit.revision_id)
                if section.pin.revision_id == expected == item.hit.revision_id:
                    yield section
                    continue
                reason = "stale_revision"
            diagnostics.omitted.append(_omitted(item, reason))
            if reason == "stale_revision":
                diagnostics.warnings.append(Warned("STALE_REVISION", item.hit.conversation_id, item.hit.revision_id))


def _omitted(item: Found, reason: str) -> Omitted:
    return Omitted("retrieved", item.hit.conversation_id, item.hit.revision_id, reason)


async def _section(ports: Ports, account: AccountId, item: Found) -> Section | str:
    """The section, or why there is none."""
    hit = item.hit
    try:
        context = await get_context(
            ports, account, chunk_id=hit.chunk_id, before=item.request.before, after=item.request.after
        )
    except MempersistError as error:
        return "stale_revision" if error.code is Code.NOT_FOUND else "unavailable"
    pin = Pin(hit.conversation_id, context.revision_id, hit.title, hit.namespace, 0, 0)
    return Section(
        "retrieved",
        item.request_index,
        item.request.priority,
        pin,
        tuple(view.node for view in context.messages),
        evidence=Evidence(item.request_index, hit.chunk_id, round(hit.score, 6), hit.sources),
        matched_ranges=context.matched_ranges,
    )
