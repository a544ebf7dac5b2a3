"""`mempersist token`: where the bearer token is, or the token itself."""

from __future__ import annotations

import os
from pathlib import Path

import click

from mempersist_ops.cli.options import data_dir_option
from mempersist_ops.host import datadir


@click.command()
@data_dir_option
@click.option("--show", is_flag=True, help="Print the token itself.")
def token(data_dir: Path | None, show: bool) -> None:
    """Show where the bearer token is, or the token itself.

    The server makes a token at its first start and keeps it in a file that only you can read. MEMORY_API_TOKEN, where
    it is set, is used instead of the file.
    """
    directory = datadir.create(datadir.location(data_dir, os.environ))
    value = datadir.api_token(directory, os.environ)
    if show:
        click.echo(value)
    elif os.environ.get(datadir.TOKEN_VARIABLE):
        click.echo(f"the environment variable {datadir.TOKEN_VARIABLE}")
    else:
        click.echo(str(directory.token))
