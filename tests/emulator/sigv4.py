"""AWS's signature version 4 as R2 checks it: in the Authorization header, over the whole payload."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from tests.emulator.wire import Request

ALGORITHM: Final = "AWS4-HMAC-SHA256"
_AUTHORIZATION: Final = re.compile(
    ALGORITHM + r" Credential=(?P<key>[^/,]+)/(?P<scope>(?P<date>\d{8})/(?P<region>[^/]*)/s3/aws4_request),"
    r"\s*SignedHeaders=(?P<headers>[a-z0-9;-]+),\s*Signature=(?P<signature>[0-9a-f]{64})"
)
_REGIONS: Final = frozenset({"auto", "us-east-1", ""})
_SKEW_SECONDS: Final = 900


class SignatureError(Exception):
    """The S3 error code and its words."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


def access_key(request: Request) -> str:
    """The access key that signed. :raises SignatureError:"""
    return _parsed(request)["key"]


def check(request: Request, secret: str, now: datetime) -> None:
    """:raises SignatureError: unless ``secret`` made the signature, lately, over this request."""
    given = _parsed(request)
    if given["region"] not in _REGIONS:
        raise SignatureError(400, "InvalidRegionName", "The region name is not valid. Use auto.")
    stamp = request.headers.get("x-amz-date", "")
    try:
        made = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
    except ValueError:
        raise SignatureError(403, "AccessDenied", "x-amz-date is missing") from None
    if abs((now - made).total_seconds()) > _SKEW_SECONDS:
        raise SignatureError(
            403, "RequestTimeTooSkewed", "The difference between request and server time is too large."
        )
    payload = request.headers.get("x-amz-content-sha256", "")
    if payload.startswith("STREAMING-"):
        raise SignatureError(501, "NotImplemented", f"{payload} not implemented")
    if payload not in ("UNSIGNED-PAYLOAD", hashlib.sha256(request.body).hexdigest()):
        raise SignatureError(400, "XAmzContentSHA256Mismatch", "The provided x-amz-content-sha256 does not match.")
    names = given["headers"].split(";")
    headers = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in names)
    pairs = sorted((pair if "=" in pair else f"{pair}=") for pair in request.query.split("&") if pair)
    canonical = "\n".join([request.method, request.path, "&".join(pairs), headers, given["headers"], payload])
    text = "\n".join([ALGORITHM, stamp, given["scope"], hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{secret}".encode()
    for part in given["scope"].split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    if not hmac.compare_digest(hmac.digest(key, text.encode(), "sha256").hex(), given["signature"]):
        words = "The request signature we calculated does not match the signature you provided."
        raise SignatureError(403, "SignatureDoesNotMatch", words)


def _parsed(request: Request) -> Mapping[str, str]:
    found = _AUTHORIZATION.fullmatch(request.headers.get("authorization", ""))
    if found is None:
        raise SignatureError(400, "InvalidArgument", "Authorization")
    return found.groupdict()
