"""R2's buckets over REST; what is in them is a directory of files each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mempersist import timestamps
from mempersist.ports import Clock
from mempersist_ops.stores.embedded.objects import FileObjectStore
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_JURISDICTIONS = ("default", "eu", "us", "fedramp", "fedramp-high")
_CLASSES = ("Standard", "InfrequentAccess")


@dataclass(frozen=True, slots=True)
class Bucket:
    """``uploads`` holds the key and the parts' sizes of every open multipart upload."""

    about: dict[str, Any]
    objects: FileObjectStore
    uploads: dict[str, tuple[str, dict[int, int]]] = field(default_factory=dict)


class Buckets:
    """The buckets of every account."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        self._directory, self._clock = directory, clock
        self._buckets: dict[tuple[str, str, str], Bucket] = {}

    def close(self) -> None:
        for bucket in self._buckets.values():
            bucket.objects.close()

    def find(self, account: str, name: str, jurisdiction: str = "default") -> Bucket | None:
        return self._buckets.get((account, jurisdiction, name))

    def routes(self) -> list[Route]:
        product, base = "Workers R2 Storage", "/r2/buckets"
        return [
            Route("POST", base, product, "Write", self._create),
            Route("GET", base, product, "Read", self._list),
            Route("GET", f"{base}/{{name}}", product, "Read", self._get),
            Route("PATCH", f"{base}/{{name}}", product, "Write", self._update),
            Route("DELETE", f"{base}/{{name}}", product, "Write", self._delete),
        ]

    async def _create(self, call: Call) -> Result:
        given, jurisdiction = call.request.json_object(), _jurisdiction(call)
        name, storage = given.get("name"), given.get("storageClass", "Standard")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or storage not in _CLASSES:
            raise ApiError(400, 10005, "The specified bucket name is not valid.")
        if (call.account, jurisdiction, name) in self._buckets:
            words = "The bucket you tried to create already exists, and you own it."
            raise ApiError(409, 10004, words, {"x-should-retry": "false"})
        about = {
            "name": name,
            "creation_date": timestamps.from_ms(self._clock.now_ms()),
            "location": str(given.get("locationHint", "weur")).lower(),
            "storage_class": storage,
            "jurisdiction": jurisdiction,
        }
        objects = FileObjectStore(self._directory / call.account / jurisdiction / name)
        self._buckets[call.account, jurisdiction, name] = Bucket(about, objects)
        return Result(about)

    async def _list(self, call: Call) -> Result:
        asked, jurisdiction = call.request.arguments, _jurisdiction(call)
        after = asked.get("cursor") or asked.get("start_after", "")
        found = sorted(
            name
            for account, where, name in self._buckets
            if (account, where) == (call.account, jurisdiction) and asked.get("name_contains", "") in name
        )
        left = [name for name in found if name > after]
        size = min(int(asked.get("per_page", "20")), 1000)
        shown = [self._buckets[call.account, jurisdiction, name].about for name in left[:size]]
        info = {"per_page": size, "cursor": left[size - 1] if len(left) > size else ""}
        return Result({"buckets": shown}, info)

    async def _get(self, call: Call, name: str) -> Result:
        return Result(self.named(call, name).about)

    async def _update(self, call: Call, name: str) -> Result:
        bucket, storage = self.named(call, name), call.request.headers.get("cf-r2-storage-class", "")
        if storage not in _CLASSES:
            raise ApiError(400, 10001, "The storage class is not valid.")
        bucket.about["storage_class"] = storage
        return Result(bucket.about)

    async def _delete(self, call: Call, name: str) -> Result:
        bucket = self.named(call, name)
        if (await bucket.objects.list("", limit=1)).objects:
            words = "The bucket you tried to delete is not empty."
            raise ApiError(409, 10008, words, {"x-should-retry": "false"})
        del self._buckets[call.account, _jurisdiction(call), name]
        bucket.objects.close()
        return Result({})

    def named(self, call: Call, name: str) -> Bucket:
        """:raises ApiError: 10006"""
        bucket = self.find(call.account, name, _jurisdiction(call))
        if bucket is None:
            raise ApiError(404, 10006, "The specified bucket does not exist.")
        return bucket


def _jurisdiction(call: Call) -> str:
    given = call.request.headers.get("cf-r2-jurisdiction", "default")
    if given not in _JURISDICTIONS:
        raise ApiError(400, 10001, "The jurisdiction is not valid.")
    return given
