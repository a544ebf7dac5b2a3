"""The conversations that a pack must hold: resolved, pinned, read, and followed to where they point."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from mempersist.archive.model import Node
from mempersist.archive.read import read_page
from mempersist.catalog.titles import find_by_title
from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError, not_found, validation
from mempersist.limits import MIB
from mempersist.ports import AccountId, Ports
from mempersist.search.packs import pointers
from mempersist.search.packs.model import Diagnostics, Extent, Follow, Kind, Pin, Required, Section, Warned
from mempersist.text import utf8_length

WAVE: Final = 4
"""Conversations that are read at a time."""
ENOUGH_TEXT_BYTES: Final = 128 * 1024
"""Text beyond this fits no answer, so that nothing is read behind it."""
_PAGE: Final = 200
_LOOK_BACK: Final = 10
_MOST_LOOKED_AT: Final = 200
"""Messages in which a pointer is looked for, from the newest back."""
_CANDIDATES: Final = 20


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A section that is to be read, and the pointers that are to be followed from it."""

    kind: Kind
    request_index: int
    priority: int
    pin: Pin
    extent: Extent
    follow: tuple[Follow, ...]


@dataclass(slots=True)
class _Reading:
    """One pack being gathered. ``seen``: what has been read already, so that pointers in a circle end."""

    ports: Ports
    account: AccountId
    namespace: str | None
    diagnostics: Diagnostics
    pins: dict[str, Pin] = field(default_factory=dict)
    seen: set[tuple[str, Extent]] = field(default_factory=set)


async def gather_required(
    ports: Ports,
    account: AccountId,
    namespace: str | None,
    required: Sequence[Required],
    diagnostics: Diagnostics,
) -> list[Section]:
    """A section for each of ``required`` and for each conversation that they point to. A pointer that leads nowhere
    is a warning if it is optional.

    :raises MempersistError: NOT_FOUND, AMBIGUOUS_TITLE with the candidates' ids, or VALIDATION for a required pointer
        that is missing; CANONICAL_STORAGE.
    """
    reading = _Reading(ports, account, namespace, diagnostics)
    selected = await gather(_selected(reading, index, item) for index, item in enumerate(required))
    pins = await _pinned(reading, selected)
    wanted = []
    for index, (item, conversation_id) in enumerate(zip(required, selected, strict=True)):
        pin = pins.get(conversation_id)
        if pin is None:
            raise _at(not_found("conversation"), f"required[{index}].selector")
        wanted.append(_Wanted("required", index, item.priority, pin, item.extent, item.follow))
    sections: list[Section] = []
    while wanted:
        fresh = [item for item in wanted if _is_new(reading, item)]
        sections += await gather((_read(reading, item) for item in fresh), limit=WAVE)
        wanted = await _followed(reading, wanted)
    return sections


def _is_new(reading: _Reading, item: _Wanted) -> bool:
    key = (item.pin.conversation_id, item.extent)
    if key in reading.seen:
        return False
    reading.seen.add(key)
    return True


# ------------------------------------------------------------------ who is meant


async def _selected(reading: _Reading, index: int, item: Required) -> str:
    if isinstance(item.selector, str):
        return item.selector
    matches, more = await find_by_title(reading.ports, reading.account, item.selector)
    place = f"required[{index}].selector"
    if not matches:
        raise _at(not_found("conversation"), place)
    if len(matches) > 1:
        told = "more than" if more else "exactly"
        raise MempersistError(
            Code.AMBIGUOUS_TITLE,
            f"{place}: {told} {len(matches)} conversations have this title; name one by conversation_id, or narrow"
            " the selector by namespace or tags",
            details={"field": place, "candidates": [match.conversation_id for match in matches[:_CANDIDATES]]},
        )
    return matches[0].conversation_id


async def _pinned(reading: _Reading, conversation_ids: Sequence[str]) -> dict[str, Pin]:
    """The live ones among ``conversation_ids`` at their current revision, or at that which the pack has them at."""
    missing = [item for item in dict.fromkeys(conversation_ids) if item not in reading.pins]
    condition, params = ("", []) if reading.namespace is None else (" AND namespace = ?", [reading.namespace])
    rows = await reading.ports.catalog.query(
        "SELECT conversation_id, revision_id, title, namespace, message_count, node_count FROM conversations"
        " WHERE account_id = ? AND conversation_id IN (SELECT value FROM json_each(?))"
        f" AND deleted_at IS NULL AND revision_id IS NOT NULL{condition}",
        (reading.account, json.dumps(missing), *params),
    )
    for row in rows:
        reading.pins[row["conversation_id"]] = Pin(
            row["conversation_id"],
            row["revision_id"],
            row["title"],
            row["namespace"],
            row["message_count"],
            row["node_count"],
        )
    return {item: reading.pins[item] for item in conversation_ids if item in reading.pins}


def _at(error: MempersistError, place: str) -> MempersistError:
    return MempersistError(error.code, error.message, details={"field": place})


# ------------------------------------------------------------------ what it says


async def _read(reading: _Reading, item: _Wanted) -> Section:
    total = item.pin.messages if item.extent.branch == "active" else item.pin.nodes
    offset = max(0, total - item.extent.tail) if item.extent.mode == "tail" else 0
    messages: list[Node] = []
    used, not_read = 0, 0
    following: int | None = offset
    while following is not None:
        if used > ENOUGH_TEXT_BYTES:
            not_read = await _stored_bytes(reading, item, following)
            break
        page = await read_page(
            reading.ports,
            reading.account,
            item.pin.conversation_id,
            offset=following,
            limit=_PAGE,
            branch=item.extent.branch,
            revision_id=item.pin.revision_id,
            max_bytes=MIB,
        )
        messages += [view.node for view in page.messages]
        used += sum(utf8_length(view.node.text) for view in page.messages)
        following = page.next_offset
    return Section(item.kind, item.request_index, item.priority, item.pin, tuple(messages), not_read)


async def _stored_bytes(reading: _Reading, item: _Wanted, offset: int) -> int:
    place = "sequence" if item.extent.branch == "active" else "ordinal"
    rows = await reading.ports.catalog.query(
        f"SELECT coalesce(sum(byte_length), 0) AS total FROM messages"
        f" WHERE account_id = ? AND conversation_id = ? AND {place} >= ?",
        (reading.account, item.pin.conversation_id, offset),
    )
    return int(rows[0]["total"])


# ------------------------------------------------------------------ where it points


async def _followed(reading: _Reading, wanted: Sequence[_Wanted]) -> list[_Wanted]:
    """What the pointers of ``wanted`` lead to."""
    pairs = [(item, follow) for item in wanted for follow in item.follow]
    targets = await gather((_target(reading, item.pin, follow) for item, follow in pairs), limit=WAVE)
    pins = await _pinned(reading, [target for target in targets if target is not None])
    found = []
    for (item, follow), target in zip(pairs, targets, strict=True):
        pin = None if target is None else pins.get(target)
        if pin is None:
            if follow.required:
                raise _dangling(item, follow, is_missing=target is None)
            warning = Warned("POINTER_MISSING", item.pin.conversation_id, item.pin.revision_id, field=follow.field)
            reading.diagnostics.warnings.append(warning)
            continue
        optional = item.kind == "expanded_optional" or not follow.required
        kind: Kind = "expanded_optional" if optional else "expanded_required"
        found.append(_Wanted(kind, item.request_index, follow.priority, pin, follow.extent, follow.follow))
    # A conversation that two pointers lead to comes with the greater authority.
    return sorted(found, key=lambda item: item.kind != "expanded_required")


def _dangling(item: _Wanted, follow: Follow, *, is_missing: bool) -> MempersistError:
    place = f"required[{item.request_index}].follow"
    if is_missing:
        return validation(
            place,
            f"the pointer '{follow.field}' of conversation {item.pin.conversation_id} is not there, cleared or no id;"
            " write it there, or follow it with required: false",
        )
    return _at(not_found("conversation"), place)


async def _target(reading: _Reading, pin: Pin, follow: Follow) -> str | None:
    """The id in the newest message of the active branch that mentions the field."""
    end = pin.messages
    while end > max(0, pin.messages - _MOST_LOOKED_AT):
        start = max(0, end - _LOOK_BACK)
        page = await read_page(
            reading.ports,
            reading.account,
            pin.conversation_id,
            offset=start,
            limit=end - start,
            revision_id=pin.revision_id,
        )
        for view in reversed(page.messages):
            value = pointers.mention(view.node.text, follow.field)
            if value is not None:
                return pointers.target(value)
        end = start
    return None
