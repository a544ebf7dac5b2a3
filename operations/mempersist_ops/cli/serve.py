"""`mempersist serve`: the local server."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from mempersist.errors import Code, MempersistError
from mempersist_ops.cli.local import program
from mempersist_ops.cli.options import data_dir_option
from mempersist_ops.host import datadir
from mempersist_ops.host.guide import connection_guide
from mempersist_ops.host.serve import DEFAULT_PORT, Address, is_loopback
from mempersist_ops.host.serve import serve as run_server


@click.command()
@data_dir_option
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=DEFAULT_PORT, show_default=True, type=click.IntRange(0, 65535), help="0: any free one.")
@click.option("--public-url", help="Scheme and host that clients use, if a proxy stands in front.")
@click.option("--allow-origin", multiple=True, metavar="ORIGIN", help="Let pages of this origin use the MCP endpoint.")
@click.option("--allow-network", is_flag=True, help="Allow an address that other machines reach. There is no TLS.")
def serve(
    data_dir: Path | None,
    host: str,
    port: int,
    public_url: str | None,
    allow_origin: tuple[str, ...],
    allow_network: bool,
) -> None:
    """Run the server with its background work.

    Prints the MCP endpoint and how to connect Claude Code, Cursor and the MCP Inspector. Stop it with Ctrl-C.
    """
    if not is_loopback(host) and not allow_network:
        message = f"--host: {host} can be reached from other machines, and there is no TLS; say --allow-network if so"
        raise MempersistError(Code.VALIDATION, message)
    directory = datadir.create(datadir.location(data_dir, os.environ))
    address = Address(host, port, public_url.rstrip("/") if public_url else None, allow_origin)
    serve_directory(directory, address)


def serve_directory(directory: datadir.DataDirectory, address: Address) -> None:
    """Serve and print the guide on standard output."""
    token = datadir.api_token(directory, os.environ)
    command = f"{program()} token --show --data-dir {shlex.quote(str(directory.root))}"

    def ready(url: str) -> None:
        click.echo(connection_guide(url, directory.root, token_command=command))

    run_server(directory, token, address, ready)
