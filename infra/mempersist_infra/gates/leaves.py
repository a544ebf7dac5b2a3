"""The engine's values as a plan keeps them: by path, with secrets as keyed digests and unknown values left open."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi
from pulumi.output import Unknown
from pulumi.runtime import rpc

from mempersist_ops.gates.changes import Leaves, canonical, leaf


async def leaves(values: Mapping[str, Any] | None, key: bytes) -> Leaves:
    """Values by path. Left out is what the SDK adds for itself and begins with ``__``, such as a provider's code.

    :param key: keys the digests of secrets.
    """
    found: dict[str, str | None] = {}
    for name, value in (values or {}).items():
        if not name.startswith("__"):
            await _add(found, name, value, key)
    return found


async def _add(found: dict[str, str | None], path: str, value: Any, key: bytes) -> None:
    if isinstance(value, pulumi.Output):
        secret = await value.future(with_unknowns=True)
        known = not _unknown(secret)
        found[path] = f"hmac:{hmac.new(key, canonical(secret), 'sha256').hexdigest()}" if known else None
    elif _unknown(value):
        found[path] = None
    elif isinstance(value, Mapping) and value:
        for name, item in value.items():
            if not str(name).startswith("__"):
                await _add(found, f"{path}/{name}", item, key)
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes) and value:
        for place, item in enumerate(value):
            await _add(found, f"{path}/{place}", item, key)
    elif value is not None:
        found[path] = leaf(int(value) if isinstance(value, float) and value.is_integer() else value)


def _unknown(value: Any) -> bool:
    return isinstance(value, Unknown) or value == rpc.UNKNOWN
