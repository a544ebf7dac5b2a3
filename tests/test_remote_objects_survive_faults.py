"""R2 over S3 when something breaks, and what its emulator takes for a signature, a part or a request."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from mempersist.limits import MIN_MULTIPART_PART_BYTES
from mempersist.ports import PreconditionFailed, StorageError
from mempersist_ops.stores.remote.objects import S3ObjectStore, s3_client
from tests.emulator.app import ACCOUNT, TOKEN
from tests.emulator.auth import Token
from tests.emulator.faults import Fault
from tests.rigs.emulator import RemoteObjectStore, shared

SECRET = "wrong-secret-of-somebody"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RemoteObjectStore]:
    opened = RemoteObjectStore(tmp_path)
    yield opened
    shared()[0].faults.clear()
    opened.close()


def break_next(store: RemoteObjectStore, kind: Any, method: str, key: str = "", times: int = 1) -> None:
    shared()[0].faults.add(Fault(kind, method, f"^/{store.bucket}/?{key}", body="", times=times))


def calls(store: RemoteObjectStore) -> int:
    return sum(count for call, count in shared()[0].calls.items() if f" /{store.bucket}" in call)


async def test_a_put_that_replaces_is_tried_again(store: RemoteObjectStore) -> None:
    break_next(store, "instead", "PUT")
    await store.put("k", b"data")
    assert await store.get("k") == b"data"


async def test_an_exclusive_put_is_tried_once_and_never_called_another_s(store: RemoteObjectStore) -> None:
    break_next(store, "afterwards", "PUT")
    with pytest.raises(StorageError):
        await store.put("k", b"mine", if_absent=True)
    assert calls(store) == 1
    with pytest.raises(PreconditionFailed):
        await store.put("k", b"mine", if_absent=True)
    assert await store.get("k") == b"mine"


async def test_an_answer_that_breaks_off_is_read_again(store: RemoteObjectStore) -> None:
    await store.put("k", b"data")
    break_next(store, "lose", "GET")
    assert await store.get("k") == b"data"
    break_next(store, "lose", "GET", times=9)
    with pytest.raises(StorageError):
        await store.get("k")


async def test_a_long_stream_whose_part_fails_leaves_no_upload_behind(store: RemoteObjectStore) -> None:
    async def stream() -> Any:
        for _ in range(5):
            yield bytes(4_000_000)

    shared()[0].faults.add(Fault("instead", "PUT", f"^/{store.bucket}/k", status=403, body="", skip=1))
    with pytest.raises(StorageError):
        await store.put("k", stream())
    assert await store.head("k") is None
    assert sum(count for call, count in shared()[0].calls.items() if f"DELETE /{store.bucket}/k 204" in call) == 1


async def test_a_wrong_secret_is_refused_and_not_said(store: RemoteObjectStore) -> None:
    wrong = S3ObjectStore(lambda tries: s3_client(shared()[1], TOKEN.id, SECRET, tries=tries), store.bucket)
    with pytest.raises(StorageError, match="SignatureDoesNotMatch") as raised:
        await wrong.put("k", b"data")
    assert SECRET not in f"{raised.value!r}"
    wrong.close()


async def test_a_bucket_that_is_not_there_is_no_missing_object() -> None:
    nowhere = S3ObjectStore(lambda tries: s3_client(shared()[1], TOKEN.id, TOKEN.s3_secret, tries=tries), "nowhere")
    with pytest.raises(StorageError, match="NoSuchBucket"):
        await nowhere.get("k")
    nowhere.close()


# ------------------------------------------------------------------ what the emulator refuses


def raw(**config: Any) -> Any:
    settings = Config(
        signature_version="s3v4", s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}, **config
    )
    return boto3.client(
        "s3",
        endpoint_url=shared()[1],
        aws_access_key_id=TOKEN.id,
        aws_secret_access_key=TOKEN.s3_secret,
        region_name="auto",
        config=settings,
    )


@pytest.fixture
def plain(store: RemoteObjectStore) -> Iterator[Any]:
    client = raw(request_checksum_calculation="when_required")
    yield client
    client.close()


def code_of(call: Any, **arguments: Any) -> str:
    with pytest.raises(ClientError) as raised:
        call(**arguments)
    return str(raised.value.response["Error"]["Code"])


def test_parts_but_the_last_have_one_size_of_five_mebibytes_or_more(store: RemoteObjectStore, plain: Any) -> None:
    def joined(*sizes: int) -> str:
        where = {"Bucket": store.bucket, "Key": "k"}
        where["UploadId"] = plain.create_multipart_upload(**where)["UploadId"]
        parts = [
            {"PartNumber": n, "ETag": plain.upload_part(**where, PartNumber=n, Body=bytes(size))["ETag"]}
            for n, size in enumerate(sizes, 1)
        ]
        return code_of(plain.complete_multipart_upload, **where, MultipartUpload={"Parts": parts})

    assert joined(MIN_MULTIPART_PART_BYTES - 1, 1) == "EntityTooSmall"
    assert joined(MIN_MULTIPART_PART_BYTES, MIN_MULTIPART_PART_BYTES + 1, 1) == "InvalidPart"


def test_what_is_not_implemented_says_so(store: RemoteObjectStore, plain: Any) -> None:
    source = {"Bucket": store.bucket, "Key": "a"}
    assert code_of(plain.copy_object, Bucket=store.bucket, Key="k", CopySource=source) == "NotImplemented"
    assert code_of(plain.get_object_tagging, Bucket=store.bucket, Key="k") == "NotImplemented"
    assert code_of(plain.get_bucket_acl, Bucket=store.bucket) == "NotImplemented"


def test_a_token_that_may_only_read_cannot_write(store: RemoteObjectStore) -> None:
    reader = Token("r2-reader", "value-of-the-reader", ACCOUNT, frozenset({"Workers R2 Storage Read"}))
    shared()[0].tokens.add(reader)
    client = s3_client(shared()[1], reader.id, reader.s3_secret, tries=1)
    assert client.list_objects_v2(Bucket=store.bucket)["KeyCount"] == 0
    assert code_of(client.put_object, Bucket=store.bucket, Key="k", Body=b"x") == "AccessDenied"
    client.close()


def test_a_body_that_is_not_the_signed_one_is_refused(store: RemoteObjectStore, plain: Any) -> None:
    def tamper(request: Any, **_: Any) -> None:
        request.headers["X-Amz-Content-SHA256"] = hashlib.sha256(b"other").hexdigest()

    plain.meta.events.register("before-send.s3.PutObject", tamper)
    assert code_of(plain.put_object, Bucket=store.bucket, Key="k", Body=b"x") == "XAmzContentSHA256Mismatch"
