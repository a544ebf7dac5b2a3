"""`mempersist export`: the archive as one file."""

from __future__ import annotations

from pathlib import Path

import click

from mempersist.archive.model import OWNER
from mempersist.errors import Code, MempersistError
from mempersist_ops.archive_file import layout
from mempersist_ops.archive_file.export import export as write_archive
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option
from mempersist_ops.cli.progress import Progress, amount
from mempersist_ops.host.runtime import Host


@click.command()
@click.argument("path", type=click.Path(dir_okay=False, path_type=Path))
@data_dir_option
@click.option("--without-sources", is_flag=True, help="Leave out the uploads of finished imports.")
@click.option("--overwrite", is_flag=True, help="Replace PATH if it exists.")
@json_option
def export(path: Path, data_dir: Path | None, without_sources: bool, overwrite: bool, as_json: bool) -> None:
    """Write the whole archive into one ZIP file.

    It holds every object under its own name with its hash, and a digest of the catalog that they fold to. The server
    may go on writing meanwhile. `mempersist import PATH` reads the file back.
    """
    if path.exists() and not overwrite:
        raise MempersistError(Code.VALIDATION, f"{path} exists; choose another name, or say --overwrite")
    progress = Progress("exporting", "objects")

    async def write(host: Host) -> layout.Summary:
        return await write_archive(host.ports.objects, OWNER, path, sources=not without_sources, progress=progress.at)

    summary = on_directory(data_dir, write)
    progress.close()
    if as_json:
        print_json(
            {
                "path": str(path),
                "objects": summary.objects,
                "sizeBytes": summary.size_bytes,
                "sources": summary.sources,
                "catalogDigest": summary.catalog_digest,
            }
        )
    else:
        click.echo(f"{path}: {summary.objects:,} objects, {amount(summary.size_bytes, 'bytes')}")
        click.echo(f"catalog digest {summary.catalog_digest}")
