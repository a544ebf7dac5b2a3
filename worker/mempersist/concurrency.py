"""Bounded concurrency: a Worker has six connections, so nothing fans out without a limit."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def gather(coroutines: Iterable[Coroutine[Any, Any, T]], *, limit: int = 6) -> list[T]:
    """Results in the order of ``coroutines``, at most ``limit`` of them running at a time.

    The first exception is raised as it is, after the running siblings were cancelled and the others were never begun.
    """
    waiting = list(coroutines)
    results: list[Any] = [None] * len(waiting)
    queue = iter(list(enumerate(waiting)))

    async def work() -> None:
        for index, coroutine in queue:
            results[index] = await coroutine

    workers = [asyncio.ensure_future(work()) for _ in range(min(limit, len(waiting)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        for _, coroutine in queue:
            coroutine.close()
    return results
