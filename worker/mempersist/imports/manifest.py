"""The small JSON files beside the conversations: the export's manifest, and what its assets are called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mempersist import limits, nesting
from mempersist.imports.media import asset_id_of_pointer
from mempersist.imports.problems import ItemError
from mempersist.imports.roles import CONVERSATIONS
from mempersist.imports.source import ByteSource
from mempersist.imports.zipreader import Directory, Member, inflate
from mempersist.text import printable

_MAX_JSON_BYTES = 32 * limits.MIB


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the export says it holds. Names are relative to the manifest's folder.

    :param shards: the files that make up ``conversations.json``, in order.
    :param files: every file.
    """

    shards: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AssetName:
    """What the export says of an asset; the media type is a claim."""

    filename: str | None = None
    media_type: str | None = None


async def read_json(source: ByteSource, directory: Directory, member: Member) -> Any:
    """A small member as JSON. :raises ItemError: BAD_JSON and what ``inflate`` raises."""
    pieces = [piece async for piece in inflate(source, directory, member, max_bytes=_MAX_JSON_BYTES)]
    try:
        return nesting.loads(b"".join(pieces).decode("utf-8-sig"))
    except ValueError as error:
        raise ItemError("BAD_JSON", "the file is not valid JSON") from error


def parse_manifest(value: Any) -> Manifest:
    """An ``export_manifest.json``; what it has in another form than known is passed over."""
    if not isinstance(value, dict):
        return Manifest()
    shards: list[str] = []
    logical = value.get("logical_files")
    for name, entry in logical.items() if isinstance(logical, dict) else ():
        if CONVERSATIONS.fullmatch(name) and isinstance(entry, dict):
            shards += _strings(entry.get("files"))
    files = [record.get("path") for record in _records(value.get("export_files"))]
    return Manifest(tuple(dict.fromkeys(shards)), tuple(_strings(files)))


def names_from_map(value: Any) -> Iterator[tuple[str, AssetName]]:
    """Pairs of ``conversation_asset_file_names.json``, by the name that a member has."""
    if isinstance(value, dict):
        for member, name in value.items():
            if isinstance(name, str) and name:
                yield member.rpartition("/")[2], AssetName(_label(name))


def names_from_library(value: Any) -> Iterator[tuple[str, AssetName]]:
    """Records of ``library_files.json``, by each id that they have."""
    for record in _records(value):
        name = _first_string(record, "file_name", "filename", "name", "title")
        media_type = _first_string(record, "mime_type", "mime", "media_type")
        for key in ("file_id", "library_file_id", "id"):
            if isinstance(record.get(key), str) and (name or media_type):
                yield asset_id_of_pointer(record[key]), AssetName(_label(name) if name else None, media_type)


def _label(name: str) -> str:
    """The last part of a name, fit to be shown."""
    return printable(name.replace("\\", "/").rpartition("/")[2])[: limits.MAX_FILENAME_CHARS]


def _records(value: Any) -> list[Mapping[str, Any]]:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in items if isinstance(item, dict)]


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _first_string(record: Mapping[str, Any], *keys: str) -> str | None:
    return next((record[key] for key in keys if isinstance(record.get(key), str) and record[key]), None)
