"""`mempersist search`: what the memory_search tool answers, in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mempersist.limits import DEFAULT_SEARCH_RESULTS, MAX_SEARCH_RESULTS
from mempersist_ops.cli import remote
from mempersist_ops.cli.local import on_directory, print_json
from mempersist_ops.cli.options import data_dir_option, json_option, url_option
from mempersist_ops.cli.tools import call_here


@click.command()
@click.argument("query")
@data_dir_option
@click.option("--limit", default=DEFAULT_SEARCH_RESULTS, show_default=True, type=click.IntRange(1, MAX_SEARCH_RESULTS))
@click.option("--namespace", help="Search there only. Default: everywhere.")
@click.option("--tag", multiple=True, help="Only conversations with this tag; repeat it for several.")
@click.option("--any-tag", is_flag=True, help="One of the tags is enough.")
@url_option
@json_option
def search(
    query: str,
    data_dir: Path | None,
    limit: int,
    namespace: str | None,
    tag: tuple[str, ...],
    any_tag: bool,
    url: str | None,
    token: str | None,
    as_json: bool,
) -> None:
    """Search the archive.

    With --json, prints exactly what the MCP tool memory_search answers.
    """
    arguments: dict[str, Any] = {"query": query, "limit": limit}
    if namespace is not None:
        arguments["namespace"] = namespace
    if tag:
        arguments |= {"tags": list(tag), "tag_mode": "any" if any_tag else "all"}
    if url:
        params = {"q" if name == "query" else name: value for name, value in arguments.items()}
        with remote.connected(url, token) as server:
            found = remote.call(server, "GET", "/api/search", params=params)
    else:
        found = on_directory(data_dir, lambda host: call_here(host, "memory_search", arguments))
    if as_json:
        print_json(found)
    else:
        click.echo(describe_results(found))


def describe_results(found: Any) -> str:
    """Results for people: title, date and namespace, then the snippet."""
    blocks = []
    if found["degraded"]:
        blocks.append(f"(without {', '.join(found['unavailable'])}, which cannot answer now)")
    for place, hit in enumerate(found["results"], start=1):
        tags = "".join(f" #{tag}" for tag in hit["tags"])
        when = (hit["timestamp"] or "no date")[:10]
        lines = [f"{place}. {hit['title']}  [{when}, {hit['namespace']}{tags}]"]
        lines += [f"   {line}" for line in hit["snippet"].splitlines() if line.strip()]
        lines.append(f"   conversation {hit['conversationId']}")
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks) if found["results"] else "\n".join([*blocks, "nothing found"])
