"""Answers without their citation markers, and with the titles of what they cite.

Markers are private-use characters: U+E200 opens one, U+E202 parts its fields, U+E201 closes it; U+E203 and U+E204
stand around a cited span. Earlier exports write ``【4†source】``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mempersist import nesting
from mempersist.imports.chatgpt.values import Object, object_of, objects_of, text_of

_MARKER = re.compile("( ?)(\ue200[^\ue200\ue201]*\ue201|【\\d+(?::\\d+)?†[^】]{0,200}】)")
_CUT_MARKER = re.compile("\ue200[a-z_]*(?:\ue202[^\ue200-\ue206\\s]*)*\\Z")
_STRAY = re.compile("[\ue200-\ue206]")
_MAX_OLD_MARKER = 250
_HINT = re.compile("[\ue200-\ue206†]")
_REFERENCE = re.compile(r"turn\d+[a-z_]+\d+")
_NAMED_KINDS = ("url", "link", "navlist", "video")
_CITING_KINDS = ("cite", "filecite")


def clean(text: str, metadata: Object, *, written_by_model: bool) -> str:
    """``text`` with each marker replaced by the titles that ``metadata``, its message's, gives for it.

    :param written_by_model: lone marker characters are markers too; in what a person wrote they may be icons.
    """
    if text.isascii() or not _HINT.search(text):
        return text
    labels = dict(_labels(text, metadata))
    titles = dict(_titles(metadata))
    text = _MARKER.sub(lambda match: _replacement(match[1], match[2], labels, titles), text)
    if written_by_model:
        text = _STRAY.sub("", _CUT_MARKER.sub("", text))
    return text


def _replacement(blank: str, marker: str, labels: dict[str, str], titles: dict[str, str]) -> str:
    kind, *fields = marker.strip("\ue200\ue201").split("\ue202")
    if kind == "entity":
        return blank + _entity_name(fields)
    if kind in _NAMED_KINDS:
        return blank + next((field for field in fields if not _REFERENCE.fullmatch(field)), "")
    label = labels.get(marker, "")
    if not label and kind in _CITING_KINDS:
        label = _joined(titles[field] for field in fields if field in titles)
    return f" ({label})" if label else ""


def _entity_name(fields: list[str]) -> str:
    """The second of ``["company","Acme","maker of anvils"]``."""
    try:
        found = nesting.loads(fields[0])
    except (IndexError, ValueError):
        return ""
    return found[1] if isinstance(found, list) and len(found) > 1 and isinstance(found[1], str) else ""


def _labels(text: str, metadata: Object) -> Iterator[tuple[str, str]]:
    """Markers as they stand in the text, with the titles of what they refer to."""
    for reference in objects_of(metadata, "content_references"):
        marker = text_of(reference, "matched_text").strip()
        # A reference may claim to stand for a blank; only markers are ever replaced.
        if marker.startswith(("\ue200", "【")):
            items = objects_of(reference, "items") or objects_of(reference, "fallback_items") or [reference]
            yield marker, _joined(text_of(item, "title") or text_of(item, "name") for item in items)
    for citation in objects_of(metadata, "citations"):
        start, end = citation.get("start_ix"), citation.get("end_ix")
        if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= start + _MAX_OLD_MARKER:
            yield text[start:end], text_of(object_of(citation, "metadata"), "title")


def _titles(metadata: Object) -> Iterator[tuple[str, str]]:
    """Titles by ``turn0search3``, from search results that came with the answer but are not cited by it."""
    for group in objects_of(metadata, "search_result_groups"):
        for entry in objects_of(group, "entries"):
            reference = object_of(entry, "ref_id")
            turn, index = reference.get("turn_index"), reference.get("ref_index")
            yield f"turn{turn}{text_of(reference, 'ref_type')}{index}", text_of(entry, "title")


def _joined(titles: Iterator[str]) -> str:
    return ", ".join(dict.fromkeys(title.strip() for title in titles if title.strip()))
