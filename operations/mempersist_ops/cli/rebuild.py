"""`mempersist rebuild-catalog`: catalog and indexes anew, from the archive's objects."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import click

from mempersist.catalog.digest import digest
from mempersist.recovery.rebuild import RebuildReport
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option
from mempersist_ops.cli.progress import Steps
from mempersist_ops.host import datadir, rebuilding
from mempersist_ops.host.importing import index
from mempersist_ops.host.runtime import stores


@click.command(name="rebuild-catalog")
@data_dir_option
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what would change.")
@json_option
def rebuild_catalog(data_dir: Path | None, yes: bool, as_json: bool) -> int:
    """Rebuild catalog and indexes from the archive's objects.

    Without --yes, nothing is changed: the catalog is compared with what the objects say, and the exit code is 1 if a
    rebuild would change it. No object is ever removed.
    """
    directory = datadir.existing(datadir.location(data_dir, os.environ))
    if not yes:
        comparison = asyncio.run(_compare(directory))
        _print(_comparison_json(comparison), as_json=as_json)
        if not as_json:
            click.echo("nothing to do" if comparison.as_it_should_be else "rebuild with --yes")
        return 0 if comparison.as_it_should_be else 1
    steps = Steps()
    report, found = asyncio.run(_rebuild(directory, steps))
    on_directory(directory.root, lambda host: index(host, steps.at))
    steps.close()
    damaged = [{"key": item.key, "problem": item.problem} for item in report.damaged]
    _print(
        {
            "catalogDigest": found,
            "conversations": report.conversations,
            "tombstones": report.tombstones,
            "assets": report.assets,
            "imports": report.imports,
            "uncommitted": report.uncommitted,
            "removed": report.removed,
            "damaged": damaged,
        },
        as_json=as_json,
    )
    return 1 if damaged else 0


async def _compare(directory: datadir.DataDirectory) -> rebuilding.Comparison:
    with closing(datadir.DirectoryLock(directory)) as lock:
        lock.share()
        async with stores(directory) as host:
            return await rebuilding.compare(host)


async def _rebuild(directory: datadir.DataDirectory, steps: Steps) -> tuple[RebuildReport, str]:
    with closing(datadir.DirectoryLock(directory)) as lock:
        lock.share()
        async with stores(directory) as host:
            total = await rebuilding.count_conversations(host)
            report = await rebuilding.rebuild(
                host, lambda done: steps.at("rebuilding", "conversations", done, max(done, total))
            )
            return report, (await digest(host.ports.catalog)).total


def _comparison_json(comparison: rebuilding.Comparison) -> dict[str, Any]:
    return {
        "catalogDigest": comparison.catalog.total,
        "objectsDigest": comparison.objects.total,
        "differingTables": list(comparison.differing),
        "vectorsLost": comparison.vectors_lost,
    }


def _print(value: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(value)
        return
    for name, item in value.items():
        if isinstance(item, list):
            click.echo(f"{name}: {len(item)}")
            for entry in item:
                click.echo(f"  {entry if isinstance(entry, str) else ' '.join(map(str, entry.values()))}")
        else:
            click.echo(f"{name}: {item}")
