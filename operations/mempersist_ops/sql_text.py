"""SQL text taken apart as SQLite's tokenizer does it, for statement lists, comparisons and checks."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

TokenKind = Literal["string", "name", "parameter", "word", "number", "symbol"]

_TOKEN = re.compile(
    r"""
    (?P<space>   \s+ | --[^\n]* | /\*.*?(?:\*/|\Z) )
  | (?P<string>  [xX]?'(?:[^']|'')*' )
  | (?P<name>    "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] )
  | (?P<parameter> \?\d* | [:@$\#]\w+ )
  | (?P<number>  \d\w*(?:\.\w*)?(?:(?<=[eE])[+-]\d+)? | \.\d\w* )
  | (?P<word>    [^\W\d][\w$]* )
  | (?P<symbol>  ->>|->|\|\||<=|>=|<>|<<|>>|!=|==|. )
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Token:
    """A token that means something; ``start`` is its place in the text."""

    kind: TokenKind
    text: str
    start: int


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of ``sql`` without white space and comments."""
    for match in _TOKEN.finditer(sql):
        if match.lastgroup != "space":
            yield Token(cast("TokenKind", match.lastgroup), match.group(), match.start())


def normalise(sql: str) -> str:
    """``sql`` with one space between tokens and without comments: equal for statements that differ in layout only."""
    return " ".join(token.text for token in tokens(sql))


def split_statements(script: str) -> tuple[str, ...]:
    """The statements of a script in order, each without its leading comments and its closing semicolon.

    Triggers, strings and comments may hold semicolons.

    :raises ValueError: when the last statement has no semicolon, or the script holds a NUL character.
    """
    if "\0" in script:
        raise ValueError("the script holds a NUL character")
    statements = []
    start = 0
    for semicolon in re.finditer(";", script):
        piece = script[start : semicolon.end()]
        if not sqlite3.complete_statement(piece):
            continue
        first = next(tokens(piece))
        if first.text != ";":
            statements.append(piece[first.start : -1].rstrip())
        start = semicolon.end()
    unfinished = next(tokens(script[start:]), None)
    if unfinished is not None:
        line = script.count("\n", 0, start + unfinished.start) + 1
        raise ValueError(f"the statement at line {line} does not end with a semicolon")
    return tuple(statements)
