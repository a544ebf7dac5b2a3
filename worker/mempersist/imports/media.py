"""Files that came with an export: what they are, and which message's pointer means them."""

from __future__ import annotations

import re
from typing import Final, Literal

from mempersist.text import utf8_safe

AssetKind = Literal["image", "audio", "video", "file"]

OCTETS: Final = "application/octet-stream"

_FILE_ID = re.compile(r"file[-_][A-Za-z0-9]+")
_SCHEMES = ("file-service://", "sediment://")
_SIGNATURES: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"ID3", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
    (b"\x1aE\xdf\xa3", "video/webm"),
    (b"%PDF-", "application/pdf"),
    (b"PK\3\4", "application/zip"),
    (b"PK\5\6", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
)
_RIFF = {b"WAVE": "audio/wav", b"WEBP": "image/webp", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"qt  ": "video/quicktime",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heif",
    b"avif": "image/avif",
}
_ACTIVE = re.compile(
    rb"<(?:!doctype|html|head|body|script|svg|iframe|meta|\?xml|\?php|!--|[a-z]+:svg)|#!", re.IGNORECASE
)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def sniff(head: bytes) -> str:
    """Media type by the first bytes, of which 512 or more should be given; names are not asked.

    What a browser would run (HTML, SVG, XML, scripts) is said to be ``application/octet-stream``, as is everything
    unknown, so that an asset can be served under its type.
    """
    for signature, media_type in _SIGNATURES:
        if head.startswith(signature):
            return media_type
    if head.startswith(b"RIFF") and head[8:12] in _RIFF:
        return _RIFF[head[8:12]]
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    if _is_mpeg_audio(head):
        return "audio/mpeg"
    return "text/plain" if _is_harmless_text(head) else OCTETS


def kind_of(media_type: str) -> AssetKind:
    """The kind of asset that a media type is."""
    family = media_type.partition("/")[0].lower()
    return "image" if family == "image" else "audio" if family == "audio" else "video" if family == "video" else "file"


def asset_id_of_pointer(pointer: str) -> str:
    """The id behind ``file-service://file-abc``, ``sediment://file_0a#frame`` or a bare id.

    A pointer of another scheme, such as ``sandbox:/mnt/data/plot.png`` which never has bytes, is its own id.
    """
    rest = pointer
    for scheme in _SCHEMES:
        rest = rest.removeprefix(scheme)
    found = _FILE_ID.match(rest)
    return found[0] if found else utf8_safe(rest)


def asset_id_of_member(name: str) -> str | None:
    """The id in a member's name: ``file-abc`` of ``file-abc-photo of me.png``; for ``0f1e.dat`` the stem.

    None for a name without one.
    """
    base = name.rpartition("/")[2]
    if found := _FILE_ID.match(base):
        return found[0]
    stem, dot, extension = base.rpartition(".")
    return stem if dot and stem and extension.lower() == "dat" else None


def _is_mpeg_audio(head: bytes) -> bool:
    """A frame header of MPEG audio: eleven set bits, then no reserved version, layer or rate."""
    if len(head) < 4 or head[0] != 0xFF or head[1] & 0xE0 != 0xE0:
        return False
    version, layer, rate = head[1] >> 3 & 3, head[1] >> 1 & 3, head[2] >> 4
    return version != 1 and layer != 0 and rate not in (0, 15)


def _is_harmless_text(head: bytes) -> bool:
    if not head or _BINARY.search(head) or _ACTIVE.search(head):
        return False
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True
