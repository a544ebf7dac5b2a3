"""`mempersist restore`: a backup's snapshot as an archive again."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path

import click

from mempersist import timestamps
from mempersist.errors import validation
from mempersist_ops.backup.restore import Restored, Wanted
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option
from mempersist_ops.cli.progress import Steps
from mempersist_ops.host import backups, datadir
from mempersist_ops.host.importing import index
from mempersist_ops.stores.embedded.objects import FileObjectStore

_SHOWN = 20


@click.command()
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
@data_dir_option
@click.option(
    "--snapshot", help="Its id, as `mempersist backup --list` shows it. Default: the newest that can be read."
)
@click.option("--conversation", help="Restore this conversation alone.")
@click.option("--until", help="Leave out what was written after this time, such as 2026-11-30T12:00:00Z.")
@json_option
def restore(
    directory: Path,
    data_dir: Path | None,
    snapshot: str | None,
    conversation: str | None,
    until: str | None,
    as_json: bool,
) -> int:
    """Restore a backup into an empty data directory, all of it or some.

    What is damaged in the backup is left out and named; exits with 1 then. Interrupted, run it again.
    """
    wanted = Wanted(conversation, _time(until))
    place = datadir.create(datadir.location(data_dir, os.environ))
    steps = Steps()

    async def run() -> tuple[Restored, str]:
        with closing(FileObjectStore(directory)) as store:
            return await backups.restore(place, store, snapshot, wanted, steps.at)

    report, found = asyncio.run(run())
    on_directory(data_dir, lambda host: index(host, steps.at))
    steps.close()
    if as_json:
        print_json(
            {
                "written": report.written,
                "unchanged": report.unchanged,
                "later": report.later,
                "leftOut": report.left_out,
                "catalogDigest": found,
            }
        )
    else:
        click.echo(f"restored {report.written:,} objects into {place.root}; catalog digest {found}")
        for key in report.left_out[:_SHOWN]:
            click.echo(f"left out, damaged in the backup: {key}")
        if len(report.left_out) > _SHOWN:
            click.echo(f"and {len(report.left_out) - _SHOWN:,} more; --json lists them")
    return 1 if report.left_out else 0


def _time(until: str | None) -> str | None:
    if until is None:
        return None
    try:
        return timestamps.normalise(until)
    except ValueError:
        raise validation("until", "must be a time in ISO 8601, such as 2026-11-30T12:00:00Z") from None
