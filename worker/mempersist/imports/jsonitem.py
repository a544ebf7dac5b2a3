"""Parsing one JSON value out of text that may end too early."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

from mempersist import limits
from mempersist.nesting import excess

_MAX_INTEGER_DIGITS = 4300
_ERROR_REACH = 16
"""An error this near to the end of the text may come from the cut alone."""
_NUMBER_REACH = 3
"""A number this near to the end of the text may go on: ``1`` of ``1e+5``."""

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
_ENCODED_SURROGATE = re.compile("\udced([\udca0-\udcbf])([\udc80-\udcbf])")
_CONTAINERS = (dict, list)


@dataclass(frozen=True, slots=True)
class Parsed:
    """A value and the index after it. ``notes`` are codes of what was odd about it."""

    value: Any
    end: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """There is no value here, however the text goes on."""

    code: str


class _NumberTooLong(Exception):
    pass


class ItemParser:
    """The standard library's decoder, set up to lose nothing.

    :param max_containers: objects and lists that a value may have.
    """

    __slots__ = ("_decoder", "_max_containers", "_non_finite")

    def __init__(self, max_containers: int) -> None:
        self._max_containers = max_containers
        self._non_finite = False
        self._decoder = json.JSONDecoder(
            parse_float=self._float, parse_int=_int, parse_constant=self._constant, strict=False
        )

    def parse(self, text: str, start: int, *, at_end: bool, damaged: bool) -> Parsed | Broken | None:
        """The value that begins at ``start``; None where the text ends before it is known.

        :param at_end: nothing comes after ``text``.
        :param damaged: ``text`` may hold bytes that were not UTF-8, as ``surrogateescape`` leaves them.
        """
        self._non_finite = False
        beyond = excess(text, start=start, levels=limits.MAX_JSON_DEPTH, containers=self._max_containers)
        if beyond is not None:
            return Broken("TOO_DEEP" if beyond == "levels" else "TOO_MANY_PARTS")
        try:
            value, end = self._decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            unsure = error.pos >= len(text) - _ERROR_REACH or error.msg.startswith("Unterminated string")
            return None if unsure and not at_end else Broken("MALFORMED_JSON")
        except _NumberTooLong:
            return Broken("NUMBER_TOO_LONG")
        if not at_end and end > len(text) - _NUMBER_REACH and text[end - 1] not in '}]"':
            return None
        notes = ["NON_FINITE_NUMBER"] if self._non_finite else []
        if damaged and _NOT_UTF8.search(text, start, end):
            notes.append("BAD_ENCODING")
            value = self._decoder.decode(_repaired(text[start:end]))
        if _keys_in(text, start, end) > _keys_of(value):
            notes.append("DUPLICATE_KEYS")
        return Parsed(value, end, tuple(notes))

    def _float(self, literal: str) -> float | str:
        number = float(literal)
        return number if math.isfinite(number) else self._constant(literal)

    def _constant(self, literal: str) -> str:
        self._non_finite = True
        return literal


def _int(literal: str) -> int:
    if len(literal) > _MAX_INTEGER_DIGITS:
        raise _NumberTooLong
    return int(literal)


def _repaired(text: str) -> str:
    """Escaped bytes as Windows-1252, but for surrogates that somebody wrote in UTF-8's scheme."""
    text = _ENCODED_SURROGATE.sub(lambda match: chr(0xD000 | (ord(match[1]) & 0x3F) << 6 | ord(match[2]) & 0x3F), text)
    return _NOT_UTF8.sub(_windows_1252, text)


def _windows_1252(match: re.Match[str]) -> str:
    byte = bytes([ord(match[0]) & 0xFF])
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:
        return byte.decode("latin-1")


def _keys_of(value: Any) -> int:
    """How many keys the objects in ``value`` have."""
    keys = 0
    level = [value] if type(value) in _CONTAINERS else []
    while level:
        keys += sum([len(container) for container in level if type(container) is dict])
        level = [
            child
            for container in level
            for child in (container.values() if type(container) is dict else container)
            if type(child) in _CONTAINERS
        ]
    return keys


def _keys_in(text: str, start: int, end: int) -> int:
    """How many keys the objects in this JSON have, repeated ones counted: an unescaped quote and a colon end one."""
    return text.count('":', start, end) - text.count('\\":', start, end)
