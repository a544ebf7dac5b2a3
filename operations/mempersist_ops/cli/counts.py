"""An import's counts for people."""

from __future__ import annotations

from typing import Any

from mempersist.imports.counts import FATES


def count_lines(counts: dict[str, Any]) -> list[str]:
    """What was found and what became of it, then how often each reason was given."""
    lines = []
    for name in ("conversations", "messages", "assets"):
        parts = ", ".join(f"{counts[name][fate]:,} {fate}" for fate in FATES)
        lines.append(f"  {name}: {counts[name]['found']:,} found = {parts}")
    for severity, reasons in sorted(counts["reasons"].items()):
        lines += [f"  {severity}: {code} x {times:,}" for code, times in sorted(reasons.items())]
    return lines
