"""Object keys as paths, and back: any key has a path of its own, and an ordinary one reads as it is.

Each part of a key between slashes is a directory, the last one a file. To keep ``a`` and ``a/b`` apart, a file's name
always has a dot or ends in ``%`` and a directory's never does. Upper-case letters are escaped, since some file systems
do not tell them from lower-case ones; parts too long for a file name go on in a directory below.
"""

from __future__ import annotations

import re

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789-_")
_MAX_NAME = 200
_ESCAPE = re.compile(r"%([0-9A-F]{2})")
_CONTINUED = "%+"
_EMPTY = "%-"


def _escape(part: str, keep_dots: bool) -> str:
    return "".join(
        chr(byte) if byte in _PLAIN or (keep_dots and byte == 0x2E) else f"%{byte:02X}" for byte in part.encode()
    )


def _split(name: str) -> list[str]:
    """``name`` in pieces of at most ``_MAX_NAME`` characters that do not cut an escape in two."""
    pieces = []
    while len(name) > _MAX_NAME:
        cut = _MAX_NAME
        while "%" in name[cut - 2 : cut]:
            cut -= 1
        pieces.append(name[:cut])
        name = name[cut:]
    return [*pieces, name]


def path_of(key: str) -> str:
    """The relative path of ``key``'s file."""
    *folders, last = key.split("/")
    names: list[str] = []
    for folder in folders:
        names += directory_names(folder)
    name = _escape(last, keep_dots=True)
    if len(name) <= _MAX_NAME and "." in name and name.strip("."):
        return "/".join([*names, name])
    *pieces, end = _split(_escape(last, keep_dots=False))
    return "/".join([*names, *(piece + _CONTINUED for piece in pieces), end + "%"])


def directory_names(part: str) -> list[str]:
    """The nested directory names of a key's part."""
    *pieces, end = _split(_escape(part, keep_dots=False))
    return [*(piece + _CONTINUED for piece in pieces), end or _EMPTY]


def text_of(name: str) -> tuple[bytes, bool]:
    """The bytes of the key that a name stands for, and whether the same part goes on in the directory below."""
    continued = name.endswith(_CONTINUED)
    if continued:
        name = name.removesuffix(_CONTINUED)
    elif name == _EMPTY:
        name = ""
    elif name.endswith("%"):
        name = name[:-1]
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name).encode("latin-1"), continued
