"""`mempersist import`: an export, here or to a server elsewhere, or an archive file back into a directory."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, Final

import click

from mempersist.errors import Code, MempersistError
from mempersist.imports.records import receipt_json
from mempersist_ops.archive_file.restore import is_archive_file
from mempersist_ops.cli import remote
from mempersist_ops.cli.counts import count_lines
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option, url_option
from mempersist_ops.cli.progress import Steps, amount
from mempersist_ops.host import datadir
from mempersist_ops.host.importing import import_file, index
from mempersist_ops.host.restoring import restore_file

WITH_ERRORS: Final = 3
"""Exit code of an import that ended, but not with everything."""


@click.command(name="import")
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@data_dir_option
@click.option("--namespace", help="Where new conversations go. Default: the account's default namespace.")
@click.option("--force", is_flag=True, help="Import even if the same file was imported before.")
@url_option
@json_option
def import_(
    path: Path,
    data_dir: Path | None,
    namespace: str | None,
    force: bool,
    url: str | None,
    token: str | None,
    as_json: bool,
) -> int:
    """Import a ChatGPT export, or restore a file that `export` wrote.

    PATH is the export's ZIP as downloaded, a conversations.json, or one of several conversations-NNN.json. Interrupted,
    the work goes on at the next start. Exits with 3 if some items could not be imported; the receipt says which.
    """
    steps = Steps()
    if is_archive_file(path):
        return _restore(path, data_dir, namespace, force, url, steps, as_json=as_json)
    if url:
        receipt = _upload(url, token, path, data_dir, namespace, steps, force=force)
    else:
        receipt = _import_here(path, data_dir, namespace, steps, force=force)
    steps.close()
    if as_json:
        print_json(receipt)
    else:
        click.echo(describe(receipt))
    return {"failed": 1, "complete_with_errors": WITH_ERRORS}.get(receipt["status"], 0)


def _import_here(path: Path, data_dir: Path | None, namespace: str | None, steps: Steps, *, force: bool) -> Any:
    receipt = on_directory(
        data_dir,
        lambda host: import_file(host, path, namespace, force=force, progress=steps.at),
        create=True,
    )
    return receipt_json(receipt)


def _upload(
    url: str, token: str | None, path: Path, data_dir: Path | None, namespace: str | None, steps: Steps, *, force: bool
) -> Any:
    directory = datadir.create(datadir.location(data_dir, os.environ))
    with remote.connected(url, token) as server:
        import_id = remote.upload(
            server,
            path,
            directory.sending,
            namespace,
            force,
            lambda done, total: steps.at("sending", "bytes", done, total),
        )
        return remote.finish(server, import_id, lambda done, total: steps.at("importing", "bytes", done, total))


def _restore(
    path: Path,
    data_dir: Path | None,
    namespace: str | None,
    force: bool,
    url: str | None,
    steps: Steps,
    *,
    as_json: bool,
) -> int:
    if url or namespace or force:
        message = "an archive file is restored as it is, into a data directory: without --url, --namespace and --force"
        raise MempersistError(Code.VALIDATION, message)
    directory = datadir.create(datadir.location(data_dir, os.environ))
    done = asyncio.run(restore_file(directory, path, steps.at))
    on_directory(data_dir, lambda host: index(host, steps.at))
    steps.close()
    if as_json:
        print_json(
            {
                "written": done.copied.written,
                "unchanged": done.copied.unchanged,
                "leftOut": done.copied.left_out,
                "merged": done.merged,
                "catalogDigest": done.catalog_digest,
            }
        )
    else:
        same = "the file's own" if done.catalog_digest == done.summary.catalog_digest else "that of both together"
        click.echo(
            f"restored {done.copied.written:,} objects into {directory.root}; {done.copied.unchanged:,} were there"
            f" already, {done.copied.left_out:,} belong to conversations deleted since"
        )
        click.echo(f"catalog digest {done.catalog_digest}, {same}")
    return 0


def describe(receipt: dict[str, Any]) -> str:
    """A receipt for people: what was found, what became of it, and why some of it did not come in."""
    lines = [f"import {receipt['importId']}: {receipt['status']} ({amount(receipt['sizeBytes'], 'bytes')})"]
    if receipt.get("duplicateOf"):
        lines.append(f"  the same bytes were imported before, by {receipt['duplicateOf']}; --force imports them again")
    lines += count_lines(receipt["counts"])
    if receipt.get("error"):
        lines.append(f"  {receipt['error']['code']}: {receipt['error']['message']}")
    return "\n".join(lines)
