"""What a mail may be."""

from __future__ import annotations

import re

from mempersist.ports import Mail

MAX_ADDRESS_CHARS = 254
MAX_SUBJECT_CHARS = 200
MAX_BODY_CHARS = 100_000
_ADDRESS = re.compile(r"[^\s@<>,;\"\\]+@[^\s@<>,;\"\\]+\.[^\s@<>,;\"\\]+")


def check_mail(mail: Mail) -> None:
    """:raises ValueError: naming the field: no address, a line break in a header, or too long."""
    if len(mail.to) > MAX_ADDRESS_CHARS or not _ADDRESS.fullmatch(mail.to):
        raise ValueError(f"to: must be one mail address of at most {MAX_ADDRESS_CHARS} characters")
    if not mail.subject.strip() or len(mail.subject) > MAX_SUBJECT_CHARS or not mail.subject.isprintable():
        raise ValueError(f"subject: must be one line of 1 to {MAX_SUBJECT_CHARS} characters")
    for name, text in (("text", mail.text), ("html", mail.html or "-")):
        if not text.strip() or len(text) > MAX_BODY_CHARS:
            raise ValueError(f"{name}: must have 1 to {MAX_BODY_CHARS} characters")
