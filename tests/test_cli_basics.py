"""The command line: quick to answer, one clear line when it fails, exit codes that mean something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from mempersist_ops.cli.local import program
from mempersist_ops.cli.main import COMMANDS, cli
from tests.rigs.command import environment, mempersist


def test_help_lists_every_command_without_importing_what_it_needs() -> None:
    program = (
        "import sys\n"
        "from mempersist_ops.cli.main import cli\n"
        "cli.main(['--help'], standalone_mode=False)\n"
        "heavy = {'numpy', 'uvicorn', 'httpx', 'sqlite3', 'zipfile'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name, entry in COMMANDS.items():
        assert name in done.stdout
        assert entry.help.split(".")[0][:40] in " ".join(done.stdout.split())


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_a_commands_own_help_begins_with_its_line_in_the_list(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").split("\n")[0] == COMMANDS[name].help


def test_wrong_usage_exits_with_2() -> None:
    assert mempersist("serach", "x").returncode == 2
    assert mempersist("search").returncode == 2
    assert mempersist("search", "x", "--limit", "0").returncode == 2


def test_a_failure_is_one_line_that_names_the_way_out(tmp_path: Path) -> None:
    done = mempersist("search", "anything", "--data-dir", tmp_path / "nowhere")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("mempersist: no archive at")
    assert "--data-dir" in line
    assert not (tmp_path / "nowhere").exists()


def test_debug_shows_where_it_failed(tmp_path: Path) -> None:
    done = mempersist("--debug", "search", "anything", "--data-dir", tmp_path / "nowhere")
    assert done.returncode == 1
    assert "Traceback" in done.stderr


def test_the_token_is_shown_on_demand_only(tmp_path: Path) -> None:
    where = mempersist("token", "--data-dir", tmp_path).stdout.strip()
    assert where == str(tmp_path / "token")
    shown = mempersist("token", "--show", "--data-dir", tmp_path).stdout.strip()
    assert shown == (tmp_path / "token").read_text().strip()
    named = mempersist("token", "--data-dir", tmp_path, env=environment(MEMORY_API_TOKEN="x")).stdout
    assert named.strip() == "the environment variable MEMORY_API_TOKEN"


def test_the_data_directory_may_be_named_by_the_environment(tmp_path: Path) -> None:
    done = mempersist("token", env=environment(MEMPERSIST_DATA_DIR=str(tmp_path / "here")))
    assert done.stdout.strip() == str(tmp_path / "here" / "token")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.10", "example.org"])
def test_an_address_that_others_reach_needs_a_word(host: str, tmp_path: Path) -> None:
    done = mempersist("serve", "--host", host, "--data-dir", tmp_path / "new")
    assert done.returncode == 1
    assert "--allow-network" in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_server_elsewhere_needs_a_url_and_a_token(tmp_path: Path) -> None:
    without = mempersist("search", "x", "--url", "http://127.0.0.1:1")
    assert (without.returncode, "MEMPERSIST_TOKEN" in without.stderr) == (1, True)
    odd = mempersist("search", "x", "--url", "example.org", "--token", "t")
    assert (odd.returncode, "http://" in odd.stderr) == (1, True)


def test_what_it_tells_people_to_run_can_be_run_as_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = tmp_path / "bin with space" / "mempersist"
    command.parent.mkdir()
    command.touch(mode=0o755)
    monkeypatch.setattr("sys.argv", [str(command), "serve"])
    monkeypatch.setenv("PATH", "/usr/bin")
    assert program() == f"'{command}'"
    monkeypatch.setenv("PATH", str(command.parent))
    assert program() == "mempersist"
