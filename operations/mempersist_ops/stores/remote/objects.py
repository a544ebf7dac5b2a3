"""R2 as the object store, over its S3 API."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError, IncompleteReadError

from mempersist import timestamps
from mempersist.limits import MIB
from mempersist.ports import (
    Body,
    ObjectInfo,
    ObjectNotFound,
    ObjectPage,
    PreconditionFailed,
    StorageError,
    UploadedPart,
)
from mempersist.rules.objects import check_key, check_part_number, check_parts

T = TypeVar("T")

_PART_BYTES: Final = 8 * MIB
"""A stream of unknown length is held up to here, and sent in parts of this size when it is longer."""
_TRIES: Final = 4
_MISSING: Final = frozenset({"NoSuchKey", "NoSuchUpload", "404"})
_EXISTS: Final = frozenset({"PreconditionFailed", "412"})
_BEYOND: Final = frozenset({"InvalidRange", "416"})


def s3_client(endpoint: str, access_key: str, secret: str, *, tries: int = _TRIES, connections: int = 16) -> Any:
    """A client as R2 wants it: path style, region ``auto``, and no checksums that it would refuse."""
    config = Config(
        signature_version="s3v4",
        s3={"addressing_style": "path"},
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        retries={"mode": "standard", "total_max_attempts": tries},
        max_pool_connections=connections,
        connect_timeout=10,
        read_timeout=90,
    )
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret,
        region_name="auto",
        config=config,
    )


class S3ObjectStore:
    """:class:`mempersist.ports.ObjectStore` over one bucket.

    What can be repeated without harm is tried four times. A put that must not replace is tried once, since a lost
    answer would look like another writer's object.

    :param make_client: gives a client that tries so often; see :func:`s3_client`.
    :param concurrency: requests at a time, each in a thread.
    """

    def __init__(self, make_client: Callable[[int], Any], bucket: str, *, concurrency: int = 16) -> None:
        self._client, self._once = make_client(_TRIES), make_client(1)
        self._bucket = bucket
        self._threads = ThreadPoolExecutor(concurrency, thread_name_prefix="r2")

    def close(self) -> None:
        """Wait for calls that run, then close the connections."""
        self._threads.shutdown()
        self._client.close()
        self._once.close()

    async def put(self, key: str, body: Body, *, if_absent: bool = False) -> ObjectInfo:
        check_key(key)
        if isinstance(body, bytes):
            return await self._put(key, body, if_absent)
        parts = _in_parts(aiter(body))
        first = await anext(parts, b"")
        if len(first) < _PART_BYTES:
            return await self._put(key, first, if_absent)
        if if_absent:
            raise ValueError(f"a stream of {_PART_BYTES} bytes or more cannot be created exclusively")
        return await self._put_parts(key, first, parts)

    async def get(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        check_key(key)
        if length == 0:
            if await self.head(key) is None:
                raise ObjectNotFound
            return b""
        wanted = {}
        if offset or length is not None:
            wanted["Range"] = f"bytes={offset}-{'' if length is None else offset + length - 1}"

        try:
            return await self._run(lambda: self._read(key, wanted))
        except _Refused as refused:
            if refused.code in _BEYOND:
                return b""
            raise refused.as_port_error() from None

    async def head(self, key: str) -> ObjectInfo | None:
        check_key(key)
        try:
            found = await self._call("head_object", Key=key)
        except ObjectNotFound:
            return None
        return ObjectInfo(key, int(found["ContentLength"]), _etag(found), _moment(found["LastModified"]))

    async def delete(self, keys: Sequence[str]) -> None:
        """As the port says; one request, and one more for each key that XML cannot hold."""
        for key in keys:
            check_key(key)
        named = [key for key in dict.fromkeys(keys) if _fits_xml(key)]
        if named:
            objects = [{"Key": key} for key in named]
            answer = await self._call("delete_objects", Delete={"Objects": objects, "Quiet": True})
            if answer.get("Errors"):
                raise StorageError(f"R2 did not delete {len(answer['Errors'])} of {len(named)} objects")
        for key in dict.fromkeys(keys):
            if not _fits_xml(key):
                await self._call("delete_object", Key=key)

    async def list(
        self, prefix: str, *, limit: int = 1000, cursor: str | None = None, delimiter: str | None = None
    ) -> ObjectPage:
        given = {"ContinuationToken": cursor, "Delimiter": delimiter}
        options = {name: value for name, value in given.items() if value is not None}
        page = await self._call("list_objects_v2", Prefix=prefix, MaxKeys=limit, **options)
        return ObjectPage(
            tuple(
                ObjectInfo(found["Key"], int(found["Size"]), _etag(found), _moment(found["LastModified"]))
                for found in page.get("Contents", ())
            ),
            tuple(found["Prefix"] for found in page.get("CommonPrefixes", ())),
            page["NextContinuationToken"] if page["IsTruncated"] else None,
        )

    async def create_multipart(self, key: str) -> str:
        check_key(key)
        return str((await self._call("create_multipart_upload", Key=key))["UploadId"])

    async def put_part(self, key: str, upload_id: str, number: int, body: Body) -> UploadedPart:
        check_part_number(number)
        data = body if isinstance(body, bytes) else b"".join([chunk async for chunk in body])
        sent = await self._call("upload_part", Key=key, UploadId=_known(upload_id), PartNumber=number, Body=data)
        return UploadedPart(number, _etag(sent), len(data))

    async def complete_multipart(self, key: str, upload_id: str, parts: Sequence[UploadedPart]) -> ObjectInfo:
        check_parts(parts)
        named = [{"PartNumber": part.number, "ETag": f'"{part.etag}"'} for part in parts]
        upload = {"Parts": named}
        done = await self._call(
            "complete_multipart_upload", Key=key, UploadId=_known(upload_id), MultipartUpload=upload
        )
        return ObjectInfo(key, sum(part.size for part in parts), _etag(done), _answered_at(done))

    async def abort_multipart(self, key: str, upload_id: str) -> None:
        with suppress(ObjectNotFound):
            await self._call("abort_multipart_upload", Key=key, UploadId=_known(upload_id))

    # ---------------------------------------------------------------- parts of the above

    def _read(self, key: str, wanted: dict[str, str]) -> bytes:
        """The client tries again until an answer begins; one that breaks off is asked for again here."""
        for attempt in range(1, _TRIES + 1):
            answer = self._client.get_object(Bucket=self._bucket, Key=key, **wanted)
            try:
                with closing(answer["Body"]) as stream:
                    data: bytes = stream.read()
                    return data
            except (IncompleteReadError, HTTPClientError):
                if attempt == _TRIES:
                    raise
        raise AssertionError

    async def _put(self, key: str, data: bytes, if_absent: bool) -> ObjectInfo:
        condition = {"IfNoneMatch": "*"} if if_absent else {}
        client = self._once if if_absent else self._client
        sent = await self._call("put_object", client, Key=key, Body=data, **condition)
        return ObjectInfo(key, len(data), _etag(sent), _answered_at(sent))

    async def _put_parts(self, key: str, first: bytes, rest: AsyncIterator[bytes]) -> ObjectInfo:
        upload_id = await self.create_multipart(key)
        try:
            parts = [await self.put_part(key, upload_id, 1, first)]
            async for data in rest:
                parts.append(await self.put_part(key, upload_id, len(parts) + 1, data))
            return await self.complete_multipart(key, upload_id, parts)
        except BaseException:
            with suppress(StorageError):
                await self.abort_multipart(key, upload_id)
            raise

    async def _call(self, operation: str, client: Any = None, **arguments: Any) -> dict[str, Any]:
        call = getattr(client or self._client, operation)
        try:
            return await self._run(lambda: call(Bucket=self._bucket, **arguments))
        except _Refused as refused:
            raise refused.as_port_error() from None

    async def _run(self, work: Callable[[], T]) -> T:
        """``work`` in a thread. :raises _Refused:"""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except ClientError as error:
            raise _Refused(str(error.response.get("Error", {}).get("Code", ""))) from None
        except BotoCoreError as error:
            raise _Refused(type(error).__name__) from None


class _Refused(Exception):
    """R2 did not do it, or did not answer; ``code`` is S3's, or the name of what went wrong."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

    def as_port_error(self) -> Exception:
        if self.code in _MISSING:
            return ObjectNotFound()
        if self.code in _EXISTS:
            return PreconditionFailed()
        return StorageError(f"R2 refused or failed ({self.code or 'no code'})")


def _known(upload_id: str) -> str:
    """An empty id would name no upload but the object itself."""
    if not upload_id:
        raise ObjectNotFound
    return upload_id


def _etag(answer: dict[str, Any]) -> str:
    return str(answer["ETag"]).strip('"')


def _moment(value: datetime) -> str:
    return timestamps.from_ms(int(value.timestamp() * 1000))


def _answered_at(answer: dict[str, Any]) -> str:
    """The server's time, as R2 does not give an object's own when it is written."""
    told = answer["ResponseMetadata"]["HTTPHeaders"].get("date")
    return _moment(parsedate_to_datetime(told) if told else datetime.now(UTC))


def _fits_xml(key: str) -> bool:
    """Whether XML 1.0 can name the key; a carriage return or a tab would arrive as something else."""
    return all(character >= " " and character not in "\ufffe\uffff" for character in key)


async def _in_parts(body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The stream in pieces of the part size; the last is shorter or, where nothing is left, not there."""
    held = bytearray()
    async for chunk in body:
        held += chunk
        while len(held) >= _PART_BYTES:
            yield bytes(held[:_PART_BYTES])
            del held[:_PART_BYTES]
    if held:
        yield bytes(held)
