"""`mempersist status`: the archive's totals, or how one import stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import click

from mempersist.archive.model import OWNER
from mempersist.imports.status import import_status, list_imports
from mempersist_ops.cli import remote
from mempersist_ops.cli.counts import count_lines
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option, url_option
from mempersist_ops.cli.progress import amount, describe
from mempersist_ops.cli.tools import call_here
from mempersist_ops.host.runtime import Host


@click.command()
@click.argument("import_id", required=False)
@data_dir_option
@url_option
@json_option
def status(import_id: str | None, data_dir: Path | None, url: str | None, token: str | None, as_json: bool) -> int:
    """Show the archive's totals, or how an import stands.

    Exits with 1 if the import failed.
    """
    if import_id is not None:
        found = _one(import_id, data_dir, url, token)
        print_json(found) if as_json else click.echo(_describe_import(found))
        return 1 if found["status"] == "failed" else 0
    totals = _totals(data_dir, url, token)
    print_json(totals) if as_json else click.echo(_describe_totals(totals))
    return 0


def _one(import_id: str, data_dir: Path | None, url: str | None, token: str | None) -> Any:
    if url:
        with remote.connected(url, token) as server:
            return remote.call(server, "GET", f"/api/imports/{quote(import_id, safe='')}")

    async def look(host: Host) -> Any:
        return (await import_status(host.ports, OWNER, import_id)).as_json()

    return on_directory(data_dir, look)


def _totals(data_dir: Path | None, url: str | None, token: str | None) -> Any:
    if url:
        with remote.connected(url, token) as server:
            return {
                "stats": remote.call(server, "GET", "/api/stats"),
                "imports": remote.call(server, "GET", "/api/imports")["imports"],
            }

    async def look(host: Host) -> Any:
        imports = await list_imports(host.ports, OWNER)
        return {"stats": await call_here(host, "memory_stats", {}), "imports": [item.as_json() for item in imports]}

    return on_directory(data_dir, look)


def _describe_totals(value: Any) -> str:
    stats = value["stats"]
    lines = [
        f"{stats['totals']['conversations']:,} conversations, {stats['totals']['messages']:,} messages",
        f"index: {stats['indexing']['indexed']:,} done, {stats['indexing']['pending']:,} waiting",
    ]
    for namespace in stats["namespaces"]:
        mark = " (default)" if namespace["default"] else ""
        lines.append(f"  {namespace['namespace']}{mark}: {namespace['conversations']:,} conversations")
    if value["imports"]:
        lines.append("imports:")
        lines += [f"  {_import_line(item)}" for item in value["imports"]]
    return "\n".join(lines)


def _import_line(item: Any) -> str:
    return f"{item['id']}  {item['created_at']}  {item['status']}  {item['filename']}"


def _describe_import(item: Any) -> str:
    lines = [_import_line(item)]
    if item["phase"] is not None and item["bytes_total"]:
        lines.append(f"  {item['phase']}: {describe(item['bytes_done'], item['bytes_total'], 'bytes', 0, 0)}")
    elif item["size_bytes"] is not None:
        lines.append(f"  {amount(item['size_bytes'], 'bytes')}")
    lines += count_lines(item["counts"])
    if item["error_code"]:
        lines.append(f"  {item['error_code']}: {item['error_message']}")
    lines += [
        f"  {each['severity']} {each['code']} at {each['position']}: {each['message']}" for each in item["findings"]
    ]
    return "\n".join(lines)
