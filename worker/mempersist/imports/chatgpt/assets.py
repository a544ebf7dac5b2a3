"""Files that a message points to: in its parts, its attachments and its links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mempersist.archive.model import AssetRef
from mempersist.imports.chatgpt.values import Object, object_of, objects_of, text_of
from mempersist.imports.media import AssetKind, asset_id_of_pointer, kind_of

_MAX_POINTER_CHARS = 1000
_SANDBOX_LINK = re.compile(r"sandbox:/[^\s)\]\"'<>]{1,500}")


def pointer(
    text: str, kind: AssetKind, *, name: str | None = None, media_type: str | None = None
) -> tuple[AssetRef, ...]:
    """The reference that ``text`` is, or none where it is empty or no pointer for its length."""
    if not 0 < len(text) <= _MAX_POINTER_CHARS:
        return ()
    return (AssetRef(asset_id_of_pointer(text), text, kind, name, media_type),)


def attachments(metadata: Object) -> Iterator[AssetRef]:
    """What a person attached."""
    for attachment in objects_of(metadata, "attachments"):
        name = text_of(attachment, "name") or text_of(attachment, "file_name")
        media_type = text_of(attachment, "mime_type") or text_of(attachment, "mimeType")
        identifier = text_of(attachment, "id") or text_of(attachment, "file_id") or name
        yield from pointer(identifier, kind_of(media_type), name=name or None, media_type=media_type or None)


def outputs(metadata: Object) -> Iterator[AssetRef]:
    """Pictures that executed code has drawn."""
    for message in objects_of(object_of(metadata, "aggregate_result"), "messages"):
        yield from pointer(text_of(message, "image_url"), "image")


def links(text: str) -> Iterator[AssetRef]:
    """Files in the sandbox of a run that is over: they are named, their bytes never come with an export."""
    if "sandbox:/" in text:
        for link in _SANDBOX_LINK.findall(text):
            yield from pointer(link, "file", name=link.rpartition("/")[2] or None)


def merged(*groups: Iterator[AssetRef] | tuple[AssetRef, ...]) -> tuple[AssetRef, ...]:
    """One reference an asset, in order, each with what any of them knows of its name and type."""
    found: dict[str, AssetRef] = {}
    for group in groups:
        for reference in group:
            first = found.get(reference.asset_id, reference)
            found[reference.asset_id] = AssetRef(
                asset_id=first.asset_id,
                pointer=first.pointer,
                kind=first.kind,
                name=first.name or reference.name,
                media_type=first.media_type or reference.media_type,
            )
    return tuple(found.values())
