"""Turns that read conversations: a bounded run of items from one file, committed together with the next checkpoint."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from mempersist.archive import graph
from mempersist.archive.importing import ImportItem, ImportOutcome, conversation_id_of, import_conversations
from mempersist.archive.model import SourceConversation
from mempersist.catalog.bulk import json_parameters
from mempersist.errors import Code, MempersistError
from mempersist.imports import archives, staging
from mempersist.imports.chatgpt.conversation import normalise
from mempersist.imports.counts import NOTHING, Counts, Fate, tally
from mempersist.imports.layout import ExportLayout
from mempersist.imports.problems import Finding, ItemError
from mempersist.imports.records import FindingRow
from mempersist.imports.runs import Run, Step, insert_at_turn, now_of, settle
from mempersist.imports.scanner import START, ScannedItem, ScanPosition, scan
from mempersist.imports.source import ByteSource
from mempersist.imports.state import State
from mempersist.jobs import CONTINUE, Job, Outcome
from mempersist.limits import (
    BYTES_PER_CONTAINER,
    BYTES_PER_NODE,
    MAX_CONVERSATION_BYTES,
    MAX_TURN_BYTES,
    MAX_TURN_CONVERSATIONS,
    MAX_TURN_ITEMS,
)
from mempersist.ports import AccountId, Ports, Statement


@dataclass(slots=True)
class Batch:
    """What a turn has read from one file.

    :param items: conversations to commit. :param with_text: messages of theirs that have text.
    :param counts: of what is settled already, because there is nothing of it to commit.
    :param next: where the next turn goes on; None at the file's end.
    """

    items: list[ImportItem] = field(default_factory=list)
    with_text: int = 0
    findings: list[FindingRow] = field(default_factory=list)
    counts: Counts = NOTHING
    asset_ids: set[str] = field(default_factory=set)
    next: ScanPosition | None = None


async def step(ports: Ports, job: Job, run: Run) -> Step | Outcome:
    """:raises MoreToStage: / :raises PiecesLost: / :raises LeaseLost: and what ``import_conversations`` raises."""
    state, layout = await _locate(ports, job, run)
    if layout is None:
        return Step(state)
    file = layout.conversations[state.file]
    label = archives.label(run, state.archive, file)
    at = ScanPosition.from_json(state.scan) if state.scan else START
    if state.scan is None and state.file:
        await staging.drop(ports.objects, archives.file_prefix(run, state.archive, state.file - 1))
    try:
        source = await archives.open_file(ports, job, run, state.archive, layout, state.file)
        batch = await read_batch(source, run.account, at, label, ports.conversation_bytes)
    except ItemError as error:
        return _unreadable(state, FindingRow(label, "failed", error.code, error.message))
    except MempersistError as error:
        if error.code is not Code.PERMANENT_PARSER:
            raise
        return _unreadable(state, FindingRow(label, "failed", error.details["reason"], error.message))
    after = _after(state, batch, at, source.size)
    if not batch.items:
        return Step(after, batch.findings, batch.counts, _asset_refs(run, batch))
    known = await _read_before(ports, run, batch.items)

    def record(outcomes: Sequence[ImportOutcome]) -> list[Statement]:
        return settle(run, job, _committed(run, after, batch, outcomes, known), now_of(ports))

    await import_conversations(ports, run.account, run.import_id, run.namespace, batch.items, extra=record)
    return CONTINUE


async def read_batch(
    source: ByteSource, account: AccountId, at: ScanPosition, label: str, largest: int = MAX_CONVERSATION_BYTES
) -> Batch:
    """Read from ``at`` on until a bound of the turn is reached or the file ends.

    :param largest: bytes of one conversation, from which the turn's own bounds follow.
    :raises MempersistError: PERMANENT_PARSER: nothing of the file can be read.
    """
    batch = Batch(next=at)
    seen: set[str] = set()
    containers = nodes = 0
    async with contextlib.aclosing(scan(source, at, max_item_bytes=largest)) as items:
        async for item in items:
            if isinstance(item, Finding):
                batch.findings.append(FindingRow(f"{label}:{item.position}", item.severity, item.code, item.message))
                continue
            containers += item.containers
            nodes += _nodes_in(item.value)
            full = (
                item.end - at.offset > min(MAX_TURN_BYTES, largest)
                or containers > largest // BYTES_PER_CONTAINER
                or nodes > largest // BYTES_PER_NODE
            )
            if item.ordinal > at.ordinal and full:
                return batch
            conversation = _conversation(item, batch, label, largest // BYTES_PER_NODE)
            if conversation is not None:
                conversation_id = conversation_id_of(account, conversation)
                if conversation_id in seen:
                    return batch  # a second copy is committed in a turn of its own
                seen.add(conversation_id)
                _take(batch, conversation, item, label)
            batch.next = item.next
            if len(batch.items) >= MAX_TURN_CONVERSATIONS or item.ordinal - at.ordinal >= MAX_TURN_ITEMS - 1:
                return batch
    batch.next = None
    return batch


def _conversation(item: ScannedItem, batch: Batch, label: str, most_nodes: int) -> SourceConversation | None:
    """The item as a conversation, or None after noting in ``batch`` why it is none."""
    error = item.error
    if error is None:
        try:
            _check_nodes(item.value, most_nodes)
            return normalise(item.value)
        except ItemError as problem:
            error = problem
        except Exception as defect:  # one odd item must not stop an import, whatever it trips over
            error = ItemError("UNEXPECTED", f"the parser cannot read this item ({type(defect).__name__})")
    fate: Literal["skipped", "failed"] = "skipped" if error.skipped else "failed"
    batch.counts += Counts(conversations=tally(fate), messages=tally(fate, _messages_in(item.value)))
    batch.findings.append(
        FindingRow(f"{label}:{item.ordinal}", fate, error.code, error.message, _source_id(item.value))
    )
    return None


def _nodes_in(value: Any) -> int:
    mapping = value.get("mapping") if isinstance(value, dict) else None
    return len(mapping) if isinstance(mapping, dict) else 0


def _check_nodes(value: Any, most: int) -> None:
    if _nodes_in(value) > most:
        message = f"this conversation has more than the {most} messages that this host can hold; the upload keeps it"
        raise ItemError("TOO_MANY_PARTS", message)


def _take(batch: Batch, conversation: SourceConversation, item: ScannedItem, label: str) -> None:
    position = f"{label}:{item.ordinal}"
    batch.items.append(ImportItem(position, conversation))
    for node in conversation.nodes:
        batch.with_text += node.kind != "none" and bool(node.text) and not node.text.isspace()
        batch.asset_ids.update(asset.asset_id for asset in node.assets)
    for note in item.notes:
        batch.findings.append(FindingRow(position, note.severity, note.code, note.message, conversation.source_id))
    path = graph.active_path(graph.parents_of(conversation.nodes), conversation.current_source_node_id)
    for anomaly in sorted({text.partition(":")[0] for text in (*conversation.anomalies, *path.anomalies)}):
        batch.findings.append(FindingRow(position, "note", anomaly.upper(), "kept as it is", conversation.source_id))


def _committed(run: Run, after: State, batch: Batch, outcomes: Sequence[ImportOutcome], known: frozenset[str]) -> Step:
    """The turn's step, now that it is known what became of its conversations."""
    counts = batch.counts + Counts(messages_with_text=batch.with_text)
    findings = list(batch.findings)
    for item, outcome in zip(batch.items, outcomes, strict=True):
        fate, finding = _fate(item, outcome, again=outcome.conversation_id in known)
        findings += [finding] if finding else []
        counts += Counts(
            conversations=tally(fate),
            messages=tally(fate, outcome.messages),
            created=int(outcome.status == "created"),
            updated=int(outcome.status == "updated"),
        )
    held = ([outcome.conversation_id] for outcome in outcomes if outcome.revision_id is not None)
    statements = [*insert_at_turn(run, "import_items", ("conversation_id",), held), *_asset_refs(run, batch)]
    return Step(after, findings, counts, statements)


def _fate(item: ImportItem, outcome: ImportOutcome, *, again: bool) -> tuple[Fate, FindingRow | None]:
    """What became of an item, and what there is to say of it. ``again``: this import read the conversation before."""
    position, source_id = item.position, item.source.source_id
    if outcome.status == "failed":
        return "failed", FindingRow(position, "failed", outcome.code, outcome.problem, source_id)
    if outcome.status == "duplicate" or (again and outcome.status == "unchanged"):
        message = "another copy in this export already holds all of it"
        return "skipped", FindingRow(position, "skipped", "DUPLICATE_CONVERSATION", message, source_id)
    if outcome.status == "unchanged":
        return "unchanged", None
    if again:
        message = "another copy in this export differs; all messages are kept and the newer text stands"
        return "imported", FindingRow(position, "note", "CONFLICTING_COPY", message, source_id)
    return "imported", None


async def _read_before(ports: Ports, run: Run, items: Sequence[ImportItem]) -> frozenset[str]:
    """Which of these conversations this import has read before."""
    known: set[str] = set()
    for parameter in json_parameters(conversation_id_of(run.account, item.source) for item in items):
        rows = await ports.catalog.query(
            "SELECT conversation_id FROM import_items"
            " WHERE import_id = ? AND conversation_id IN (SELECT value FROM json_each(?))",
            (run.import_id, parameter),
        )
        known.update(row["conversation_id"] for row in rows)
    return frozenset(known)


async def _locate(ports: Ports, job: Job, run: Run) -> tuple[State, ExportLayout | None]:
    """The state at the next file there is, with its archive's layout; or at the first asset, with None."""
    state = run.state
    while state.archive < state.archives:
        layout = await archives.layout_of(ports, job, run, state.archive)
        if layout is not None and state.file < len(layout.conversations):
            return state, layout
        state = replace(state, archive=state.archive + 1, file=0)
    return replace(state, phase="assets", archive=0, file=0), None


def _unreadable(state: State, finding: FindingRow) -> Step:
    """One file cannot be read; the others can."""
    return Step(replace(state, file=state.file + 1, scan=None), [finding], Counts(files=tally("failed")))


def _after(state: State, batch: Batch, at: ScanPosition, size: int) -> State:
    if batch.next is not None:
        done = batch.next.offset - at.offset
        return replace(state, scan=batch.next.as_json(), bytes_done=state.bytes_done + done)
    # Counted here and not in the batch, so that each file is counted by the turn that reaches its end.
    counts = state.counts + Counts(files=tally("imported"))
    done = size - at.offset
    return replace(state, file=state.file + 1, scan=None, bytes_done=state.bytes_done + done, counts=counts)


def _asset_refs(run: Run, batch: Batch) -> list[Statement]:
    return insert_at_turn(run, "import_asset_refs", ("asset_id",), ([asset] for asset in sorted(batch.asset_ids)))


def _messages_in(value: Any) -> int:
    """Messages in an item that is no readable conversation, as far as they can be told."""
    mapping = value.get("mapping") if isinstance(value, dict) else None
    if not isinstance(mapping, dict):
        return 0
    return sum(isinstance(node, dict) and isinstance(node.get("message"), dict) for node in mapping.values())


def _source_id(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    found = value.get("id") or value.get("conversation_id")
    return found if isinstance(found, str) else None
