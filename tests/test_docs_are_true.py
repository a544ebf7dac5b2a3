"""What the documents say exists does, and what exists is documented."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from mempersist import limits
from mempersist.errors import HTTP_STATUS, Code
from mempersist.mcp.registry import TOOLS
from mempersist.web.routes import ROUTES
from mempersist_ops.cli.main import COMMANDS, cli
from mempersist_ops.host.datadir import DataDirectory

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
HTTP_API = (ROOT / "docs" / "http-api.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")


def command_lines(text: str) -> list[list[str]]:
    """Every `mempersist …` that stands in code, as words."""
    found = re.findall(r"(?:`|^|\()(mempersist [^`\n]+?)(?:`|$|\)\"?)", text, flags=re.MULTILINE)
    return [shlex.split(line.replace("…", "").split(" \\")[0], comments=True)[1:] for line in found]


def options_of(command: click.Command) -> set[str]:
    return {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help",
        "-h",
    }


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_command_in_a_document_exists_with_its_options(document: Path) -> None:
    for words in command_lines(document.read_text(encoding="utf-8")):
        group_options = [word for word in words if word in {"--help", "--debug"}]
        rest = [word for word in words if word not in group_options]
        if not rest:
            continue
        command = cli.get_command(click.Context(cli), rest[0])
        assert command is not None, words
        unknown = {word for word in rest[1:] if re.match(r"--[a-z]", word)} - options_of(command)
        assert not unknown, words


def test_the_readme_shows_every_command() -> None:
    shown = {words[0] for words in command_lines(README) if words}
    assert set(COMMANDS) - shown == {"demo"}
    assert "make demo" in README


def test_the_readme_names_everything_in_the_data_directory_that_matters() -> None:
    directory = DataDirectory(Path("/data"))
    for path in (directory.objects, directory.catalog, directory.vectors, directory.queue, directory.token):
        assert f"`{path.name}" in README


def test_make_targets_in_documents_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for document in DOCUMENTS:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE))
        assert named <= targets, document


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (document.parent / target).exists(), target


def test_the_http_document_lists_every_route_and_no_other() -> None:
    documented = set(re.findall(r"^\| `([A-Z]+ /\S*)`", HTTP_API, flags=re.MULTILINE))
    assert documented == {f"{route.method} {route.pattern}" for route in ROUTES if route.method != "*"}


def test_the_http_document_names_only_tools_that_exist() -> None:
    names = {tool.name for tool in TOOLS}
    assert set(re.findall(r"`(memory_[a-z_]+)`", HTTP_API)) <= names


def test_the_http_document_has_the_codes_with_their_statuses() -> None:
    for code, status in re.findall(r"`([A-Z_]+)` (\d{3})", HTTP_API):
        assert HTTP_STATUS[Code(code)] == int(status)


def test_the_http_document_has_the_limits_that_are_enforced() -> None:
    assert f"at most {limits.MAX_DIRECT_IMPORT_BYTES // limits.MIB} MiB as the body" in HTTP_API
    assert (
        f"1 to {limits.MAX_MULTIPART_PARTS}, of at most {limits.MAX_MULTIPART_PART_BYTES // limits.MIB} MiB" in HTTP_API
    )
    assert f"at least {limits.MIN_MULTIPART_PART_BYTES // limits.MIB} MiB" in HTTP_API
    assert f"a JSON body of at most {limits.MAX_INLINE_JSON_WRITE_BYTES // limits.MIB} MiB" in HTTP_API


def test_the_map_in_the_architecture_is_the_tree() -> None:
    drawn = re.search(r"## The map\n\n```\n(.*?)```", ARCHITECTURE, flags=re.DOTALL)
    assert drawn is not None
    base = Path()
    for line in drawn[1].splitlines():
        name = line.split()[0]
        if not line.startswith(" "):
            base = Path(name)
            path = base
        else:
            path = base / name
        assert (ROOT / path).exists(), path


def test_every_package_of_the_core_is_on_the_map() -> None:
    for package in (ROOT / "worker" / "mempersist").iterdir():
        if (package / "__init__.py").exists():
            assert re.search(rf"^  {package.name}/ ", ARCHITECTURE, flags=re.MULTILINE), package.name


def test_the_core_imports_the_standard_library_and_itself_only() -> None:
    names = "js|workers|pyodide|boto3|httpx|sqlite3|numpy|random|secrets|uuid"
    forbidden = re.compile(rf"^\s*(?:from|import) ({names})\b", re.MULTILINE)
    for module in (ROOT / "worker" / "mempersist").rglob("*.py"):
        text = module.read_text(encoding="utf-8")
        if module.name != "system.py":  # the clock and the randomness that hosts bring, in one place for all of them
            assert not forbidden.search(text), module
        assert "mempersist_ops" not in text, module
