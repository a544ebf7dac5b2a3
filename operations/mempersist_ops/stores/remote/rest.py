"""Cloudflare's REST API: connections kept, few requests at a time, an honest pace, repeats only where they are safe."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

from mempersist import nesting
from mempersist_ops.stores.remote.pace import Pace

API: Final = "https://api.cloudflare.com/client/v4"

_TRIES: Final = 4
_FIRST_WAIT_SECONDS: Final = 0.5
_ANSWER_SECONDS: Final = 90.0
_CONNECT_SECONDS: Final = 10.0
_LONGEST_PAUSE_SECONDS: Final = 330.0
"""A little more than the five minutes for which Cloudflare holds back who was too fast."""
_LEAST_PAUSE_SECONDS: Final = 1.0
_UNTOLD_PAUSE_SECONDS: Final = 30.0


class RestError(Exception):
    """The API refused a request or did not answer it. ``str()`` of it holds neither the token nor anybody's data.

    :param request: method and path.
    :param status: None when there was no answer.
    :param codes: Cloudflare's error codes.
    :param words: Cloudflare's messages, which may quote what was sent.
    :param maybe_done: whether the request may have been carried out all the same.
    :param wait: seconds after which Cloudflare asks to try again.
    """

    def __init__(
        self,
        request: str,
        status: int | None,
        *,
        codes: tuple[int, ...] = (),
        words: str = "",
        maybe_done: bool = False,
        wait: float = 0.0,
    ) -> None:
        answer = "no answer" if status is None else f"HTTP {status}"
        said = f", code {', '.join(map(str, codes))}" if codes else ""
        super().__init__(f"Cloudflare: {answer}{said} to {request}" + ("; it may have been done" if maybe_done else ""))
        self.status, self.codes, self.words, self.maybe_done, self.wait = status, codes, words, maybe_done, wait


class RestClient:
    """Calls to one account. It belongs to the event loop that first uses it; close it with :meth:`aclose`.

    :param token: an API token; it is sent to ``base_url`` only, and never repeated in an error.
    :param concurrency: requests at a time; the others wait.
    :param kept: connections kept open between requests; ``concurrency`` when None.
    :param timeout: seconds without a byte of the answer after which it is given up.
    :param first_wait: seconds before the first repeat; each further one waits twice as long.
    :raises ValueError: for an account or token that cannot be one.
    """

    def __init__(
        self,
        account: str,
        token: str,
        *,
        base_url: str = API,
        concurrency: int = 8,
        kept: int | None = None,
        pace: Pace | None = None,
        timeout: float = _ANSWER_SECONDS,
        first_wait: float = _FIRST_WAIT_SECONDS,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        if not (account.isascii() and account.isalnum()):
            raise ValueError("account: must be the account's id of letters and digits")
        if not token.isascii() or not token.isprintable() or not token or " " in token:
            raise ValueError("token: must be printable ASCII without blanks")
        kept = concurrency if kept is None else kept
        limits = httpx.Limits(max_connections=concurrency, max_keepalive_connections=kept)
        self._http = httpx.AsyncClient(
            base_url=f"{base_url}/accounts/{account}",
            headers={"Authorization": f"Bearer {token}"},
            timeout=httpx.Timeout(timeout, connect=_CONNECT_SECONDS),
            limits=limits,
            transport=transport,
        )
        self._slots = asyncio.Semaphore(concurrency)
        self._pace = pace or Pace()
        self._first_wait = first_wait

    async def aclose(self) -> None:
        await self._http.aclose()

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        content: bytes | None = None,
        content_type: str = "application/json",
        query: Mapping[str, str] | None = None,
        repeatable: bool,
    ) -> Any:
        """The ``result`` of a request below the account.

        A request that was surely not carried out, for want of a connection or as one too many, is sent again; one whose
        answer was lost, a server's error or no envelope only if it is ``repeatable``.

        :param body: sent as JSON, where there is no ``content``.
        :raises RestError:
        """
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
        headers = {} if content is None else {"Content-Type": content_type}
        request = self._http.build_request(method, path, content=content, headers=headers, params=query)
        name = f"{method} {path}"
        paused = 0.0
        attempt = 1
        while True:
            answer = await self._send(request, name)
            if not isinstance(answer, RestError):
                return answer.result
            if answer.status == httpx.codes.TOO_MANY_REQUESTS:
                paused += answer.wait
                if paused > _LONGEST_PAUSE_SECONDS:
                    raise answer
                self._pace.pause(answer.wait)
                continue
            if attempt == _TRIES or not _may_repeat(answer, repeatable):
                raise answer
            await asyncio.sleep(self._first_wait * 2 ** (attempt - 1))
            attempt += 1

    async def _send(self, request: httpx.Request, name: str) -> _Answer | RestError:
        async with self._slots:
            await self._pace.turn()
            try:
                response = await self._http.send(request)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout):
                return RestError(name, None)
            except httpx.HTTPError:
                return RestError(name, None, maybe_done=True)
        self._pace.heed(response.headers)
        return _understood(response, name)


@dataclass(frozen=True, slots=True)
class _Answer:
    result: Any


def _may_repeat(error: RestError, repeatable: bool) -> bool:
    unsent = error.status is None and not error.maybe_done
    return unsent or (repeatable and error.maybe_done)


def _understood(response: httpx.Response, name: str) -> _Answer | RestError:
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
        told = response.headers.get("retry-after", "")
        wait = max(_LEAST_PAUSE_SECONDS, float(told)) if told.isdecimal() else _UNTOLD_PAUSE_SECONDS
        return RestError(name, response.status_code, wait=wait)
    try:
        envelope = nesting.loads(response.text)
    except ValueError:
        envelope = None
    if not isinstance(envelope, dict) or not isinstance(envelope.get("success"), bool):
        # An answer that is no envelope is not Cloudflare's API speaking: a proxy, or half an answer.
        refused = 400 <= response.status_code < 500
        return RestError(name, response.status_code, maybe_done=not refused)
    if response.is_success and envelope["success"]:
        return _Answer(envelope.get("result"))
    given = envelope.get("errors")
    errors = [error for error in given if isinstance(error, dict)] if isinstance(given, list) else []
    codes = tuple(error["code"] for error in errors if isinstance(error.get("code"), int))
    words = "; ".join(str(error.get("message", "")) for error in errors)
    return RestError(name, response.status_code, codes=codes, words=words, maybe_done=response.is_server_error)
