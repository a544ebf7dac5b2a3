"""Committing what an import's parser hands over: new, changed and unchanged conversations, many in one commit."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from mempersist import canonical, timestamps
from mempersist.archive import accounts, codec, load, revisions, segments
from mempersist.archive.commit import Draft, commit, refold
from mempersist.archive.deletion import require_purged
from mempersist.archive.model import HeadEntry, SourceConversation
from mempersist.archive.revisions import NewRevision
from mempersist.archive.segments import EncodedNode
from mempersist.catalog.bulk import json_parameters
from mempersist.catalog.fold import StoredManifest
from mempersist.concurrency import gather
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, ObjectNotFound, Ports, Row, Statement
from mempersist.text import utf8_safe

_MAX_RACES = 5


@dataclass(frozen=True, slots=True)
class ImportItem:
    """One conversation of an import. ``position`` names its place there, the same at every try."""

    position: str
    source: SourceConversation


@dataclass(frozen=True, slots=True)
class ImportOutcome:
    """What became of one item.

    :param status: ``duplicate``: this import brought the same conversation before, at another position, and this copy
        adds nothing. ``failed``: see ``code`` and ``problem``; nothing of the item was stored.
    :param messages: messages in the item, whatever became of it.
    """

    conversation_id: str
    revision_id: str | None
    status: Literal["created", "updated", "unchanged", "duplicate", "failed"]
    messages: int
    code: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    position: str
    source: SourceConversation
    conversation_id: str
    nodes: tuple[EncodedNode, ...]
    messages: int


@dataclass(frozen=True, slots=True)
class _Plan:
    outcome: ImportOutcome
    draft: Draft | None = None


def conversation_id_of(account: AccountId, source: SourceConversation) -> str:
    return canonical.conversation_id(account, source.source_type, source.source_key)


async def import_conversations(
    ports: Ports,
    account: AccountId,
    import_id: str,
    namespace: str,
    items: Sequence[ImportItem],
    *,
    extra: Callable[[Sequence[ImportOutcome]], Sequence[Statement]],
) -> tuple[ImportOutcome, ...]:
    """Commit ``items`` and, in the same catalog batch, what ``extra`` makes of their outcomes.

    Items already committed by an interrupted earlier call are recognised by their head entries and reported as they
    were then, so repeating a call changes nothing. Two copies of one conversation must come in two calls.

    :raises ValueError: for two copies of a conversation.
    :raises MempersistError: CANONICAL_STORAGE; nothing of ``extra`` was recorded then and the call may be repeated.
    :raises CatalogError: likewise.
    """
    encoded = [_encode(account, item) for item in items]
    wanted = [item for item in encoded if isinstance(item, _Item)]
    if len({item.conversation_id for item in wanted}) != len(wanted):
        raise ValueError("one call takes a conversation once")
    await accounts.claim_namespace(ports, account, namespace)
    for _ in range(_MAX_RACES):
        plans = await _plan_all(ports, account, import_id, namespace, wanted)
        planned = iter(plans)
        outcomes = tuple(next(planned).outcome if isinstance(item, _Item) else item for item in encoded)
        drafts = [plan.draft for plan in plans if plan.draft]
        result = await commit(
            ports, account, drafts, extra=functools.partial(_unless_conflicts, functools.partial(extra, outcomes))
        )
        if not result.conflicts:
            return outcomes
        for conversation_id in sorted(result.conflicts):
            await refold(ports, account, conversation_id)
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the conversations are being written elsewhere; try again")


def _unless_conflicts(extra: Callable[[], Sequence[Statement]], conflicts: frozenset[str]) -> Sequence[Statement]:
    return () if conflicts else extra()


def _encode(account: AccountId, item: ImportItem) -> _Item | ImportOutcome:
    conversation_id = conversation_id_of(account, item.source)
    messages = sum(node.kind != "none" for node in item.source.nodes)
    try:
        nodes = segments.encode_nodes(item.source.nodes)
    except (ValueError, RecursionError) as error:
        problem = f"a message holds a value that JSON cannot store ({type(error).__name__})"
        return ImportOutcome(conversation_id, None, "failed", messages, "UNSTORABLE_VALUE", problem)
    return _Item(item.position, item.source, conversation_id, nodes, messages)


async def _plan_all(
    ports: Ports, account: AccountId, import_id: str, namespace: str, items: Sequence[_Item]
) -> list[_Plan]:
    rows: dict[str, Row] = {}
    for parameter in json_parameters(item.conversation_id for item in items):
        found = await ports.catalog.query(
            "SELECT c.conversation_id, c.namespace, c.title, c.created_at, c.updated_at, c.head_seq, c.head_hash,"
            " c.revision_id, c.deleted_at, r.manifest_key, r.import_id,"
            " (SELECT json_group_array(tag) FROM (SELECT t.tag FROM conversation_tags AS t"
            " WHERE t.conversation_id = c.conversation_id ORDER BY t.position)) AS tags"
            " FROM json_each(?) AS wanted CROSS JOIN conversations AS c ON c.conversation_id = wanted.value"
            " LEFT JOIN revisions AS r ON r.conversation_id = c.conversation_id AND r.revision_id = c.revision_id"
            " WHERE c.account_id = ?",
            (parameter, account),
        )
        rows.update({row["conversation_id"]: row for row in found})
    await require_purged(ports, account, [key for key, row in rows.items() if row["deleted_at"] is not None])
    at = timestamps.from_ms(ports.clock.now_ms())
    planner = _Planner(ports, account, import_id, namespace, at)
    return await gather(planner.plan(item, rows.get(item.conversation_id)) for item in items)


@dataclass(frozen=True, slots=True)
class _Planner:
    """Decides what an item changes, given where its conversation stands."""

    ports: Ports
    account: AccountId
    import_id: str
    namespace: str
    at: str

    async def plan(self, item: _Item, row: Row | None) -> _Plan:
        if row is None or row["deleted_at"] is not None:
            revision = revisions.imported(item.conversation_id, item.source, item.nodes, self.at)
            return self._changed(item, row, revision, "created")
        try:
            stored = await load.manifest(self.ports.objects, row["manifest_key"])
            if stored.manifest.source_digest == revisions.source_fields(item.source, item.nodes).digest:
                return await self._same(item, row, stored)
            base = await load.revision(self.ports.objects, stored)
        except (ObjectNotFound, codec.UnreadableObject) as error:
            problem = f"what is stored of this conversation is damaged ({type(error).__name__}); verify tells more"
            return _Plan(
                ImportOutcome(item.conversation_id, None, "failed", item.messages, "STORED_OBJECT_DAMAGED", problem)
            )
        newer = _not_older(item.source.updated_at, stored.manifest.source_updated_at)
        merged = revisions.merged(base, item.source, item.nodes, self.at, newer=newer)
        if merged is None:
            return await self._same(item, row, stored)
        return self._changed(item, row, merged, "updated", newer=newer)

    async def _same(self, item: _Item, row: Row, stored: StoredManifest) -> _Plan:
        """The graph is as stored: a new title may be left to record, or an earlier try of this import did it all."""
        newer = _not_older(item.source.updated_at, stored.manifest.source_updated_at)
        if newer and utf8_safe(item.source.title) != row["title"]:
            entry = self._entry(item, row, row["revision_id"], item.source.title, newer=True)
            outcome = ImportOutcome(item.conversation_id, row["revision_id"], "updated", item.messages)
            return _Plan(outcome, Draft(entry, stored))
        status = await self._status_of_own_work(item, row)
        return _Plan(ImportOutcome(item.conversation_id, row["revision_id"], status, item.messages))

    async def _status_of_own_work(
        self, item: _Item, row: Row
    ) -> Literal["created", "updated", "unchanged", "duplicate"]:
        if row["import_id"] != self.import_id:
            return "unchanged"
        log = await load.head_log(self.ports.objects, item.conversation_id)
        own = [index for index, (entry, _) in enumerate(log) if entry.import_id == self.import_id]
        if not any(log[index][0].import_position == item.position for index in own):
            return "duplicate"
        first = own[0]
        return "created" if first == 0 or log[first - 1][0].deleted else "updated"

    def _changed(
        self,
        item: _Item,
        row: Row | None,
        revision: NewRevision,
        status: Literal["created", "updated"],
        *,
        newer: bool = True,
    ) -> _Plan:
        title = item.source.title if newer or row is None else row["title"]
        entry = self._entry(item, row, revision.manifest.revision_id, title, newer=newer)
        return _Plan(
            ImportOutcome(item.conversation_id, entry.revision_id, status, item.messages),
            Draft(
                entry,
                revision.stored,
                segments=revision.segments,
                new_manifest=True,
                messages=revision.messages,
                replace_messages=revision.replace_messages,
            ),
        )

    def _entry(self, item: _Item, row: Row | None, revision_id: str, title: str, *, newer: bool) -> HeadEntry:
        source = item.source
        live = row is not None and row["deleted_at"] is None
        updated_at = source.updated_at or source.created_at or self.at
        if row is not None and live:
            updated_at = max(updated_at, row["updated_at"]) if newer else row["updated_at"]
        return HeadEntry(
            conversation_id=item.conversation_id,
            seq=row["head_seq"] + 1 if row is not None else 0,
            operation="import",
            account_id=self.account,
            namespace=row["namespace"] if row is not None and live else self.namespace,
            title=title,
            tags=tuple(json.loads(row["tags"])) if row is not None and live else (),
            revision_id=revision_id,
            source_type=source.source_type,
            source_id=source.source_id,
            created_at=row["created_at"] if row is not None and live else source.created_at,
            updated_at=updated_at,
            at=self.at,
            previous_hash=row["head_hash"] if row is not None else None,
            import_id=self.import_id,
            import_position=item.position,
        )


def _not_older(incoming: str | None, stored: str | None) -> bool:
    return incoming is None or stored is None or incoming >= stored
