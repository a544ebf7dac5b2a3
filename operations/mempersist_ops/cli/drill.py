"""`mempersist drill`: does this backup really come back."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from mempersist import timestamps
from mempersist.system import SystemClock
from mempersist_ops.cli.local import print_json
from mempersist_ops.cli.options import json_option
from mempersist_ops.cli.progress import Steps
from mempersist_ops.host import backups
from mempersist_ops.host.backups import Drill
from mempersist_ops.stores.embedded.objects import FileObjectStore


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="Write what was found into this file.")
@json_option
def drill(directory: Path, report: Path | None, as_json: bool) -> int:
    """Restore the newest snapshot into a scratch archive and prove it.

    Every object is copied and hashed, the catalog rebuilt and its digest compared with the snapshot's, and the whole
    verified; then the scratch archive is removed. Exits with 1 if it did not come back as it was.
    """
    steps = Steps()

    async def run() -> Drill:
        with closing(FileObjectStore(directory)) as store:
            return await backups.drill(store, steps.at)

    done = asyncio.run(run())
    steps.close()
    found = _json(done)
    if report is not None:
        report.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if as_json:
        print_json(found)
    else:
        click.echo(f"snapshot {done.snapshot.id}: {done.restored.written:,} objects restored")
        click.echo(f"catalog digest {done.catalog_digest}, the snapshot's {done.snapshot.catalog_digest}")
        for code, count in sorted(done.verification.counts.items()):
            click.echo(f"  {code} {count:,} times")
        click.echo("the backup comes back as it was" if done.good else "the backup does NOT come back as it was")
    return 0 if done.good else 1


def _json(done: Drill) -> dict[str, Any]:
    return {
        "at": timestamps.from_ms(SystemClock().now_ms()),
        "good": done.good,
        "snapshot": done.snapshot.id,
        "snapshotCreatedAt": done.snapshot.created_at,
        "restored": done.restored.written,
        "leftOut": done.restored.left_out,
        "catalogDigest": done.catalog_digest,
        "expectedDigest": done.snapshot.catalog_digest,
        "findings": dict(sorted(done.verification.counts.items())),
    }
