"""What is set for a bucket: locks, and what is cleared away by itself."""

from __future__ import annotations

from typing import Any

from tests.emulator.buckets import Bucket, Buckets
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result

DEFAULT_LIFECYCLE: list[dict[str, Any]] = [
    {
        "id": "Default Multipart Abort Rule",
        "enabled": True,
        "conditions": {"prefix": ""},
        "abortMultipartUploadsTransition": {"condition": {"type": "Age", "maxAge": 604_800}},
    }
]
"""What R2 gives every bucket, until the list is put."""


class BucketRules:
    """Locks and lifecycles of the buckets in ``buckets``."""

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets
        self._rules: dict[tuple[int, str], list[dict[str, Any]]] = {}

    def routes(self) -> list[Route]:
        product = "Workers R2 Storage"
        found = []
        for part in ("lock", "lifecycle"):
            path = f"/r2/buckets/{{name}}/{part}"
            found.append(Route("GET", path, product, "Read", self._get(part)))
            found.append(Route("PUT", path, product, "Write", self._put(part)))
        return found

    def of(self, bucket: Bucket, part: str) -> list[dict[str, Any]]:
        """The rules that hold for a bucket."""
        return self._rules.get((id(bucket), part), DEFAULT_LIFECYCLE if part == "lifecycle" else [])

    def _get(self, part: str) -> Any:
        async def get(call: Call, name: str) -> Result:
            return Result({"rules": self.of(self._buckets.named(call, name), part)})

        return get

    def _put(self, part: str) -> Any:
        async def put(call: Call, name: str) -> Result:
            bucket, rules = self._buckets.named(call, name), call.request.json_object().get("rules", [])
            for rule in rules:
                _check(rule, part)
            self._rules[id(bucket), part] = rules
            return Result({})

        return put


def _check(rule: Any, part: str) -> None:
    """:raises ApiError: for a rule that R2 would not take."""
    if not isinstance(rule, dict) or not rule.get("id") or not isinstance(rule.get("enabled"), bool):
        raise ApiError(400, 10043, "A rule needs an id and whether it is enabled.")
    if part == "lock":
        condition = rule.get("condition") or {}
        sound = {
            "Age": isinstance(condition.get("maxAgeSeconds"), int),
            "Date": "date" in condition,
            "Indefinite": True,
        }
        if not sound.get(condition.get("type"), False):
            raise ApiError(400, 10043, "A lock rule needs a condition by age, by date, or without end.")
    elif "conditions" not in rule:
        raise ApiError(400, 10043, "A lifecycle rule needs conditions.")
