"""The ``mempersist`` command. Each subcommand lives in a module of its own that is imported only when it is run.

Exit codes: 0 done; 1 refused or failed; 2 wrong usage; 3 an import ended, with items that could not be imported.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from typing import Any, Final

import click

from mempersist import __version__
from mempersist.errors import MempersistError
from mempersist.ports import CatalogError, IndexUnavailable, QueueUnavailable, StorageError

_SPEAKING: Final = (CatalogError, IndexUnavailable, QueueUnavailable, StorageError)


@dataclass(frozen=True, slots=True)
class Entry:
    """A subcommand: ``module:attribute`` that holds it, and its line in the help."""

    target: str
    help: str


COMMANDS: Final = {
    "backup": Entry("backup:backup", "Back the archive up into a directory, or read a backup back."),
    "bundle": Entry("bundle:bundle", "Build the Worker's bundle and say its size and digest."),
    "demo": Entry("demo:demo", "Import the bundled sample archive, answer a search and serve it."),
    "drill": Entry("drill:drill", "Restore the newest snapshot into a scratch archive and prove it."),
    "export": Entry("export:export", "Write the whole archive into one ZIP file."),
    "import": Entry("import_:import_", "Import a ChatGPT export, or restore a file that `export` wrote."),
    "outbox": Entry("outbox:outbox", "Show the mails that the local server would have sent."),
    "rebuild-catalog": Entry("rebuild:rebuild_catalog", "Rebuild catalog and indexes from the archive's objects."),
    "restore": Entry("restore:restore", "Restore a backup into an empty data directory, all of it or some."),
    "search": Entry("search:search", "Search the archive."),
    "serve": Entry("serve:serve", "Run the server with its background work."),
    "status": Entry("status:status", "Show the archive's totals, or how an import stands."),
    "verify": Entry("verify:verify", "Check every object, chain, row and vector."),
    "token": Entry("token:token", "Show where the bearer token is, or the token itself."),
}


class LazyGroup(click.Group):
    """A group that knows its commands' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, attribute = entry.target.partition(":")
        command: click.Command = getattr(importlib.import_module(f"mempersist_ops.cli.{module}"), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].help) for name in sorted(COMMANDS)])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="mempersist")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def cli(debug: bool) -> None:
    """Keeps your AI conversations and gives them back to any MCP client."""
    del debug


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; exits the process."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        result: Any = cli.main(given, prog_name="mempersist", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(_say("interrupted; run the same command again to go on", 130))
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except Exception as error:
        if "--debug" in given:
            raise
        sys.exit(_say(_explain(error), 1))
    sys.exit(result if isinstance(result, int) else 0)


def _say(message: str, code: int) -> int:
    click.echo(f"mempersist: {message}", err=True)
    return code


def _explain(error: Exception) -> str:
    """One line: the service's own words where it has some, else the kind of error and how to see more."""
    if isinstance(error, MempersistError):
        return error.message
    if isinstance(error, _SPEAKING):
        return str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename or 'file'}: {error.strerror}"
    return f"{type(error).__name__}: {error} (run `mempersist --debug …` for the traceback)"
