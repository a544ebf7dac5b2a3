"""How a provider reaches Cloudflare's API: the token and the address come from the environment of its process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from pulumi.runtime import rpc

from mempersist_ops.stores.remote.rest import API, RestClient

Found = TypeVar("Found")


class ProviderError(Exception):
    """A resource could not be made, changed, read or deleted. The message says why and what to do."""


def calling(account: str, work: Callable[[RestClient], Awaitable[Found]]) -> Found:
    """What ``work`` gives, with a client for ``account``. :raises ProviderError: if there is no token."""
    token = os.environ.get("CLOUDFLARE_API_TOKEN", "")
    if not token:
        raise ProviderError("CLOUDFLARE_API_TOKEN is not set; without it nothing is asked of Cloudflare")

    async def run() -> Found:
        client = RestClient(account, token, base_url=os.environ.get("CLOUDFLARE_BASE_URL", API))
        try:
            return await work(client)
        finally:
            await client.aclose()

    return asyncio.run(run())


def whole(value: Any) -> Any:
    """A value as it was given: the engine hands whole numbers over as floats."""
    if isinstance(value, Mapping):
        return {key: whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [whole(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def changed(olds: Mapping[str, Any], news: Mapping[str, Any], names: tuple[str, ...]) -> list[str]:
    """Which of ``names`` are not what they were; a value that is not known yet counts as changed."""
    return [name for name in names if news.get(name) == rpc.UNKNOWN or whole(olds.get(name)) != whole(news.get(name))]
