"""What every object store refuses, in one place."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from mempersist.limits import MAX_MULTIPART_PARTS
from mempersist.ports import UploadedPart

MAX_KEY_BYTES = 1024


def check_key(key: str) -> None:
    """:raises ValueError: unless ``key`` has 1 to 1024 UTF-8 bytes."""
    if not 1 <= len(key.encode()) <= MAX_KEY_BYTES:
        raise ValueError(f"a key has 1 to {MAX_KEY_BYTES} bytes of UTF-8")


def check_part_number(number: int) -> None:
    """:raises ValueError: unless it is 1 to 10,000."""
    if not 1 <= number <= MAX_MULTIPART_PARTS:
        raise ValueError(f"a part has a number from 1 to {MAX_MULTIPART_PARTS}")


def check_parts(parts: Sequence[UploadedPart]) -> None:
    """:raises ValueError: unless there is a part and their numbers ascend."""
    numbers = [part.number for part in parts]
    if not numbers or numbers != sorted(set(numbers)):
        raise ValueError("an upload is completed with at least one part, in ascending order")


def content_etag(data: bytes) -> str:
    """An etag that is equal exactly for equal bytes."""
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
