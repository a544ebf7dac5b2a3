"""`mempersist verify`: is everything there, is it what it was, and does what is made from it agree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from mempersist.errors import validation
from mempersist.recovery.verify import FINDINGS, Slice, Verification
from mempersist.recovery.verify import verify as run
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option
from mempersist_ops.cli.progress import Steps, amount

_SHOWN = 20


@click.command()
@data_dir_option
@click.option("--slice", "part", metavar="K/N", help="Hash only part K of N; all parts together are everything.")
@json_option
def verify(data_dir: Path | None, part: str | None, as_json: bool) -> int:
    """Check every object, chain, row and vector.

    Nothing is changed. Exits with 1 if something is damaged or behind; notes alone are fine.
    """
    steps = Steps()
    chosen = _slice(part)
    report = on_directory(
        data_dir,
        lambda host: run(host.ports, part=chosen, progress=lambda done: steps.at("verifying", "objects", done, done)),
    )
    steps.close()
    print_json(_json(report)) if as_json else click.echo(_described(report))
    return 0 if report.severity() in {None, "note"} else 1


def _slice(part: str | None) -> Slice:
    if part is None:
        return Slice()
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", part)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        raise validation("slice", "write K/N with K from 1 to N, such as 3/7")
    return Slice(int(found[1]) - 1, int(found[2]))


def _json(report: Verification) -> dict[str, Any]:
    return {
        "conversations": report.conversations,
        "tombstones": report.tombstones,
        "objects": report.objects,
        "hashedBytes": report.hashed,
        "worst": report.severity(),
        "counts": dict(sorted(report.counts.items())),
        "findings": [
            {"code": item.code, "severity": item.kind.severity, "key": item.key, "remedy": item.kind.remedy}
            for item in report.findings
        ],
    }


def _described(report: Verification) -> str:
    looked_at = f"{report.conversations:,} conversations, {report.tombstones:,} deleted, {report.objects:,} objects"
    lines = [f"{looked_at}; {amount(report.hashed, 'bytes')} hashed"]
    for code, count in sorted(report.counts.items()):
        kind = FINDINGS[code]
        lines.append(f"{kind.severity}: {code} {count:,} times: {kind.meaning}")
        if kind.remedy != "none":
            lines.append(f"  what to do: {kind.remedy}")
        keys = [item.key for item in report.findings if item.code == code]
        lines += [f"  {key}" for key in keys[:_SHOWN]]
        if count > _SHOWN:
            lines.append(f"  and {count - _SHOWN:,} more; --json lists them")
    if not report.counts:
        lines.append("everything is there and as it was")
    return "\n".join(lines)
