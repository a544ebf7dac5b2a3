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
_MAX_KNOWN_CHARACTERS = 20_000
# str.split takes these for white space where BERT drops them.
_DROPPED_SPACES = re.compile("[\x0b\x0c\x1c-\x1f\x85]")
_IDEOGRAPH = (
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f"
    "\U0002b820-\U0002ceaf\U0002f800-\U0002fa1f"
)
_RUNS = re.compile(f"[{_IDEOGRAPH}]|[^\\s{_IDEOGRAPH}]+")
_SYMBOLS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
# Unassigned code points are not among them, as in BERT: a Python that knows more of Unicode finds the same pieces.
_VANISHING = frozenset({"Cc", "Cf", "Co", "Cs", "Mn"})


class _Characters(dict[int, str | None]):
    """What ``str.translate`` puts for a code point: nothing, itself, or itself between blanks. Filled as met."""

    def __missing__(self, code: int) -> str | None:
        replacement = _replacement(chr(code))
        if len(self) < _MAX_KNOWN_CHARACTERS:
            self[code] = replacement
        return replacement


def _replacement(character: str) -> str | None:
    category = unicodedata.category(character)
    if character == "\ufffd" or category in _VANISHING:
        return None
    # ASCII symbols count as punctuation here, as they do in BERT.
    return f" {character} " if category.startswith("P") or character in _SYMBOLS else character


@dataclass(frozen=True, slots=True)
class WordPiece:
    """``pieces`` maps each piece to its number. Only the caches change, and they change no answer."""

    pieces: dict[str, int]
    longest: int
    cache: dict[str, tuple[int, ...]] = field(default_factory=dict, repr=False, compare=False)
    characters: _Characters = field(default_factory=_Characters, repr=False, compare=False)

    def numbers(self, text: str) -> list[int]:
        """The numbers of the pieces of ``text``, in order. Takes any string, lone surrogates and NUL included."""
        numbers: list[int] = []
        cache = self.cache
        kept = _DROPPED_SPACES.sub("", text)
        for word in kept.split() if kept.isascii() else _RUNS.findall(kept):
            known = cache.get(word)
            if known is None:
                known = self._remember(word)
            numbers += known
        return numbers

    def _remember(self, word: str) -> tuple[int, ...]:
        numbers = tuple(number for part in self.parts(word) for number in self._cover(part))
        if len(word) <= MAX_CACHED_CHARS:
            if len(self.cache) >= MAX_CACHED_WORDS:
                self.cache.clear()
            self.cache[word] = numbers
        return numbers

    def parts(self, word: str) -> list[str]:
        """The words and marks in ``word``, lowered and without accents; ``word`` holds no white space, and is one
        ideograph or has none."""
        return unicodedata.normalize("NFD", word).lower().translate(self.characters).split()

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
