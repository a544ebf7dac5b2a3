"""Texts fall into the pieces that BERT's uncased tokenizer finds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist_ops.embedding import files
from mempersist_ops.embedding.wordpiece import MAX_CACHED_WORDS, wordpiece

PIECES = [
    "un",
    "##aff",
    "##able",
    "##ab",
    "hello",
    "world",
    "a",
    "##a",
    "!",
    "'",
    "s",
    "東",
    "京",
    "cafe",
    "[",
    "]",
    "##i",
]


def found(text: str, pieces: list[str] = PIECES) -> list[str]:
    return [pieces[number] for number in wordpiece(pieces).numbers(text)]


@pytest.fixture(scope="module")
def vocabulary() -> list[str]:
    return (files.DIRECTORY / files.VOCABULARY).read_text(encoding="utf-8").split("\n")[:-1]


def test_a_word_is_covered_by_the_longest_pieces_from_the_left() -> None:
    assert found("unaffable") == ["un", "##aff", "##able"]


def test_a_word_that_cannot_be_covered_gives_nothing_and_the_others_stay() -> None:
    assert found("hello unaffablx world") == ["hello", "world"]


def test_marks_stand_alone_and_case_and_accents_vanish() -> None:
    assert found("Hello! CAFÉ's") == ["hello", "!", "cafe", "'", "s"]


def test_a_decomposed_accent_vanishes_like_a_composed_one() -> None:
    assert found("cafe\u0301") == found("caf\u00e9") == ["cafe"]


def test_ideographs_stand_alone() -> None:
    assert found("hello東京world") == ["hello", "東", "京", "world"]


def test_controls_and_replacement_characters_vanish_from_within_a_word() -> None:
    assert found("he\0l\x7fl\ufffd\u200do\ud800") == ["hello"]


@pytest.mark.parametrize("space", [" ", "\t", "\n", "\r", "\u00a0", "\u2009", "\u3000", "\u2028"])
def test_white_space_of_every_kind_separates(space: str) -> None:
    assert found(f"hello{space}world") == ["hello", "world"]


@pytest.mark.parametrize("control", ["\x0b", "\x0c", "\x1c", "\x1f", "\x85"])
def test_what_only_python_takes_for_white_space_does_not_separate(control: str) -> None:
    assert found(f"hel{control}lo") == ["hello"]


def test_a_word_of_100_characters_is_covered_and_a_longer_one_is_not() -> None:
    assert found("a" * 100) == ["a"] + ["##a"] * 99
    assert found("a" * 101) == []


def test_names_of_markers_are_text() -> None:
    assert found("[a]") == ["[", "a", "]"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Tokenization isn't magic.", "token ##ization isn ' t magic ."),
        ("embeddings", "em ##bed ##ding ##s"),
        ("Straße in Zürich", "st ##raße in zurich"),
        ("3,141.59 €", "3 , 141 . 59 €"),
        ("naïve façade", "naive facade"),
        ("state-of-the-art", "state - of - the - art"),
        ("https://example.org/?q=1", "https : / / example . org / ? q = 1"),
        ("中国 Привет", "中 国 п ##р ##и ##в ##е ##т"),
        ("snake_case", "snake _ case"),
        ("İstanbul", "istanbul"),
    ],
)
def test_real_texts_fall_into_the_vocabularys_pieces(vocabulary: list[str], text: str, pieces: str) -> None:
    assert found(text, vocabulary) == pieces.split()


@given(st.text(st.characters(codec=None), max_size=60))
def test_what_was_seen_before_changes_no_answer(text: str) -> None:
    tokenizer = wordpiece(PIECES)
    fresh = tokenizer.numbers(text)
    assert tokenizer.numbers(text) == fresh
    assert tokenizer.numbers(f"{text} hello {text}") == [*fresh, PIECES.index("hello"), *fresh]


@given(st.text(st.characters(codec=None, exclude_categories=["Zs", "Zl", "Zp", "Cc"]), max_size=30))
def test_parts_hold_no_white_space_controls_or_capitals(word: str) -> None:
    for part in wordpiece(PIECES).parts(word):
        assert part
        assert part.split() == [part]
        assert part == part.lower()


def test_the_words_remembered_are_bounded() -> None:
    tokenizer = wordpiece(["a"])
    for start in range(0, 2 * MAX_CACHED_WORDS, 1000):
        tokenizer.numbers(" ".join(f"w{number}" for number in range(start, start + 1000)))
    tokenizer.numbers("b" * 1000)
    assert 0 < len(tokenizer.cache) <= MAX_CACHED_WORDS
    assert max(map(len, tokenizer.cache)) < 100
