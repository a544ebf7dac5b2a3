"""`mempersist demo`: the bundled sample imported, a search answered, a server left running."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path
from typing import Any

import click

from mempersist.errors import Code, MempersistError
from mempersist.imports.records import receipt_json
from mempersist_ops import sample
from mempersist_ops.cli.import_ import describe
from mempersist_ops.cli.local import on_directory, program
from mempersist_ops.cli.options import data_dir_option
from mempersist_ops.cli.progress import Steps
from mempersist_ops.cli.search import describe_results
from mempersist_ops.cli.serve import serve_directory
from mempersist_ops.cli.tools import call_here
from mempersist_ops.host import datadir
from mempersist_ops.host.importing import import_file
from mempersist_ops.host.runtime import Host
from mempersist_ops.host.serve import DEFAULT_PORT, Address

_RESULTS = 3


@click.command()
@data_dir_option
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--no-serve", is_flag=True, help="Stop after the search.")
def demo(data_dir: Path | None, port: int, no_serve: bool) -> None:
    """Import the bundled sample archive, answer a search and serve it.

    The sample is an export that we wrote, ugly on purpose: some of it is broken, and the receipt says what and why.
    Without --data-dir it goes into a directory of its own beside your archive, never into it.
    """
    place = datadir.location(data_dir, os.environ)
    if data_dir is None:
        place = place.with_name(f"{place.name}-demo")
    steps = Steps()

    async def work(host: Host) -> tuple[Any, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = sample.build(Path(folder) / "sample-export.zip")
            receipt = await import_file(host, path, None, force=False, progress=steps.at)
        steps.close()
        found = await call_here(host, "memory_search", {"query": sample.DEMO_QUERY, "limit": _RESULTS})
        return receipt_json(receipt), found

    click.echo(f"Importing the bundled sample into {place}")
    receipt, found = on_directory(place, work, create=True)
    click.echo(f"{describe(receipt)}\n")
    click.echo(f'{program()} search "{sample.DEMO_QUERY}"\n\n{describe_results(found)}\n')
    if receipt["status"] == "failed" or not found["results"]:
        raise MempersistError(Code.DERIVED_INDEXING, "the sample was not imported and found again; see above")
    if no_serve:
        click.echo(f"Serve it with: {program()} serve --data-dir {shlex.quote(str(place))}")
    else:
        serve_directory(datadir.existing(place), Address(port=port))
