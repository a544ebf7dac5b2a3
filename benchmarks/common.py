"""What the benchmarks share: timing, memory, tables, and results on disk."""

from __future__ import annotations

import json
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"

Row = Mapping[str, Any]


def median_seconds(work: Callable[[], object], *, runs: int = 5) -> float:
    """The median wall time of ``runs`` runs, after one that is not counted."""
    work()
    return statistics.median(seconds(work) for _ in range(runs))


def seconds(work: Callable[[], object]) -> float:
    """The wall time of one run."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def peak_mib() -> float:
    """The most memory that this process ever had resident, in MiB, as the kernel counts it."""
    status = Path("/proc/self/status")
    if status.exists():  # what getrusage tells here begins with the parent's memory
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def table(rows: Sequence[Row]) -> str:
    """``rows`` as a Markdown table whose columns are the keys of the first; floats with one decimal."""
    columns = list(rows[0])
    cells = [columns, *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[place]) for line in cells) for place in range(len(columns))]
    numeric = [all(isinstance(row.get(column), int | float | None) for row in rows) for column in columns]
    lines = [
        " | ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        )
        for line in cells
    ]
    rule = " | ".join("-" * (width - 1) + (":" if right else "-") for width, right in zip(widths, numeric, strict=True))
    return "\n".join(f"| {line} |" for line in (lines[0], rule, *lines[1:]))


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def publish(name: str, title: str, tables: Mapping[str, Sequence[Row]], *, notes: Sequence[str] = ()) -> None:
    """Print ``tables`` and write them to ``results/<name>.json`` and ``results/<name>.md``."""
    text = [f"# {title}", "", f"Python {platform.python_version()} on {machine()}.", *notes, ""]
    for heading, rows in tables.items():
        text += [f"## {heading}", "", table(rows), ""]
    RESULTS.mkdir(exist_ok=True)
    document = {"title": title, "machine": machine(), "python": platform.python_version(), "tables": tables}
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (RESULTS / f"{name}.md").write_text("\n".join(text), encoding="utf-8")
    print("\n".join(text))


def machine() -> str:
    """The processors, as far as the system names them."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{os.cpu_count()} x {models[0] if models else platform.machine()}"
