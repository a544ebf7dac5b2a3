"""Migration files: ``NNNN_name.sql``, numbered from 1, never changed once applied anywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mempersist_ops.sql_text import split_statements

_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")


class MigrationError(Exception):
    """Migrations cannot be read or applied. The message names the file and the way out."""


@dataclass(frozen=True, slots=True)
class MigrationFile:
    """One migration.

    :param name: the file's name, ``0001_catalog.sql``.
    :param checksum: SHA-256 hex of the text with its line ends as newlines.
    :param statements: its SQL statements in order.
    """

    version: int
    name: str
    checksum: str
    statements: tuple[str, ...]


def find_directory() -> Path:
    """Where the service's own migrations lie: inside the installed package, or in the checkout it runs from.

    :raises MigrationError: when neither is there.
    """
    packaged = Path(str(resources.files("mempersist_ops"))) / "data" / "migrations"
    checkout = Path(__file__).resolve().parents[3] / "migrations"
    for directory in (packaged, checkout):
        if directory.is_dir():
            return directory
    raise MigrationError("the migrations are missing from this installation; install mempersist again")


def read_directory(directory: Path) -> tuple[MigrationFile, ...]:
    """The migrations of a directory by version. Files that do not end in ``.sql`` are left alone.

    :raises MigrationError: for a missing directory, a misnamed file, a number given twice, and a file that is empty,
        not UTF-8 or not a list of SQL statements.
    """
    if not directory.is_dir():
        raise MigrationError(f"{directory} is not a directory; name the one that holds the migrations")
    files: dict[int, MigrationFile] = {}
    for path in sorted(directory.glob("*.sql")):
        file = _read(path)
        if file.version in files:
            raise MigrationError(f"{path.name} and {files[file.version].name} have one number; give the newer the next")
        files[file.version] = file
    return tuple(files[version] for version in sorted(files))


def directory_digest(files: Sequence[MigrationFile]) -> str:
    """SHA-256 hex over all names and checksums: two directories with one digest hold the same migrations."""
    lines = "".join(f"{file.name} {file.checksum}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _read(path: Path) -> MigrationFile:
    match = _NAME.fullmatch(path.name)
    if match is None or int(match[1]) == 0:
        raise MigrationError(f"{path.name} is not named like 0001_lower_case.sql, numbered from 0001; rename it")
    try:
        text = path.read_bytes().decode("utf-8").replace("\r\n", "\n")
        statements = split_statements(text)
    except UnicodeDecodeError:
        raise MigrationError(f"{path.name} is not UTF-8; save it as UTF-8") from None
    except ValueError as error:
        raise MigrationError(f"{path.name}: {error}") from None
    if not statements:
        raise MigrationError(f"{path.name} holds no statement; write one, or remove the file")
    return MigrationFile(int(match[1]), path.name, hashlib.sha256(text.encode()).hexdigest(), statements)
