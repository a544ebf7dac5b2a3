"""Running a coroutine on the data directory of this machine, and printing what it found."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import shutil
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from mempersist_ops.host import datadir
from mempersist_ops.host.runtime import Host, opened

T = TypeVar("T")


def on_directory(data_dir: Path | None, work: Callable[[Host], Awaitable[T]], *, create: bool = False) -> T:
    """Open the data directory, do ``work`` with it, close it.

    :param create: make the directory if there is none; a command that only reads would make an empty archive.
    :raises MempersistError: if the directory cannot be used.
    """
    place = datadir.location(data_dir, os.environ)
    directory = datadir.create(place) if create else datadir.existing(place)

    async def run() -> T:
        async with opened(directory) as host:
            return await work(host)

    return asyncio.run(run())


def print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=False, indent=None, separators=(",", ":")))


def program() -> str:
    """How the person calls this command: by its name where that finds it, else by its path."""
    called = Path(sys.argv[0])
    if called.name != "mempersist":
        return "mempersist"
    found = shutil.which("mempersist")
    return "mempersist" if found and Path(found).samefile(called) else shlex.quote(str(called))
