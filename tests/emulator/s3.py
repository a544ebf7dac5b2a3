"""R2's S3 API in path style: what an archive uses of it. The rest answers NotImplemented, as much of S3 does on R2."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final
from urllib.parse import unquote

from mempersist.limits import MIN_MULTIPART_PART_BYTES
from mempersist.ports import ObjectInfo, ObjectNotFound, PreconditionFailed, StorageError, UploadedPart
from tests.emulator import s3_xml, sigv4
from tests.emulator.auth import Token, Tokens
from tests.emulator.buckets import Bucket, Buckets
from tests.emulator.s3_xml import element, quoted
from tests.emulator.wire import Request, Response

_MAX_KEYS: Final = 1000
_MAX_KEY_BYTES: Final = 1024
_MAX_PARTS: Final = 10_000
_RANGE: Final = re.compile(r"bytes=(\d+)-(\d*)")
_LISTING: Final = frozenset(
    {
        "list-type",
        "prefix",
        "delimiter",
        "max-keys",
        "continuation-token",
        "start-after",
        "encoding-type",
        "fetch-owner",
    }
)


class _Refused(Exception):
    def __init__(self, status: int, code: str, message: str = "") -> None:
        super().__init__(code)
        self.response = s3_xml.error(status, code, message or code)


class S3:
    """Answers requests that are signed with a token's id and the hash of its value.

    :param now: the time that signatures are held to.
    """

    def __init__(self, buckets: Buckets, tokens: Tokens, now: Callable[[], datetime]) -> None:
        self._buckets, self._tokens, self._now = buckets, tokens, now

    async def answer(self, request: Request) -> Response:
        try:
            token = self._signer(request)
            name, _, key = unquote(request.path.removeprefix("/")).partition("/")
            bucket = self._buckets.find(token.account, name)
            if bucket is None:
                raise _Refused(404, "NoSuchBucket", "The specified bucket does not exist.")
            self._permit(token, request)
            if len(key.encode()) > _MAX_KEY_BYTES:
                raise _Refused(400, "KeyTooLongError")
            response = await (_object(bucket, key, request) if key else _bucket(bucket, name, request))
        except _Refused as refused:
            response = refused.response
        except ObjectNotFound:
            response = s3_xml.error(404, "NoSuchKey", "The specified key does not exist.")
        except StorageError:
            response = s3_xml.error(500, "InternalError", "We encountered an internal error. Please try again.")
        except s3_xml.NotXmlError:
            response = s3_xml.error(400, "MalformedXML", "The XML you provided was not well formed.")
        return Response(response.status, b"", response.headers) if request.method == "HEAD" else response

    def _signer(self, request: Request) -> Token:
        if not request.headers.get("authorization"):
            raise _Refused(403, "AccessDenied", "Access Denied")
        try:
            token = self._tokens.with_id(sigv4.access_key(request))
            if token is None:
                raise _Refused(401, "Unauthorized", "Unauthorized")
            sigv4.check(request, token.s3_secret, self._now())
        except sigv4.SignatureError as error:
            raise _Refused(error.status, error.code, error.message) from None
        return token

    def _permit(self, token: Token, request: Request) -> None:
        reads = request.method in ("GET", "HEAD")
        if not token.allows("Workers R2 Storage", "Read" if reads else "Write"):
            raise _Refused(403, "AccessDenied", "Access Denied")


async def _bucket(bucket: Bucket, name: str, request: Request) -> Response:
    asked = request.arguments
    if request.method == "HEAD" and not asked:
        return Response(200)
    if request.method == "GET" and asked.get("list-type") == "2" and asked.keys() <= _LISTING | {"x-id"}:
        return await _list(bucket, name, asked)
    if request.method == "POST" and "delete" in asked:
        return await _delete_many(bucket, request)
    raise _Refused(501, "NotImplemented", "This part of S3 is not implemented.")


async def _list(bucket: Bucket, name: str, asked: dict[str, str]) -> Response:
    limit = min(int(asked.get("max-keys", _MAX_KEYS)), _MAX_KEYS)
    token = asked.get("continuation-token")
    try:
        after = asked.get("start-after") if token is None else base64.urlsafe_b64decode(token).decode()
    except ValueError:
        raise _Refused(400, "InvalidArgument", "The continuation token provided is incorrect") from None
    page = await bucket.objects.list(
        asked.get("prefix", ""), limit=limit, cursor=after, delimiter=asked.get("delimiter") or None
    )
    next_token = None if page.cursor is None else base64.urlsafe_b64encode(page.cursor.encode()).decode()
    return s3_xml.listing(name, page, asked, limit, next_token)


async def _delete_many(bucket: Bucket, request: Request) -> Response:
    keys = [key for (key,) in s3_xml.texts(request.body, "Object", "Key")]
    if not 1 <= len(keys) <= _MAX_KEYS:
        raise _Refused(400, "MalformedXML", "Give 1 to 1000 keys.")
    await bucket.objects.delete(keys)
    quiet = b"<Quiet>true</Quiet>" in request.body
    return s3_xml.document("DeleteResult", *(f"<Deleted>{element('Key', key)}</Deleted>" for key in keys if not quiet))


async def _object(bucket: Bucket, key: str, request: Request) -> Response:
    asked = request.arguments
    method, upload_id = request.method, asked.get("uploadId")
    if "x-amz-copy-source" in request.headers:
        raise _Refused(501, "NotImplemented", "CopyObject is not implemented.")
    if upload_id is not None:
        return await _upload(bucket, key, upload_id, request)
    if method == "POST" and "uploads" in asked:
        made = await bucket.objects.create_multipart(key)
        bucket.uploads[made] = (key, {})
        return s3_xml.document("InitiateMultipartUploadResult", element("Key", key), element("UploadId", made))
    if asked.keys() - {"x-id"}:
        raise _Refused(501, "NotImplemented", "This part of S3 is not implemented.")
    if method == "PUT":
        return await _put(bucket, key, request)
    if method == "DELETE":
        await bucket.objects.delete([key])
        return Response(204)
    if method in ("GET", "HEAD"):
        return await _get(bucket, key, request)
    raise _Refused(405, "MethodNotAllowed")


async def _put(bucket: Bucket, key: str, request: Request) -> Response:
    condition = request.headers.get("if-none-match")
    if condition not in (None, "*"):
        raise _Refused(501, "NotImplemented", "If-None-Match takes * here.")
    try:
        info = await bucket.objects.put(key, request.body, if_absent=condition is not None)
    except PreconditionFailed:
        words = "At least one of the pre-conditions you specified did not hold."
        raise _Refused(412, "PreconditionFailed", words) from None
    return Response(200, headers={"etag": quoted(info.etag)})


async def _get(bucket: Bucket, key: str, request: Request) -> Response:
    info = await bucket.objects.head(key)
    if info is None:
        raise ObjectNotFound
    headers = {"etag": quoted(info.etag), "last-modified": s3_xml.http_date(info), "accept-ranges": "bytes"}
    if request.method == "HEAD":
        return Response(200, headers={**headers, "content-length": str(info.size)})
    given = request.headers.get("range")
    if given is None:
        return Response(200, await bucket.objects.get(key), headers)
    first, last = _range(given, info)
    body = await bucket.objects.get(key, offset=first, length=last - first + 1)
    return Response(206, body, {**headers, "content-range": f"bytes {first}-{last}/{info.size}"})


def _range(given: str, info: ObjectInfo) -> tuple[int, int]:
    found = _RANGE.fullmatch(given)
    if found is None:
        raise _Refused(501, "NotImplemented", "Only bytes=first-last is implemented.")
    first, last = int(found[1]), min(int(found[2] or info.size), info.size - 1)
    if first > last:
        raise _Refused(416, "InvalidRange", "The requested range is not satisfiable")
    return first, last


async def _upload(bucket: Bucket, key: str, upload_id: str, request: Request) -> Response:
    owner, sizes = bucket.uploads.get(upload_id, ("", {}))
    if owner != key:
        raise _Refused(404, "NoSuchUpload", "The specified multipart upload does not exist.")
    if request.method == "PUT":
        number = request.arguments.get("partNumber", "")
        if not number.isdecimal() or not 1 <= int(number) <= _MAX_PARTS:
            raise _Refused(400, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive.")
        part = await bucket.objects.put_part(key, upload_id, int(number), request.body)
        sizes[part.number] = part.size
        return Response(200, headers={"etag": quoted(part.etag)})
    if request.method == "DELETE":
        await bucket.objects.abort_multipart(key, upload_id)
        del bucket.uploads[upload_id]
        return Response(204)
    if request.method == "POST":
        return await _complete(bucket, key, upload_id, sizes, request)
    raise _Refused(501, "NotImplemented", "This part of S3 is not implemented.")


async def _complete(bucket: Bucket, key: str, upload_id: str, sizes: dict[int, int], request: Request) -> Response:
    named = list(s3_xml.texts(request.body, "Part", "PartNumber", "ETag"))
    parts = [UploadedPart(int(number), etag.strip('"'), sizes.get(int(number), -1)) for number, etag in named]
    if any(part.size < 0 for part in parts):
        raise _Refused(400, "InvalidPart", "One or more of the specified parts could not be found.")
    leading = {part.size for part in parts[:-1]}
    if any(size < MIN_MULTIPART_PART_BYTES for size in leading):
        raise _Refused(400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed object size.")
    if len(leading) > 1:
        raise _Refused(400, "InvalidPart", "All non-trailing parts must have the same length.")
    try:
        info = await bucket.objects.complete_multipart(key, upload_id, parts)
    except ValueError:
        raise _Refused(400, "InvalidPartOrder", "The list of parts was not in ascending order.") from None
    except StorageError:
        raise _Refused(400, "InvalidPart", "One or more of the specified parts could not be found.") from None
    del bucket.uploads[upload_id]
    return s3_xml.document("CompleteMultipartUploadResult", element("Key", key), element("ETag", quoted(info.etag)))
