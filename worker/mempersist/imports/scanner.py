"""A JSON export read item by item, in bounded memory, with the exact byte range of each item.

The file is a top-level array, ``{"conversations": [...]}``, or objects one after another, which covers a single one.
A part of it is decoded at a time and parsed by the standard library; a part that ends within an item is read again
from that item on. An item that cannot be read becomes an error of its own and scanning goes on behind it.

What loses least, where the file is not as it should be:

- A byte that is not UTF-8 is taken for Windows-1252, by far the likeliest origin: a Latin-1 file reads well, a
  single broken byte becomes one odd character. The item is noted. UTF-16 and UTF-32 are refused.
- NaN, the infinities and floats too large for a double, which canonical JSON does not have, become strings that hold
  their source text. Control characters within strings are taken as they are.
- Of a key that an object repeats, the last value is kept, as everywhere.
- Arrays one after another (``cat conversations-*.json``) and in one another (``jq -s``) are read as one; a missing or
  doubled comma is no matter.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any, Literal

from mempersist import limits
from mempersist.imports.boundary import end_of_item, next_conversation
from mempersist.imports.jsonitem import Broken, ItemParser, Parsed
from mempersist.imports.problems import Finding, ItemError, unreadable
from mempersist.imports.source import ByteSource

Shape = Literal["start", "array", "wrapped", "lines", "end"]

_HEAD_BYTES = 64 * limits.KIB
_MEASURE_CHARS = 256 * limits.KIB
_FEW_CONTAINERS = 1024
_SEPARATORS = re.compile("[ \t\r\n,\ufeff]*")
_BLANKS = re.compile("[ \t\r\n]*")
_HEAD_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_OPENS_ARRAY = re.compile(rb"[ \t\r\n]*:[ \t\r\n]*\[")
_MESSAGES = {
    "MALFORMED_JSON": "this item is not valid JSON",
    "TOO_DEEP": f"this item is nested deeper than {limits.MAX_JSON_DEPTH} levels",
    "TOO_LARGE": "this item is longer than the {max_item_bytes} bytes that this host can hold; the upload keeps it",
    "TOO_MANY_PARTS": "this item has more objects and lists than this host can hold; the upload keeps it",
    "NUMBER_TOO_LONG": "this item holds a whole number of more than 4300 digits",
    "TRUNCATED": "the file ends within this item; download the export again",
    "NON_FINITE_NUMBER": "a number that JSON does not have was kept as text",
    "BAD_ENCODING": "bytes that are not UTF-8 were read as Windows-1252",
    "DUPLICATE_KEYS": "an object repeats a key; its last value was kept",
}


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where to go on: ``offset`` bytes into the file, the next item being number ``ordinal`` from 0."""

    offset: int = 0
    ordinal: int = 0
    shape: Shape = "start"

    def as_json(self) -> dict[str, Any]:
        return {"offset": self.offset, "ordinal": self.ordinal, "shape": self.shape}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> ScanPosition:
        return cls(value["offset"], value["ordinal"], value["shape"])


START = ScanPosition()


@dataclass(frozen=True, slots=True)
class ScannedItem:
    """One item of the file: the bytes from ``start`` to before ``end``.

    :param value: the parsed JSON; None if ``error`` is set.
    :param error: MALFORMED_JSON, TOO_DEEP, TOO_LARGE, TOO_MANY_PARTS, NUMBER_TOO_LONG or TRUNCATED.
    :param containers: at most so many objects and lists are in ``value``.
    :param notes: BAD_ENCODING, NON_FINITE_NUMBER, DUPLICATE_KEYS: the item was read all the same.
    :param next: the position after this item, to be saved when the item is settled.
    """

    ordinal: int
    start: int
    end: int
    value: Any
    error: ItemError | None
    notes: tuple[Finding, ...]
    next: ScanPosition
    containers: int = 0


async def first_position(source: ByteSource) -> ScanPosition:
    """Find out what shape a file has, and where its first item may begin.

    :raises MempersistError: EMPTY_FILE, NOT_JSON, UNSUPPORTED_ENCODING.
    """
    head = await source.read(0, _HEAD_BYTES)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in head[:4]:
        message = "the file is UTF-16 or UTF-32; save it as UTF-8, or upload the export as it was downloaded"
        raise unreadable("UNSUPPORTED_ENCODING", message)
    begin = 3 if head.startswith(b"\xef\xbb\xbf") else 0
    begin += len(head[begin:]) - len(head[begin:].lstrip(b" \t\r\n"))
    if begin == len(head):
        raise unreadable("EMPTY_FILE", "the file holds nothing but blanks")
    if head[begin] == ord("["):
        return ScanPosition(begin + 1, 0, "array")
    if head[begin] != ord("{"):
        raise unreadable("NOT_JSON", "the file is not JSON: it begins with neither [ nor {")
    wrapped = _wrapped_array(head, begin)
    return ScanPosition(begin, 0, "lines") if wrapped is None else ScanPosition(wrapped, 0, "wrapped")


async def scan(
    source: ByteSource,
    at: ScanPosition = START,
    *,
    max_item_bytes: int = limits.MAX_CONVERSATION_BYTES,
    window_bytes: int = limits.MIB,
) -> AsyncGenerator[ScannedItem | Finding]:
    """Yield the items from ``at`` to the end of the file, and findings about the file as a whole.

    The same file gives the same items whatever ``window_bytes`` is and wherever scanning was resumed; only whether a
    damaged item is called MALFORMED_JSON or too deep or large may depend on how much of it was seen at once.

    :param max_item_bytes: a longer item is an error, TOO_LARGE; up to this much is held at a time.
    :param window_bytes: how much is read at a time; doubled for as long as an item needs.
    :raises MempersistError: for a file of which nothing can be read: EMPTY_FILE, NOT_JSON, UNSUPPORTED_ENCODING.
    """
    if at.shape == "start":
        at = await first_position(source)
    if at.shape == "end":
        return
    shape, ordinal = at.shape, at.ordinal
    window = _Window(source, at.offset, window_bytes)
    parser = ItemParser(max(_FEW_CONTAINERS, max_item_bytes // limits.BYTES_PER_CONTAINER))
    closed = False
    while character := await window.next_character():
        if character == "]" and shape == "wrapped":
            return
        opens = character == "[" and (closed or await window.peek() == "{")
        if shape != "lines" and (opens or character == "]"):
            closed = not opens
            window.advance(window.index + 1)
        else:
            if not closed and (shape != "lines" or character == "{"):
                item = await _read_item(window, parser, shape, ordinal, max_item_bytes)
            elif (head := await next_conversation(source, window.offset, block_bytes=window_bytes)) is not None:
                item = _passed_over(window, head, shape, ordinal)
            else:
                place = f"byte {window.offset}"
                yield Finding("TRAILING_DATA", "what follows the conversations was not read", "skipped", place)
                return
            closed, ended = False, item.next.shape == "end"
            ordinal += 1
            yield item
            if ended:
                return
            del item  # or it would be held while the next one is parsed
    if shape != "lines" and not closed:
        message = "the file ends within its list of conversations; download the export again"
        yield Finding("TRUNCATED", message, "failed", f"byte {window.offset}")


class _Window:
    """The decoded part of the source at the place that scanning has reached.

    ``offset`` is the place in bytes, ``index`` the same place in ``text``.
    """

    __slots__ = ("at_end", "base_bytes", "damaged", "index", "offset", "size", "source", "text")

    def __init__(self, source: ByteSource, offset: int, base_bytes: int) -> None:
        self.source = source
        self.base_bytes = base_bytes
        self.offset = offset
        self.forget()

    def move_to(self, offset: int) -> None:
        """Go on to a place in bytes."""
        ahead = offset - self.offset
        self.offset = offset
        if self.text.isascii() and self.index + ahead <= len(self.text):
            self.index += ahead
        else:
            self.forget()

    def forget(self) -> None:
        """Let go of the text; it is read again when it is needed."""
        self.index = self.size = 0
        self.text = ""
        self.at_end = self.damaged = False

    def advance(self, index: int) -> None:
        """Go to a place in the text."""
        self.offset += self.bytes_until(index)
        self.index = index

    def bytes_until(self, index: int) -> int:
        """How many bytes of the source the text up to ``index`` is, found without a second copy of a large item."""
        if self.text.isascii():
            return index - self.index
        parts = (self.text[at : min(at + _MEASURE_CHARS, index)] for at in range(self.index, index, _MEASURE_CHARS))
        return sum(len(part.encode("utf-8", "surrogateescape")) for part in parts)

    def exceeds(self, index: int, most_bytes: int) -> bool:
        """Whether there are more than ``most_bytes`` up to ``index``; a character has at most four."""
        return (index - self.index) * 4 > most_bytes and self.bytes_until(index) > most_bytes

    async def grow(self, most_bytes: int) -> bool:
        """Read again from this place, twice as much as stands here; False if that is all, or all that is allowed."""
        if self.at_end or (self.index == 0 and self.size >= most_bytes):
            return False
        size = self.base_bytes if self.index or not self.size else min(self.size * 2, most_bytes)
        self.forget()
        data = await self.source.read(self.offset, size)
        self.size = size
        self.at_end = self.offset + len(data) >= self.source.size
        whole = memoryview(data)[: len(data) if self.at_end else _whole_characters(data)]
        try:
            self.text = str(whole, "utf-8")
        except UnicodeDecodeError:
            self.text = str(whole, "utf-8", "surrogateescape")
            self.damaged = True
        return True

    async def next_character(self) -> str:
        """Skip what stands between items; the character that follows, "" at the source's end."""
        while True:
            separators = _SEPARATORS.match(self.text, self.index)
            if separators:
                self.advance(separators.end())
            if self.index < len(self.text):
                return self.text[self.index]
            if not await self.grow(4 * self.base_bytes):
                return ""

    async def peek(self) -> str:
        """The next character but blanks after this one, "" where none is near."""
        while True:
            blanks = _BLANKS.match(self.text, self.index + 1)
            end = blanks.end() if blanks else self.index + 1
            if end < len(self.text):
                return self.text[end]
            if not await self.grow(max(4 * self.base_bytes, _HEAD_BYTES)):
                return ""


def _whole_characters(data: bytes) -> int:
    """How many bytes of ``data`` come before a character that its end may cut."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
        if byte < 0x80:
            break
    return len(data)


def _passed_over(window: _Window, end: int, shape: Shape, ordinal: int) -> ScannedItem:
    """What stands between an end that was none and the next conversation, as an item that cannot be read."""
    start = window.offset
    window.move_to(end)
    error = ItemError("MALFORMED_JSON", _MESSAGES["MALFORMED_JSON"])
    return ScannedItem(ordinal, start, end, None, error, (), ScanPosition(end, ordinal + 1, shape))


async def _read_item(
    window: _Window, parser: ItemParser, shape: Shape, ordinal: int, max_item_bytes: int
) -> ScannedItem:
    start = window.offset
    # A few bytes more than an item may have, so that a number at the very end is seen to end.
    most = max_item_bytes + 8
    outcome: Parsed | Broken | None = None
    while outcome is None:
        outcome = parser.parse(window.text, window.index, at_end=window.at_end, damaged=window.damaged)
        if outcome is None and not await window.grow(most):
            outcome = Broken("MALFORMED_JSON")
    if isinstance(outcome, Parsed) and window.exceeds(outcome.end, max_item_bytes):
        outcome = Broken("MALFORMED_JSON")
    value: Any = None
    notes: tuple[str, ...] = ()
    found, code = True, ""
    containers = 0
    if isinstance(outcome, Parsed):
        value, notes = outcome.value, outcome.notes
        containers = sum(window.text.count(bracket, window.index, outcome.end) for bracket in "[{")
        window.advance(outcome.end)
        if window.size > window.base_bytes:
            window.forget()
    else:
        by_lines = shape == "lines"
        first = window.text[window.index]
        boundary = await end_of_item(window.source, start, first, by_lines=by_lines, block_bytes=window.base_bytes)
        found, code = boundary.found, outcome.code
        window.move_to(boundary.end)
    if window.offset - start > max_item_bytes:
        code = "TOO_LARGE"
    if not found:
        code = "TRUNCATED"
    following = ScanPosition(window.offset, ordinal + 1, shape if found else "end")
    if code:
        message = _MESSAGES[code].format(max_item_bytes=max_item_bytes)
        return ScannedItem(ordinal, start, window.offset, None, ItemError(code, message), (), following)
    remarks = tuple(Finding(note, _MESSAGES[note], "note", f"byte {start}") for note in notes)
    return ScannedItem(ordinal, start, window.offset, value, None, remarks, following, containers)


def _wrapped_array(head: bytes, begin: int) -> int | None:
    """Offset of the first item of an array ``conversations`` at the top of the object, if one begins in ``head``."""
    depth = 0
    for token in _HEAD_TOKENS.finditer(head, begin):
        if token[0] in (b"{", b"["):
            depth += 1
        elif token[0] in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return None
        elif depth == 1 and token[0] == b'"conversations"' and (opens := _OPENS_ARRAY.match(head, token.end())):
            return opens.end()
    return None
