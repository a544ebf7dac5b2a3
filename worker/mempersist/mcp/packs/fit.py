"""Whole messages of a context pack into its two budgets: all that is required or nothing, then what there is room for.

Costs are counted on the way and rounded up; the finished answer is measured, and sheds what is of least authority
should it still be too large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from mempersist import limits
from mempersist.archive.model import JsonObject, Node
from mempersist.index.chunking import estimate_tokens
from mempersist.mcp import budget
from mempersist.mcp.packs import parts
from mempersist.search.packs.model import Diagnostics, Omitted, Section, Warned

ESTIMATOR: Final = "mempersist-token-estimate-v1"
MOST_WARNINGS: Final = 20
MOST_OMITTED: Final = 20
DIAGNOSTIC_BYTES: Final = 512
"""Kept free of optional content, so that what is left out can be told."""
_WIDEST: Final = 2**31
_COMMA: Final = 1


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a pack may have, and what of it is wanted."""

    max_tokens: int
    max_bytes: int
    deduplicate: bool
    provenance: bool
    compiled: bool


@dataclass(slots=True)
class Placed:
    """A section of the pack with the messages that it has so far, by place."""

    section: Section
    messages: dict[int, JsonObject] = field(default_factory=dict)

    def as_json(self) -> JsonObject:
        values = [self.messages[place] for place in sorted(self.messages)]
        tokens = sum(estimate_tokens(value["text"]) for value in values)
        head = parts.section_head(self.section)
        return {**head, "messages": values, "estimated_tokens": tokens, "serialized_bytes": budget.size(values)}

    def as_text(self) -> str:
        values = (self.messages[place] for place in sorted(self.messages))
        return parts.heading(self.section) + "".join(parts.said(value) for value in values)


@dataclass(slots=True)
class Packing:
    """A pack being filled. ``pins`` are those of what is required; ``bytes_used`` counts what sections take of the
    answer; ``where`` tells which messages are there."""

    allowance: Allowance
    frame: JsonObject
    diagnostics: Diagnostics
    placed: list[Placed] = field(default_factory=list)
    pins: dict[str, str] = field(default_factory=dict)
    where: dict[tuple[str, str, str], tuple[Placed, int]] = field(default_factory=dict)
    bytes_used: int = 0
    tokens_used: int = 0

    # -------------------------------------------------------------- what must be there

    def require(self, sections: Sequence[Section]) -> None:
        """Take all of ``sections``, whatever they cost."""
        for section in sections:
            placed = Placed(section)
            self.pins.setdefault(section.pin.conversation_id, section.pin.revision_id)
            for place, node in enumerate(section.messages):
                if not self._is_there(section, node):
                    self._put(placed, place, node, self._message(section, node))
            self.bytes_used += section.bytes_not_read
            self.tokens_used += -(-section.bytes_not_read // 3)

    def overflows(self) -> bool:
        """Whether what is required is more than may be answered."""
        too_long = self.tokens_used > self.allowance.max_tokens
        return too_long or self.required_bytes() > self.allowance.max_bytes

    def required_bytes(self) -> int:
        return budget.size(self.answer()) + sum(item.section.bytes_not_read for item in self.placed)

    def enough(self) -> JsonObject:
        """Budgets that hold what is required, their own digits in the answer counted."""
        digits = len(f"{_WIDEST}{limits.MAX_BATCH_BYTES}")
        digits -= len(f"{self.allowance.max_tokens}{self.allowance.max_bytes}")
        return {
            "max_estimated_tokens": self.tokens_used,
            "max_serialized_bytes": self.required_bytes() + max(0, digits),
        }

    # -------------------------------------------------------------- what may be there

    @property
    def left(self) -> int:
        """Bytes that optional content can still have."""
        return self.allowance.max_bytes - self._frame_bytes() - self.bytes_used - DIAGNOSTIC_BYTES

    def offer(self, section: Section) -> None:
        """Take those messages of a section that fit, what matched before what is around it."""
        placed = Placed(section)
        matched = {item.source_node_id for item in section.matched_ranges}
        order = sorted(enumerate(section.messages), key=lambda item: item[1].source_node_id not in matched)
        refused = section.bytes_not_read > 0
        for place, node in order:
            if self._is_there(section, node):
                self._tell(section, node)
                continue
            value = self._message(section, node)
            size = budget.size(value)
            if size > limits.MAX_BATCH_BYTES:
                self._warn_oversized(section, node, size)
            tokens = estimate_tokens(value["text"])
            if self._cost(placed, value) > self.left or self.tokens_used + tokens > self.allowance.max_tokens:
                refused = True
            else:
                self._put(placed, place, node, value)
        if refused:
            self._omit(section)

    def _tell(self, section: Section, node: Node) -> None:
        """Add a search's evidence to the copy of the message that is there already."""
        key = (section.pin.conversation_id, section.pin.revision_id, node.source_node_id)
        if section.evidence is None or not self.allowance.provenance or key not in self.where:
            return
        placed, place = self.where[key]
        value = placed.messages[place]
        provenance = parts.with_evidence(value["provenance"], section.evidence)
        more = budget.size(provenance) - budget.size(value["provenance"])
        if more <= self.left:
            value["provenance"] = provenance
            self.bytes_used += more

    def _omit(self, section: Section) -> None:
        pin = section.pin
        self.diagnostics.omitted.append(Omitted(section.kind, pin.conversation_id, pin.revision_id, "budget"))

    def _warn_oversized(self, section: Section, node: Node, size: int) -> None:
        pin = section.pin
        self.diagnostics.warnings.append(
            Warned("OVERSIZED_MESSAGE", pin.conversation_id, pin.revision_id, node.source_node_id, size)
        )

    def warn_required(self) -> None:
        """Say which required messages no answer can hold, and whether all of it together is too much for any."""
        if self.required_bytes() > limits.MAX_BATCH_BYTES:
            self.diagnostics.warnings.insert(0, Warned("REQUIRED_CONTENT_EXCEEDS_MCP_LIMIT"))
        for placed in self.placed:
            for place, value in placed.messages.items():
                size = budget.size(value)
                if size > limits.MAX_BATCH_BYTES:
                    self._warn_oversized(placed.section, placed.section.messages[place], size)

    # -------------------------------------------------------------- parts

    def _is_there(self, section: Section, node: Node) -> bool:
        key = (section.pin.conversation_id, section.pin.revision_id, node.source_node_id)
        return self.allowance.deduplicate and key in self.where

    def _message(self, section: Section, node: Node) -> JsonObject:
        return parts.message(section, node, provenance=self.allowance.provenance)

    def _put(self, placed: Placed, place: int, node: Node, value: JsonObject) -> None:
        pin = placed.section.pin
        self.bytes_used += self._cost(placed, value)
        self.tokens_used += estimate_tokens(value["text"])
        if not placed.messages:
            self.placed.append(placed)
        placed.messages[place] = value
        self.where.setdefault((pin.conversation_id, pin.revision_id, node.source_node_id), (placed, place))

    def _cost(self, placed: Placed, value: JsonObject) -> int:
        cost = budget.size(value) + _COMMA
        if self.allowance.compiled:
            cost += budget.size(parts.said(value))
        if placed.messages:
            return cost
        section = placed.section
        head = {**parts.section_head(section), "estimated_tokens": _WIDEST, "serialized_bytes": _WIDEST}
        cost += budget.size(head) + _COMMA
        if self.allowance.compiled:
            cost += budget.size(parts.heading(section))
        if section.pin.conversation_id not in self._pins():
            cost += budget.size(_pin(section.pin.conversation_id, section.pin.revision_id)) + _COMMA
        return cost

    # -------------------------------------------------------------- the answer

    def _frame_bytes(self) -> int:
        return budget.size(self._framed(self.pins, [], [], _WIDEST, self.diagnostics.warnings, ()))

    def _pins(self) -> dict[str, str]:
        """The revision of every conversation that is required or in the pack."""
        return {**self.pins, **{item.section.pin.conversation_id: item.section.pin.revision_id for item in self.placed}}

    def answer(self) -> JsonObject:
        """The complete pack as it stands, its own size in it."""
        omitted = parts.capped([parts.omitted(item) for item in self.diagnostics.omitted], MOST_OMITTED + 1)
        warnings = list(self.diagnostics.warnings)
        if len(omitted) > MOST_OMITTED:
            warnings.append(Warned("DIAGNOSTICS_TRUNCATED"))
        texts = [item.as_text() for item in self.placed]
        sections = [item.as_json() for item in self.placed]
        return self._framed(self._pins(), sections, omitted[:MOST_OMITTED], self.tokens_used, warnings, texts)

    def _framed(
        self,
        pins: Mapping[str, str],
        sections: list[JsonObject],
        omitted: list[JsonObject],
        tokens: int,
        warnings: Sequence[Warned],
        texts: Sequence[str],
    ) -> JsonObject:
        answer: JsonObject = {
            **self.frame,
            "revision_pins": [_pin(*item) for item in pins.items()],
            "sections": sections,
            "budget": {
                "max_estimated_tokens": self.allowance.max_tokens,
                "used_estimated_tokens": tokens,
                "max_serialized_bytes": self.allowance.max_bytes,
                "used_serialized_bytes": 0,
                "estimator": ESTIMATOR,
            },
            "omitted": omitted,
            "degraded": bool(self.diagnostics.unavailable),
            "unavailable": self.diagnostics.unavailable,
            "warnings": warned(warnings),
        }
        if self.allowance.compiled:
            answer["compiled_text"] = "".join(texts)
        return sized(answer)

    def shed(self) -> JsonObject:
        """The complete pack within its bytes: diagnostics go first, then what is of least authority."""
        answer = self.answer()
        while budget.size(answer) > self.allowance.max_bytes:
            if self.diagnostics.omitted:
                del self.diagnostics.omitted[-1]
                self._warn_truncated()
            elif self.placed and self.placed[-1].section.kind in {"expanded_optional", "retrieved"}:
                gone = self.placed.pop()
                self.tokens_used -= sum(estimate_tokens(value["text"]) for value in gone.messages.values())
            elif len(self.diagnostics.warnings) > 1:
                del self.diagnostics.warnings[:-1]
                self._warn_truncated()
            else:
                break
            answer = self.answer()
        return answer

    def _warn_truncated(self) -> None:
        if all(item.code != "DIAGNOSTICS_TRUNCATED" for item in self.diagnostics.warnings):
            self.diagnostics.warnings.append(Warned("DIAGNOSTICS_TRUNCATED"))


def warned(warnings: Sequence[Warned]) -> list[JsonObject]:
    """Warnings without repeats, at most twenty, the last one saying if there were more."""
    values = parts.capped([parts.warning(item) for item in warnings], MOST_WARNINGS + 1)
    if len(values) > MOST_WARNINGS:
        return [*values[: MOST_WARNINGS - 1], parts.warning(Warned("DIAGNOSTICS_TRUNCATED"))]
    return values


def sized(answer: JsonObject) -> JsonObject:
    """The answer with its size in its ``budget``, which the digits of that size are a part of."""
    used: Any = answer["budget"]
    while (size := budget.size(answer)) != used["used_serialized_bytes"]:
        used["used_serialized_bytes"] = size
    return answer


def _pin(conversation_id: str, revision_id: str) -> JsonObject:
    return {"conversation_id": conversation_id, "revision_id": revision_id}
