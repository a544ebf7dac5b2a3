"""Where a JSON item ends that cannot be parsed: a search over bytes, in bounded memory.

It counts brackets outside of strings. Where a missing quote or bracket makes that count run on, the head of the next
conversation stops it: a ``{`` behind a comma whose first keys are those that only a conversation begins with.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mempersist.imports.source import ByteSource

_LOOKAHEAD_BYTES = 4096
_FIRST_BLOCK_BYTES = 4096
"""Most items are small; blocks grow from this as the search goes on."""
_MAX_COLLAPSES = 64
_AS_BRACES = bytes.maketrans(b"[]", b"{}")
_NO_BRACKETS = bytes(sorted(set(range(256)) - set(b"{}[]")))
_TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|\\["\\]|[{}\[\]]', re.DOTALL)
_STRING_REST = re.compile(rb'[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_SEPARATOR = re.compile(rb"[,\]]")
_FOLLOWED_BY_ITEM = re.compile(rb"[ \t\r\n]*(?:,[ \t\r\n]*(?:[{\[]|null|\Z)|\]|\Z)")
_NEXT_LINE = re.compile(rb"\n\{")

_SCALAR = rb'(?:"(?:[^"\\]|\\.){0,600}"|[-+0-9.eE]{1,40}|null|true|false)'
_NAMES = b"id|title|conversation_id|conversation_template_id"
_MARKS = (
    b"create_time|update_time|mapping|conversation_id|current_node|is_archived|default_model_slug|moderation_results"
)
_CONVERSATION_HEAD = re.compile(
    rb"[,\n]\s{0,64}\{"
    rb'(?:\s{0,32}"(?:' + _NAMES + rb')"\s{0,8}:\s{0,8}' + _SCALAR + rb"\s{0,8},){1,3}"
    rb'\s{0,32}"(?:' + _MARKS + rb')"\s{0,8}:',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Boundary:
    """``end`` is the offset after the item; ``found`` is False where the source ended before the item did."""

    end: int
    found: bool


async def end_of_item(
    source: ByteSource, start: int, first_character: str, *, by_lines: bool, block_bytes: int
) -> Boundary:
    """Find where the item ends that begins with ``first_character`` at ``start``.

    :param by_lines: items stand on lines of their own.
    :param block_bytes: the most that is read at a time.
    """
    if by_lines:
        line = await _search(source, start, _NEXT_LINE, block_bytes)
        if line is not None:
            return Boundary(line, found=True)
        return Boundary(source.size, await _balanced(source, start, block_bytes) is not None)
    if first_character in "{[":
        end = await _balanced(source, start, block_bytes)
    else:
        end = await _search(source, start, _SEPARATOR, block_bytes)
    if end is None:
        return Boundary(source.size, found=False)
    if _FOLLOWED_BY_ITEM.match(await source.read(end, _LOOKAHEAD_BYTES)):
        return Boundary(end, found=True)
    head = await next_conversation(source, end, block_bytes=block_bytes)
    return Boundary(source.size if head is None else head, found=True)


async def next_conversation(source: ByteSource, start: int, *, block_bytes: int) -> int | None:
    """Offset of the comma or newline before the first item behind ``start`` that begins as a conversation does."""
    return await _search(source, start, _CONVERSATION_HEAD, block_bytes)


async def _search(source: ByteSource, start: int, pattern: re.Pattern[bytes], block_bytes: int) -> int | None:
    """Offset of the first match of ``pattern`` from ``start`` on."""
    at, tail = start, b""
    size = min(_FIRST_BLOCK_BYTES, block_bytes)
    while block := await source.read(at, size):
        if match := pattern.search(tail + block):
            return at - len(tail) + match.start()
        at += len(block)
        tail = (tail + block)[-_LOOKAHEAD_BYTES:]
        size = min(size * 4, block_bytes)
    return None


async def _balanced(source: ByteSource, start: int, block_bytes: int) -> int | None:
    """Offset at which the brackets are balanced or the next conversation begins; None at the source's end."""
    brackets = _Brackets()
    at, tail = start, b""
    size = min(_FIRST_BLOCK_BYTES, block_bytes)
    while block := await source.read(at, size):
        closed = brackets.feed(block)
        head = _CONVERSATION_HEAD.search(tail + block)
        ends = [] if closed is None else [at + closed]
        ends += [] if head is None else [at - len(tail) + head.start()]
        if ends:
            return min(ends)
        at += len(block)
        tail = (tail + block)[-_LOOKAHEAD_BYTES:]
        size = min(size * 4, block_bytes)
    return None


class _Brackets:
    """The running count of brackets outside of strings."""

    __slots__ = ("depth", "escaped", "in_string")

    def __init__(self) -> None:
        self.depth = 0
        self.in_string = False
        self.escaped = False

    def feed(self, block: bytes) -> int | None:
        """Take the next block; the index after the bracket that closes the item, if it is in this block."""
        begin = 1 if self.escaped and block[:1] in (b'"', b"\\") else 0
        quoted = block[begin:].replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = quoted.split(b'"')
        outside = b"".join(parts[1::2] if self.in_string else parts[0::2])
        brackets = outside.translate(_AS_BRACES, _NO_BRACKETS)
        for _ in range(_MAX_COLLAPSES):
            collapsed = brackets.replace(b"{}", b"")
            if len(collapsed) == len(brackets):
                break
            brackets = collapsed
        opened, closed = brackets.count(b"{"), brackets.count(b"}")
        if closed >= self.depth and (end := self._walk(block, begin)) is not None:
            return end
        self.depth += opened - closed
        self.escaped = quoted.endswith(b"\\")
        self.in_string ^= len(parts) % 2 == 0
        return None

    def _walk(self, block: bytes, begin: int) -> int | None:
        """Token by token, as one of these brackets may close the item."""
        if self.in_string and (rest := _STRING_REST.match(block, begin)):
            begin = rest.end()
        depth = self.depth
        for token in _TOKENS.finditer(block, begin):
            if token[0] in (b"{", b"["):
                depth += 1
            elif token[0] in (b"}", b"]"):
                depth -= 1
                if depth == 0:
                    return token.end()
        return None
