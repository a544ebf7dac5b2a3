"""Finding a query's words in a text: for the just-written channel, which has no index, and for snippets."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mempersist.index.terms import WORD_CHARACTER, Term
from mempersist.limits import MAX_SNIPPET_CHARS

_ELLIPSIS = "…"
_MAX_HITS = 400


def folded(text: str) -> str:
    """``text`` in lower case without accents, character for character, so that positions stay what they were."""
    return "".join(_fold(character) for character in text)


def _fold(character: str) -> str:
    # Accents fold in the scripts of Europe, as in the index; elsewhere marks carry meaning.
    base = character if character < "\x80" or character >= "\u0530" else unicodedata.normalize("NFD", character)[0]
    lower = base.lower()
    return lower if len(lower) == 1 else character


@dataclass(frozen=True, slots=True)
class Matcher:
    """A query's terms, ready to be found in texts. ``patterns`` are regular expressions over folded text."""

    patterns: tuple[re.Pattern[str], ...]

    @staticmethod
    def of(wanted: Sequence[Term]) -> Matcher:
        return Matcher(tuple(_pattern(term) for term in wanted))

    def coverage(self, text: str) -> float:
        """The part of the terms that ``text`` holds, 0 to 1; 0 unless two do, where there are two or more."""
        haystack = folded(text)
        hits = sum(pattern.search(haystack) is not None for pattern in self.patterns)
        if hits < min(2, len(self.patterns)):
            return 0.0
        return hits / len(self.patterns)

    def hits(self, text: str) -> Iterator[tuple[int, int]]:
        """Where terms begin in ``text``, each with the number of its term."""
        haystack = folded(text)
        for number, pattern in enumerate(self.patterns):
            for count, match in enumerate(pattern.finditer(haystack)):
                if count == _MAX_HITS:
                    break
                yield match.start(), number

    def snippet(self, text: str) -> str:
        """At most 500 characters of ``text`` around the place that holds most of the terms, cut between words."""
        if len(text) <= MAX_SNIPPET_CHARS:
            return text.strip()
        width = MAX_SNIPPET_CHARS - 2 * len(_ELLIPSIS)
        hits = sorted(self.hits(text))
        best, most = 0, (0, 0)
        for index, (start, _) in enumerate(hits):
            within = [number for at, number in hits[index:] if at < start + width * 3 // 4]
            found = (len(set(within)), len(within))
            if found > most:
                best, most = start, found
        return _cut(text, max(0, best - width // 4), width)


def _cut(text: str, start: int, width: int) -> str:
    """``width`` characters of ``text`` from about ``start``, moved to the edges of words where there are any near."""
    end = min(len(text), start + width)
    start = max(0, end - width)
    if start > 0:
        space = _next_space(text, start, start + width // 8)
        start = start if space is None else space + 1
    if end < len(text):
        space = _next_space(text, end - width // 8, end, last=True)
        end = end if space is None else space
    return (_ELLIPSIS if start > 0 else "") + text[start:end].strip() + (_ELLIPSIS if end < len(text) else "")


def _next_space(text: str, start: int, end: int, *, last: bool = False) -> int | None:
    places = [match.start() for match in re.finditer(r"\s", text[start:end])]
    return None if not places else start + (places[-1] if last else places[0])


def _pattern(term: Term) -> re.Pattern[str]:
    if term.grams:
        run = term.words[0] + "".join(pair[-1] for pair in term.words[1:])
        return re.compile(re.escape(folded(run)))
    words = r"[\W_]+".join(re.escape(folded(word)) for word in term.words)
    return re.compile(f"(?<!{WORD_CHARACTER}){words}" + ("" if term.prefix else f"(?!{WORD_CHARACTER})"))
