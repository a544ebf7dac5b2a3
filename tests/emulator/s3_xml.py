"""The XML of S3."""

from __future__ import annotations

from collections.abc import Iterable
from email.utils import formatdate
from typing import Final
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from mempersist import timestamps
from mempersist.ports import ObjectInfo, ObjectPage
from tests.emulator.wire import Response

_HEAD: Final = '<?xml version="1.0" encoding="UTF-8"?>'
_SPACE: Final = "http://s3.amazonaws.com/doc/2006-03-01/"


class NotXmlError(Exception):
    """The body is no XML."""


def document(root: str, *parts: str, status: int = 200) -> Response:
    body = f'{_HEAD}<{root} xmlns="{_SPACE}">{"".join(parts)}</{root}>'
    return Response(status, body.encode(), {"content-type": "application/xml"})


def error(status: int, code: str, message: str) -> Response:
    body = f"{_HEAD}<Error>{element('Code', code)}{element('Message', message)}</Error>"
    return Response(status, body.encode(), {"content-type": "application/xml"})


def element(name: str, text: str | int) -> str:
    return f"<{name}>{escape(str(text))}</{name}>"


def quoted(etag: str) -> str:
    return f'"{etag}"'


def http_date(info: ObjectInfo) -> str:
    return formatdate(timestamps.to_ms(info.modified_at) / 1000, usegmt=True)


def listing(bucket: str, page: ObjectPage, asked: dict[str, str], limit: int, next_token: str | None) -> Response:
    """The answer to ListObjectsV2."""
    by_url = asked.get("encoding-type") == "url"

    def named(name: str, text: str) -> str:
        return element(name, quote(text, safe="/") if by_url else text)

    contents = (
        f"<Contents>{named('Key', info.key)}{element('Size', info.size)}{element('LastModified', info.modified_at)}"
        f"{element('ETag', quoted(info.etag))}{element('StorageClass', 'STANDARD')}</Contents>"
        for info in page.objects
    )
    folded = (f"<CommonPrefixes>{named('Prefix', prefix)}</CommonPrefixes>" for prefix in page.prefixes)
    return document(
        "ListBucketResult",
        element("Name", bucket),
        named("Prefix", asked.get("prefix", "")),
        named("Delimiter", asked["delimiter"]) if "delimiter" in asked else "",
        element("EncodingType", "url") if by_url else "",
        element("MaxKeys", limit),
        element("KeyCount", len(page.objects) + len(page.prefixes)),
        element("IsTruncated", "false" if next_token is None else "true"),
        "" if next_token is None else element("NextContinuationToken", next_token),
        *contents,
        *folded,
    )


def texts(body: bytes, path: str, *names: str) -> Iterable[tuple[str, ...]]:
    """The texts of ``names`` in each element at ``path``. :raises NotXmlError:"""
    try:
        root = ElementTree.fromstring(body)
    except ElementTree.ParseError:
        raise NotXmlError from None
    for found in root.iterfind(f"{{*}}{path}"):
        yield tuple(found.findtext(f"{{*}}{name}") or "" for name in names)
