"""The text and the assets of each type of content, one small function a type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mempersist.archive.model import AssetRef
from mempersist.imports.chatgpt import assets
from mempersist.imports.chatgpt.values import Object, lines, object_of, objects_of, text_of
from mempersist.imports.media import AssetKind

_TEXT_KEYS = frozenset({"text", "content", "parts", "result", "summary", "title", "output", "output_str"})
_POINTER_KINDS: dict[str, AssetKind] = {
    "image_asset_pointer": "image",
    "audio_asset_pointer": "audio",
    "video_asset_pointer": "video",
    "video_container_asset_pointer": "video",
}


@dataclass(frozen=True, slots=True)
class Content:
    """``unknown`` names the types, of the content or of parts of it, that were read by guessing."""

    text: str = ""
    assets: tuple[AssetRef, ...] = ()
    unknown: tuple[str, ...] = ()


def read(content: Any) -> Content:
    """The content of a message, of whatever type."""
    if isinstance(content, str):
        return Content(content)
    if isinstance(content, list):
        return _parts({"parts": content})
    if not isinstance(content, dict):
        return Content()
    kind = text_of(content, "content_type")
    if kind in _READERS:
        return _READERS[kind](content)
    if not kind:
        return _parts(content)
    return Content(_strings_in(content), tuple(_pointers_in(content)), (kind,))


def _parts(content: Object) -> Content:
    """``text`` and ``multimodal_text``: strings and objects in order."""
    parts = content.get("parts")
    if not isinstance(parts, list):
        return Content(text_of(content, "text"))
    if len(parts) == 1 and isinstance(parts[0], str):
        return Content(parts[0])
    read_parts = [_part(part) for part in parts]
    return Content(
        "\n".join(part.text for part in read_parts if part.text),
        assets.merged(*(part.assets for part in read_parts)),
        tuple(dict.fromkeys(kind for part in read_parts for kind in part.unknown)),
    )


def _part(part: Any) -> Content:
    if isinstance(part, str):
        return Content(part)
    if not isinstance(part, dict):
        return Content()
    kind = text_of(part, "content_type")
    if kind in _POINTER_KINDS:
        prompt = text_of(object_of(object_of(part, "metadata"), "dalle"), "prompt")
        return Content(image_text(prompt), tuple(_pointers_in(part)))
    if kind == "real_time_user_audio_video_asset_pointer":
        return Content(assets=tuple(_pointers_in(part)))
    if kind in ("audio_transcription", "text") or (not kind and isinstance(part.get("text"), str)):
        return Content(text_of(part, "text"))
    return Content(_strings_in(part), tuple(_pointers_in(part)), (kind or "untyped_part",))


def image_text(prompt: str) -> str:
    """What stands for a picture that was made from ``prompt``."""
    return f"[image: {prompt}]" if prompt else ""


def _text(content: Object) -> Content:
    """``code``, ``execution_output`` and other types with a plain field ``text``."""
    return Content(text_of(content, "text")) if text_of(content, "text") else _parts(content)


def _computer_output(content: Object) -> Content:
    return Content(text_of(content, "text"), tuple(_pointers_in(content)))


def _quote(content: Object) -> Content:
    """``tether_quote`` and ``sonic_webpage``: a passage of a page or a file."""
    title = text_of(content, "title") or text_of(content, "domain")
    return Content(lines(title, text_of(content, "text") or text_of(content, "snippet")))


def _browsing(content: Object) -> Content:
    return Content(lines(text_of(content, "summary"), text_of(content, "result")))


def _system_error(content: Object) -> Content:
    return Content(lines(text_of(content, "name"), text_of(content, "text")))


def _user_context(content: Object) -> Content:
    return Content(lines(text_of(content, "user_profile"), text_of(content, "user_instructions")))


def _model_context(content: Object) -> Content:
    names = ("model_set_context", "repository", "repo_summary", "structured_context")
    return Content(lines(*(text_of(content, name) for name in names)))


def _thoughts(content: Object) -> Content:
    thoughts = objects_of(content, "thoughts")
    return Content(lines(*(lines(text_of(each, "summary"), text_of(each, "content")) for each in thoughts)))


def _recap(content: Object) -> Content:
    return Content(text_of(content, "content"))


def _code_output(content: Object) -> Content:
    return Content(text_of(content, "output_str"))


_READERS: dict[str, Callable[[Object], Content]] = {
    "text": _parts,
    "multimodal_text": _parts,
    "code": _text,
    "execution_output": _text,
    "computer_output": _computer_output,
    "tether_quote": _quote,
    "sonic_webpage": _quote,
    "tether_browsing_display": _browsing,
    "system_error": _system_error,
    "user_editable_context": _user_context,
    "model_editable_context": _model_context,
    "thoughts": _thoughts,
    "reasoning_recap": _recap,
    "citable_code_output": _code_output,
}
KNOWN_TYPES = frozenset(_READERS)
"""Types of content that are read field by field; others are read by guessing."""


def _strings_in(value: Object) -> str:
    """Strings under keys that hold text wherever they are, in the order of sorted keys."""
    found: list[str] = []
    pending: list[tuple[bool, Any]] = [(False, value)]
    while pending:
        wanted, item = pending.pop()
        if isinstance(item, str):
            if wanted:
                found.append(item)
        elif isinstance(item, dict):
            pending += [(key in _TEXT_KEYS, item[key]) for key in sorted(item, reverse=True)]
        elif isinstance(item, list):
            pending += [(wanted, each) for each in reversed(item)]
    return lines(*found)


def _pointers_in(value: Object) -> Iterator[AssetRef]:
    """Asset pointers wherever they are: sound and video frames are nested in the pointer of a live recording."""
    pending: list[tuple[AssetKind, Any]] = [("file", value)]
    while pending:
        inherited, item = pending.pop()
        if isinstance(item, list):
            pending += [(inherited, each) for each in reversed(item)]
        elif isinstance(item, dict):
            kind = _POINTER_KINDS.get(text_of(item, "content_type"), inherited)
            yield from assets.pointer(
                text_of(item, "asset_pointer"), kind, media_type=text_of(item, "mime_type") or None
            )
            pending += [(_kind_by_key(key, kind), item[key]) for key in sorted(item, reverse=True)]
        elif isinstance(item, str) and inherited == "image" and item.startswith(("file-service://", "sediment://")):
            yield from assets.pointer(item, "image")


def _kind_by_key(key: str, kind: AssetKind) -> AssetKind:
    if key == "frames_asset_pointers":
        return "image"
    return _POINTER_KINDS.get(key, kind)
