"""`mempersist bundle`: the exact set of modules that is uploaded as the Worker."""

from __future__ import annotations

from pathlib import Path

import click

from mempersist.errors import MempersistError, validation
from mempersist_ops.bundle import Bundle, BundleError, build, find_sources, write
from mempersist_ops.cli.local import print_json
from mempersist_ops.cli.options import json_option

_LARGEST = 5


@click.command()
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Lay the modules out in this directory.")
@click.option(
    "--cache",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(".cache/worker/wheels"),
    show_default=True,
    help="Where fetched wheels are kept.",
)
@json_option
def bundle(out: Path | None, cache: Path, as_json: bool) -> None:
    """Build the Worker's bundle and say its size and digest.

    Vendored packages come in locked versions. The same sources give the same digest on every machine.
    """
    try:
        made = build(find_sources(), cache)
        if out is not None:
            write(made, out)
    except BundleError as error:
        raise _told(error) from None
    print_json(made.manifest()) if as_json else click.echo(_described(made, out))


def _told(error: BundleError) -> MempersistError:
    return validation("bundle", str(error))


def _described(made: Bundle, out: Path | None) -> str:
    largest = sorted(made.modules, key=lambda module: (-len(module.data), module.name))[:_LARGEST]
    lines = [f"{len(made.modules)} files, {made.size:,} bytes, digest {made.digest}", "Largest:"]
    lines += [f"  {len(module.data):>9,}  {module.name}" for module in largest]
    if out is not None:
        lines.append(f"Written to {out}")
    return "\n".join(lines)
