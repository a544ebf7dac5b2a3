"""Names that people give: namespaces, titles, tags. One form for each, checked the same way at every door."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from mempersist import limits
from mempersist.errors import validation
from mempersist.text import normalise_tag, printable


def namespace(value: str, field: str = "namespace") -> str:
    """NFC, trimmed, without control characters. :raises MempersistError: when blank or too long."""
    name = unicodedata.normalize("NFC", printable(value)).strip()
    if not name:
        raise validation(field, "must not be blank")
    if len(name) > limits.MAX_NAMESPACE_CHARS:
        raise validation(field, f"has {len(name)} characters; at most {limits.MAX_NAMESPACE_CHARS} are allowed")
    return name


def title(value: str, field: str = "title") -> str:
    """As written, but for control characters. :raises MempersistError: when blank or too long."""
    name = printable(value)
    if not name.strip():
        raise validation(field, "must not be blank")
    if len(name) > limits.MAX_TITLE_CHARS:
        raise validation(field, f"has {len(name)} characters; at most {limits.MAX_TITLE_CHARS} are allowed")
    return name


def tags(values: Sequence[str], field: str = "tags") -> tuple[str, ...]:
    """NFKC, lower case, trimmed, without repeats, in the order given.

    :raises MempersistError: for a blank or too long tag, or more than ``MAX_TAGS`` different ones.
    """
    result: dict[str, None] = {}
    for index, value in enumerate(values):
        tag = normalise_tag(value)
        if not tag:
            raise validation(f"{field}[{index}]", "must not be blank")
        if len(tag) > limits.MAX_TAG_CHARS:
            raise validation(
                f"{field}[{index}]", f"has {len(tag)} characters; at most {limits.MAX_TAG_CHARS} are allowed"
            )
        result[tag] = None
    if len(result) > limits.MAX_TAGS:
        raise validation(field, f"has {len(result)} different tags; at most {limits.MAX_TAGS} are allowed")
    return tuple(result)
