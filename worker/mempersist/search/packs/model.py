"""What a context pack is asked for, and the material that is found for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from mempersist.archive.model import Branch, Node
from mempersist.catalog.conversations import TagMode
from mempersist.catalog.titles import TitleQuery
from mempersist.search.context import MatchedRange

Mode = Literal["full", "tail"]
Kind = Literal["required", "expanded_required", "expanded_optional", "retrieved"]
KINDS: tuple[Kind, ...] = ("required", "expanded_required", "expanded_optional", "retrieved")
"""In the order of their authority."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of a conversation: all of a branch, or its last ``tail`` messages."""

    mode: Mode
    tail: int
    branch: Branch


@dataclass(frozen=True, slots=True)
class Follow:
    """A pointer to follow from a conversation, and further ones from where it leads."""

    field: str
    required: bool
    priority: int
    extent: Extent
    follow: tuple[Follow, ...] = ()


@dataclass(frozen=True, slots=True)
class Required:
    """A conversation that belongs into the pack, by id or by exact title."""

    selector: str | TitleQuery
    priority: int
    extent: Extent
    follow: tuple[Follow, ...] = ()


@dataclass(frozen=True, slots=True)
class Retrieve:
    """A search whose hits may go into the pack, each with messages around it."""

    query: str
    namespace: str | None
    tags: tuple[str, ...]
    tag_mode: TagMode
    limit: int
    before: int
    after: int
    priority: int


@dataclass(frozen=True, slots=True)
class Pin:
    """A conversation held to the revision that was current when the pack was begun.

    :param messages: on its active branch. :param nodes: in all.
    """

    conversation_id: str
    revision_id: str
    title: str
    namespace: str
    messages: int
    nodes: int


@dataclass(frozen=True, slots=True)
class Evidence:
    """Why a search brought a message."""

    request_index: int
    chunk_id: str
    score: float
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Section:
    """Messages of one conversation that came for one reason.

    :param request_index: the place of its request in ``required`` or ``retrieve``.
    :param bytes_not_read: stored bytes of messages behind these, where there was no point in reading on.
    """

    kind: Kind
    request_index: int
    priority: int
    pin: Pin
    messages: tuple[Node, ...]
    bytes_not_read: int = 0
    evidence: Evidence | None = None
    matched_ranges: tuple[MatchedRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Omitted:
    """``reason``: ``budget``, ``stale_revision`` or ``unavailable``."""

    kind: Kind
    conversation_id: str
    revision_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """A word about something that is not in the pack; ids and sizes only."""

    code: str
    conversation_id: str | None = None
    revision_id: str | None = None
    source_node_id: str | None = None
    bytes: int | None = None
    field: str | None = None


@dataclass(slots=True)
class Diagnostics:
    """What a reader of the pack is told beside it, gathered on the way."""

    omitted: list[Omitted] = field(default_factory=list)
    warnings: list[Warned] = field(default_factory=list)
    unavailable: list[str] = field(default_factory=list)
