"""Small text helpers that several packages need."""

from __future__ import annotations

import re
import unicodedata

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def utf8_safe(text: str) -> str:
    """``text`` with lone surrogates and NUL replaced by U+FFFD: what databases and JSON clients can take. SQLite's
    JSON functions end a text at its first NUL.

    The archive keeps the character itself; this is for projections and answers only.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def printable(text: str) -> str:
    """``text`` without control characters but tab and newlines, and safe for UTF-8."""
    return utf8_safe(_CONTROL.sub("", text))


def utf8_length(text: str) -> int:
    """Bytes of ``text`` in UTF-8, a lone surrogate counted as the three bytes of its replacement."""
    return len(text.encode("utf-8", "surrogatepass"))


def normalise_tag(tag: str) -> str:
    """NFKC, lower case, trimmed: the form in which tags are stored and compared."""
    return unicodedata.normalize("NFKC", utf8_safe(tag)).lower().strip()
