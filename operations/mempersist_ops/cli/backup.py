"""`mempersist backup`: a snapshot of the archive in another directory, and proof that a backup is good."""

from __future__ import annotations

import asyncio
import os
from contextlib import closing
from pathlib import Path

import click

from mempersist.archive.model import OWNER
from mempersist_ops.backup import check, create, repository
from mempersist_ops.backup.check import HARMLESS, PROBLEMS, Checked
from mempersist_ops.backup.layout import Snapshot
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option
from mempersist_ops.cli.progress import Progress, Steps, amount
from mempersist_ops.host import datadir
from mempersist_ops.host.runtime import Host
from mempersist_ops.stores.embedded.objects import FileObjectStore

_SHOWN = 20


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
@data_dir_option
@click.option("--check", "only_check", is_flag=True, help="Read the whole backup back instead; nothing is written.")
@click.option("--list", "only_list", is_flag=True, help="List the snapshots instead.")
@json_option
def backup(directory: Path, data_dir: Path | None, only_check: bool, only_list: bool, as_json: bool) -> int:
    """Back the archive up into a directory, or read a backup back.

    Each run writes a signed snapshot; what an earlier one copied is kept once and not read again. The server may go on
    writing meanwhile. With --check every byte, list and signature is read, and the newest snapshot is folded into a
    catalog; exits with 1 if something is wrong.
    """
    if only_list:
        return _list(directory, as_json=as_json)
    if only_check:
        return _check(directory, data_dir, as_json=as_json)
    progress = Progress("backing up", "objects")
    directory.mkdir(parents=True, exist_ok=True)

    async def take(host: Host) -> Snapshot:
        key = datadir.backup_key(host.directory)
        ports = host.ports
        with closing(FileObjectStore(directory)) as store:
            return await create.create(ports.objects, OWNER, store, key, ports.clock, ports.ids, progress.at)

    made = on_directory(data_dir, take)
    progress.close()
    print_json(snapshot_json(made)) if as_json else click.echo(described(made))
    return 0


def _list(directory: Path, *, as_json: bool) -> int:
    async def read() -> list[Snapshot]:
        with closing(FileObjectStore(directory)) as store:
            await repository.require(store)
            return [await repository.snapshot(store, one) for one in await repository.snapshot_ids(store)]

    found = asyncio.run(read())
    if as_json:
        print_json({"snapshots": [snapshot_json(one) for one in found]})
    else:
        for one in found:
            click.echo(described(one))
    return 0


def _check(directory: Path, data_dir: Path | None, *, as_json: bool) -> int:
    steps = Steps()
    key = key_at_hand(data_dir)

    async def read() -> Checked:
        with closing(FileObjectStore(directory)) as store:
            return await check.check(store, key, lambda done: steps.at("checking", "objects", done, done))

    report = asyncio.run(read())
    steps.close()
    if as_json:
        problems = [{"code": code, "what": what} for code, what in report.problems]
        counts = {"snapshots": report.snapshots, "objects": report.objects, "hashedBytes": report.hashed}
        print_json({"good": report.good, **counts, "problems": problems})
    else:
        click.echo(f"{report.snapshots} snapshots, {report.objects:,} objects, {amount(report.hashed, 'bytes')} hashed")
        for code, count in sorted(report.counts.items()):
            click.echo(f"{'note' if code in HARMLESS else 'problem'}: {code} {count:,} times: {PROBLEMS[code]}")
            for _, what in [one for one in report.problems if one[0] == code][:_SHOWN]:
                click.echo(f"  {what}")
        click.echo("the backup is good" if report.good else "the backup is not good; take a new one beside it")
    return 0 if report.good else 1


def key_at_hand(data_dir: Path | None) -> bytes | None:
    """The key of the data directory, where there is one."""
    place = datadir.location(data_dir, os.environ)
    path = datadir.DataDirectory(place).backup_key
    return datadir.read_backup_key(path) if path.exists() else None


def snapshot_json(one: Snapshot) -> dict[str, object]:
    return {
        "id": one.id,
        "createdAt": one.created_at,
        "objects": one.objects,
        "sizeBytes": one.size_bytes,
        "newObjects": one.new_objects,
        "newBytes": one.new_bytes,
        "catalogDigest": one.catalog_digest,
    }


def described(one: Snapshot) -> str:
    whole = f"{one.objects:,} objects, {amount(one.size_bytes, 'bytes')}"
    return f"{one.id}: {whole}; new: {one.new_objects:,} objects, {amount(one.new_bytes, 'bytes')}"
