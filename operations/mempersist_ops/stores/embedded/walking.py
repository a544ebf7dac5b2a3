"""Walking the object store's directories in the order of the keys that their paths stand for."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from mempersist_ops.stores.embedded.paths import directory_names, text_of

MISSING: Final = frozenset({errno.ENOENT, errno.ENOTDIR})
"""What the system says of a path that is not there, or no longer."""


def walk(root: Path, prefix: bytes, after: bytes | None, *, fold: bool) -> Iterator[tuple[bytes, Path]]:
    """Keys that start with ``prefix`` and sort after ``after``, in byte order, each with its file.

    Only directories that can hold such keys are read. With ``fold`` a directory below the prefix gives one of its keys.

    :raises OSError: for a directory that cannot be read.
    """
    start, text = root, b""
    for part in prefix.split(b"/")[:-1]:
        start, text = start.joinpath(*directory_names(part.decode())), text + part + b"/"
    yield from _below(start, text, prefix, after, fold=fold)


def _below(
    directory: Path, text: bytes, prefix: bytes, after: bytes | None, *, fold: bool
) -> Iterator[tuple[bytes, Path]]:
    """``text`` is what the keys in ``directory`` begin with."""
    for key, is_directory, name in _entries(directory, text, prefix, after):
        below = directory / name
        if not is_directory:
            yield key, below
        elif fold and key.endswith(b"/") and key.startswith(prefix):
            if after is None or key > after:
                yield from islice(_below(below, key, key, None, fold=False), 1)
        else:
            yield from _below(below, key, prefix, after, fold=fold)


def _entries(directory: Path, text: bytes, prefix: bytes, after: bytes | None) -> list[tuple[bytes, bool, str]]:
    """What of a directory matters, in order: the key, or what the keys of a directory begin with, and the name."""
    found: list[tuple[bytes, bool, str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                part, continued = text_of(entry.name)
                is_directory = entry.is_dir(follow_symlinks=False)
                key = text + part + (b"/" if is_directory and not continued else b"")
                if not (key.startswith(prefix) or (is_directory and prefix.startswith(key))):
                    continue
                if after is not None and key <= after and not (is_directory and after.startswith(key)):
                    continue
                found.append((key, is_directory, entry.name))
    except OSError as error:
        if error.errno not in MISSING:
            raise
    return sorted(found)
