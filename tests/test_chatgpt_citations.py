"""Citation markers become the titles of what they cite, and leave nothing else behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.chatgpt import node_of

CITE = "\ue200cite\ue202turn0search3\ue201"


def text_with(text: str, role: str = "assistant", **metadata: Any) -> str:
    return node_of(text, role, metadata=metadata).text


def test_a_marker_becomes_the_titles_that_its_reference_gives() -> None:
    items = [
        {"title": "Hops 2025", "url": "https://h.example"},
        {"title": "Beer"},
        {"title": "Hops 2025"},
        {"url": "x"},
    ]
    references = [{"matched_text": CITE, "type": "grouped_webpages", "items": items}]
    text = text_with(f"Yields rose {CITE}. Prices too.{CITE}", content_references=references)
    assert text == "Yields rose (Hops 2025, Beer). Prices too. (Hops 2025, Beer)"


def test_a_reference_may_have_its_title_itself() -> None:
    assert text_with(f"See {CITE}", content_references=[{"matched_text": CITE, "title": "A page"}]) == "See (A page)"
    fallback = [{"matched_text": CITE, "items": [], "fallback_items": [{"title": "Another"}]}]
    assert text_with(f"See {CITE}", content_references=fallback) == "See (Another)"


def test_a_marker_without_a_title_vanishes_with_its_blank() -> None:
    assert text_with(f"Yields rose {CITE}. Prices {CITE} too.") == "Yields rose. Prices too."


def test_ghost_citations_are_named_from_the_search_results() -> None:
    groups = [
        {
            "domain": "h.example",
            "entries": [
                {"title": "Hops 2025", "ref_id": {"turn_index": 0, "ref_type": "search", "ref_index": 3}},
                {"title": "Unused", "ref_id": {"turn_index": 0, "ref_type": "news", "ref_index": 1}},
            ],
        }
    ]
    assert text_with(f"Yields rose {CITE}.", citations=[], search_result_groups=groups) == "Yields rose (Hops 2025)."


@pytest.mark.parametrize("blank", [" ", "\n", "", "\t "])
def test_a_reference_to_a_blank_replaces_no_blank(blank: str) -> None:
    references = [{"matched_text": blank, "items": [{"title": "Sources"}]}]
    assert text_with("keep all the blanks", content_references=references) == "keep all the blanks"


def test_a_reference_to_ordinary_words_replaces_nothing() -> None:
    references = [{"matched_text": "blanks", "items": [{"title": "Sources"}]}]
    assert text_with(f"keep all the blanks{CITE}", content_references=references) == "keep all the blanks"


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ('We met \ue200entity\ue202["company","Acme","maker of anvils"]\ue201 today', "We met Acme today"),
        ("\ue200entity\ue202[broken\ue201 today", " today"),
        ("\ue200entity\ue202" + "[" * 9000 + "\ue201 today", " today"),
        ("Go to \ue200url\ue202the shop\ue202turn0search1\ue201 now", "Go to the shop now"),
        ("\ue200navlist\ue202Recent news\ue202turn0news1,turn0news2\ue201", "Recent news"),
        ("\ue200video\ue202How to prune\ue202turn0search1\ue201", "How to prune"),
        ("Pictures: \ue200i\ue202turn0image0\ue202turn0image1\ue201 end", "Pictures: end"),
        ('Before \ue200image_group\ue202{"query":["roses"]}\ue201 after', "Before after"),
        ("\ue203a cited span\ue204 \ue200cite\ue202turn0search1\ue201 goes on", "a cited span goes on"),
        ("The file \ue200filecite\ue202turn1file0\ue202L10-L20\ue201 says", "The file says"),
        ("cut in the middle \ue200cite\ue202turn0se", "cut in the middle "),
        ("a lone \ue201 closing mark\ue206", "a lone  closing mark"),
        ("Hops【4†source】 grow【12:3†tax.pdf】.", "Hops grow."),
        ("Ein Dolch† und 【eckige】 Klammern", "Ein Dolch† und 【eckige】 Klammern"),
    ],
)
def test_every_kind_of_marker(text: str, cleaned: str) -> None:
    assert text_with(text) == cleaned


def test_an_older_citation_is_named_by_its_place_in_the_text() -> None:
    text = "Hops grow【4†source】 tall"
    citations = [{"start_ix": 9, "end_ix": 19, "metadata": {"title": "Hops", "url": "https://h.example"}}]
    assert text_with(text, citations=citations) == "Hops grow (Hops) tall"


def test_private_use_characters_that_a_person_typed_are_kept() -> None:
    assert text_with("my icon font: \ue203 \ue206", "user") == "my icon font: \ue203 \ue206"
    assert text_with(f"pasted answer {CITE}", "user") == "pasted answer"


def test_thoughts_are_cleaned_too() -> None:
    content = {"content_type": "thoughts", "thoughts": [{"summary": "Reading", "content": f"It says {CITE} so"}]}
    assert node_of(content).text == "Reading\nIt says so"


@given(st.text(st.sampled_from('ab \n\ue200\ue201\ue202\ue203\ue204【†】4[]"'), max_size=60))
def test_no_marker_character_survives_in_an_answer(text: str) -> None:
    assert not any("\ue200" <= character <= "\ue206" for character in text_with(text))


@given(st.text(max_size=60))
def test_text_without_markers_is_untouched(text: str) -> None:
    plain = "".join(character for character in text if not "\ue200" <= character <= "\ue206" and character != "†")
    assert text_with("x" + plain) == "x" + plain
