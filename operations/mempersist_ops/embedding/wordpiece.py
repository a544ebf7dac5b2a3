"""BERT's uncased WordPiece tokenizer in plain Python.

Text is cut at white space; control characters and U+FFFD vanish; letters are lowered and lose their accents;
punctuation and CJK ideographs stand alone; what remains is covered from the left by the longest known pieces, those
inside a word marked by ``##``. A word that cannot be covered, or is over 100 characters long, gives no piece.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

MAX_WORD_CHARS = 100
MAX_CACHED_WORDS = 50_000
MAX_CACHED_CHARS = 40
"""Longer words hardly come back, and a bounded number of bounded words bounds the memory."""

_CONTINUES = "##"
# str.split takes these for white space where BERT drops them.
_DROPPED_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_ASCII_PARTS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_CONTROLS = frozenset({"Cc", "Cf", "Co", "Cs"})
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B820, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


@dataclass(frozen=True, slots=True)
class WordPiece:
    """``pieces`` maps each piece to its number. The word cache is the only thing that changes, and only for speed."""

    pieces: dict[str, int]
    longest: int
    cache: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)

    def numbers(self, text: str) -> list[int]:
        """The numbers of the pieces of ``text``, in order. Takes any string, lone surrogates and NUL included."""
        numbers: list[int] = []
        cache = self.cache
        for word in _DROPPED_SPACES.sub("", text).split():
            known = cache.get(word)
            if known is None:
                known = self._remember(word)
            numbers += known
        return numbers

    def _remember(self, word: str) -> tuple[int, ...]:
        numbers = tuple(number for part in parts(word) for number in self._cover(part))
        if len(word) <= MAX_CACHED_CHARS:
            if len(self.cache) >= MAX_CACHED_WORDS:
                self.cache.clear()
            self.cache[word] = numbers
        return numbers

    def _cover(self, word: str) -> list[int]:
        if len(word) > MAX_WORD_CHARS:
            return []
        numbers = []
        start = 0
        while start < len(word):
            prefix = _CONTINUES if start else ""
            for end in range(min(len(word), start + self.longest), start, -1):
                number = self.pieces.get(prefix + word[start:end])
                if number is not None:
                    break
            else:
                return []
            numbers.append(number)
            start = end
        return numbers


def wordpiece(pieces: Sequence[str]) -> WordPiece:
    """A tokenizer over ``pieces``, numbered from 0 in their order."""
    longest = max((len(piece.removeprefix(_CONTINUES)) for piece in pieces), default=0)
    return WordPiece({piece: number for number, piece in enumerate(pieces)}, longest)


def parts(word: str) -> list[str]:
    """The words and punctuation marks in ``word``, which holds no white space: lowered, without accents."""
    if word.isascii():
        return _ASCII_PARTS.findall(word.lower()) if word.isprintable() else parts(_without_controls(word))
    found: list[str] = []
    for run in _split_ideographs(_without_controls(word)):
        bare = "".join(char for char in unicodedata.normalize("NFD", run).lower() if unicodedata.category(char) != "Mn")
        start = 0
        for index, char in enumerate(bare):
            if _is_punctuation(char):
                if start < index:
                    found.append(bare[start:index])
                found.append(char)
                start = index + 1
        if start < len(bare):
            found.append(bare[start:])
    return found


def _without_controls(word: str) -> str:
    """Unassigned code points stay, as in BERT: a Python that knows more of Unicode then finds the same pieces."""
    return "".join(char for char in word if char != "\ufffd" and unicodedata.category(char) not in _CONTROLS)


def _split_ideographs(word: str) -> list[str]:
    if not any(_is_ideograph(char) for char in word):
        return [word]
    return "".join(f" {char} " if _is_ideograph(char) else char for char in word).split()


def _is_ideograph(char: str) -> bool:
    code = ord(char)
    return code >= 0x3400 and any(first <= code <= last for first, last in _IDEOGRAPHS)


def _is_punctuation(char: str) -> bool:
    """ASCII symbols count as punctuation here, as they do in BERT."""
    if char.isascii():
        return char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
    return unicodedata.category(char).startswith("P")
