"""Words for full text: what is indexed beside the plain text, and how any query becomes a valid FTS5 expression.

The index's tokenizer cuts text into runs of letters, digits and marks, folds case and accents, and keeps the marks
that carry meaning. That finds words in scripts with spaces. For scripts without, the ``grams`` column holds overlapping
pairs of characters, and the words of other scripts that are glued to them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from mempersist.index.stopwords import STOP_WORDS

_DENSE: Final = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f"  # Burmese
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"  # Hangul
    "\u1780-\u17ff"  # Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\u3041-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Kana
    "\U00020000-\U0003134f"
)
_DENSE_RUN: Final = re.compile(f"[{_DENSE}]+")
WORD_CHARACTER: Final = f"[^\\W_{_DENSE}]"
"""A regular expression for one letter or digit of a script with spaces."""
_GLUED: Final = re.compile(f"(?<=[{_DENSE}]){WORD_CHARACTER}+|{WORD_CHARACTER}+(?=[{_DENSE}])")
_SUFFIXES: Final = ("ingly", "edly", "ing", "ies", "ied", "ers", "ely", "ed", "es", "er", "ly", "s", "e", "y")
_MIN_STEM: Final = 3
_MIN_PREFIX: Final = 3
_MAX_TERMS: Final = 40


@dataclass(frozen=True, slots=True)
class Term:
    """A thing to look for. ``words`` of a phrase stand side by side; ``prefix`` matches words that go on."""

    words: tuple[str, ...]
    prefix: bool = False
    grams: bool = False

    def expression(self) -> str:
        """As FTS5 syntax; the words are letters, digits and marks only, so that quoting is safe."""
        phrase = f'"{" ".join(self.words)}"'
        if self.grams:
            return f"grams : {phrase}"
        return f"{phrase} *" if self.prefix else phrase


def grams(text: str) -> str:
    """What the ``grams`` column holds of ``text``: empty for text in scripts with spaces."""
    if _DENSE_RUN.search(text) is None:
        return ""
    normal = unicodedata.normalize("NFKC", text)
    found = [pair for run in _DENSE_RUN.findall(normal) for pair in _pairs(run)]
    return " ".join((*found, *(word.lower() for word in _GLUED.findall(normal))))


def _pairs(run: str) -> list[str]:
    return [run[index : index + 2] for index in range(len(run) - 1)]


def terms(query: str) -> tuple[Term, ...]:
    """What to look for, without repeats, in the order of the query; at most 40, the longest where there are more.

    Stop words are left out unless there is nothing else.
    """
    every = list(dict.fromkeys(_terms(query)))
    telling = [term for term in every if not _is_stop_word(term)]
    chosen = telling or every
    if len(chosen) > _MAX_TERMS:
        longest = sorted(chosen, key=lambda term: -sum(map(len, term.words)))[:_MAX_TERMS]
        kept = set(longest)
        chosen = [term for term in chosen if term in kept]
    return tuple(chosen)


def expression(wanted: tuple[Term, ...]) -> str:
    """An FTS5 expression that any of ``wanted`` matches; empty for none."""
    return " OR ".join(term.expression() for term in wanted)


def stem(word: str) -> str:
    """``word`` without a common ending, for use as a prefix; crude on purpose, it only has to be shared by forms."""
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _MIN_STEM:
            word = word[: -len(suffix)]
            if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "lsaeiou":
                word = word[:-1]
            return word
    return word


def _is_stop_word(term: Term) -> bool:
    return not term.grams and len(term.words) == 1 and term.words[0] in STOP_WORDS


def _terms(query: str) -> Iterator[Term]:
    for piece in unicodedata.normalize("NFKC", query).split():
        words = [word.lower() for word in _words(piece)]
        plain = [word for word in words if _DENSE_RUN.search(word) is None]
        # An identifier, a version, a path: its parts side by side, and each by itself.
        if len(words) > 1 and plain == words:
            yield Term(tuple(words))
        for word in words:
            yield from _word_terms(word)


def _word_terms(word: str) -> Iterator[Term]:
    if _DENSE_RUN.search(word) is None:
        yield Term((word,))
        if word not in STOP_WORDS and word.isalpha():
            root = stem(word)
            if len(root) >= _MIN_PREFIX:
                yield Term((root,), prefix=True)
        return
    for run in _DENSE_RUN.findall(word):
        pairs = _pairs(run)
        if len(pairs) > 1:
            yield Term(tuple(pairs), grams=True)
        for pair in pairs:
            yield Term((pair,), grams=True)
    for glued in _DENSE_RUN.sub(" ", word).split():
        yield Term((glued,))


def _words(piece: str) -> list[str]:
    """The tokens that the index's tokenizer makes of ``piece``."""
    text = "".join(character if _is_token(character) else " " for character in piece)
    return text.split()


def _is_token(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "LN" or category in {"Co", "Mn", "Mc"}
