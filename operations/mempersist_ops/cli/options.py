"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

data_dir_option = click.option(
    "--data-dir",
    type=click.Path(file_okay=False, path_type=Path),
    help="The data directory. Default: MEMPERSIST_DATA_DIR, else mempersist in your XDG data home.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON on standard output.")


def url_option(command: Command) -> Command:
    """``--url`` for another server's archive, and the token it asks for."""
    command = click.option(
        "--token", envvar="MEMPERSIST_TOKEN", help="Bearer token for --url. Default: MEMPERSIST_TOKEN.", hidden=False
    )(command)
    return click.option(
        "--url", envvar="MEMPERSIST_URL", help="Talk to the server there, not to the data directory on this machine."
    )(command)
