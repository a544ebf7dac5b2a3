"""The parts of a context pack as JSON and as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mempersist.archive.model import JsonObject, Node
from mempersist.mcp import budget
from mempersist.mcp.messages import compact
from mempersist.search.packs.model import Evidence, Kind, Omitted, Section, Warned
from mempersist.text import printable
from mempersist.transcript import labelled

_HEADINGS: Final[dict[Kind, str]] = {
    "required": "Required memory",
    "expanded_required": "Required memory",
    "expanded_optional": "Optional memory",
    "retrieved": "Retrieved evidence",
}


def message(section: Section, node: Node, *, provenance: bool) -> JsonObject:
    short = compact(node)
    value: JsonObject = {
        "source_node_id": short["sourceNodeId"],
        "role": short["role"],
        "created_at": short["createdAt"],
        "updated_at": short["updatedAt"],
        "text": short["text"],
        "conversation_id": section.pin.conversation_id,
        "revision_id": section.pin.revision_id,
    }
    if provenance:
        value["provenance"] = {"kind": section.kind, "request_index": section.request_index}
        if section.evidence is not None:
            value["provenance"] = with_evidence(value["provenance"], section.evidence)
    return value


def with_evidence(provenance: JsonObject, evidence: Evidence) -> JsonObject:
    """``provenance`` that also tells of a search which found the message."""
    known = provenance.get("chunk_ids", [])
    if evidence.chunk_id in known:
        return provenance
    return {
        **provenance,
        "chunk_ids": [*known, evidence.chunk_id],
        "score": max(evidence.score, provenance.get("score", 0.0)),
        "sources": sorted({*evidence.sources, *provenance.get("sources", ())}),
    }


def section_head(section: Section) -> JsonObject:
    """The section without messages."""
    value: JsonObject = {
        "kind": section.kind,
        "request_index": section.request_index,
        "title": printable(section.pin.title),
        "priority": section.priority,
        "conversation_id": section.pin.conversation_id,
        "revision_id": section.pin.revision_id,
        "messages": [],
        "estimated_tokens": 0,
        "serialized_bytes": 0,
    }
    if section.evidence is not None:
        value["matched_chunk_ids"] = [section.evidence.chunk_id]
        value["matched_ranges"] = _ranges(section)
    return value


def _ranges(section: Section) -> list[JsonObject]:
    """Matched characters, counted in the texts as they are answered, without control characters."""
    texts = {node.source_node_id: node.text for node in section.messages}
    ranges = []
    for item in section.matched_ranges:
        text = texts.get(item.source_node_id)
        if text is not None:
            start = len(printable(text[: item.char_start]))
            inside = len(printable(text[item.char_start : item.char_end]))
            ranges.append(
                {
                    "source_node_id": printable(item.source_node_id),
                    "char_start": start,
                    "char_end": start + inside,
                }
            )
    return ranges


def heading(section: Section) -> str:
    """What stands above a section in the compiled text."""
    chunk = f"\nChunk {section.evidence.chunk_id}" if section.evidence is not None else ""
    return (
        f"# {_HEADINGS[section.kind]}: {printable(section.pin.title)}\n"
        f"Conversation {section.pin.conversation_id}\nRevision {section.pin.revision_id}{chunk}\n\n"
    )


def said(value: JsonObject) -> str:
    """A message of a pack as text."""
    return labelled(value["role"], value["created_at"], value["text"])


def omitted(item: Omitted) -> JsonObject:
    return {
        "kind": item.kind,
        "conversation_id": item.conversation_id,
        "revision_id": item.revision_id,
        "reason": item.reason,
    }


def warning(item: Warned) -> JsonObject:
    names = ("code", "conversation_id", "revision_id", "source_node_id", "bytes", "field")
    value: JsonObject = budget.clean({name: getattr(item, name) for name in names})
    return {name: given for name, given in value.items() if given is not None}


def capped(items: Sequence[JsonObject], most: int) -> list[JsonObject]:
    """``items`` without repeats, at most so many."""
    unique: list[JsonObject] = []
    for item in items:
        if item not in unique:
            unique.append(item)
        if len(unique) == most:
            break
    return unique
