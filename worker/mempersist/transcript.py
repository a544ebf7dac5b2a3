"""Messages as plain text: who wrote each and when, and its words exactly as they are."""

from __future__ import annotations


def labelled(role: str, created_at: str | None, text: str) -> str:
    """One message with its label, a blank line behind it."""
    when = f" ({created_at})" if created_at else ""
    return f"{role}{when}:\n{text}\n\n"
