"""The same commands against a server elsewhere: its HTTP API, and uploads that go on where they broke off."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx

from mempersist import canonical
from mempersist.errors import Code, MempersistError
from mempersist.limits import MAX_DIRECT_IMPORT_BYTES, MAX_MULTIPART_PART_BYTES, MAX_MULTIPART_PARTS

Progress = Callable[[int, int], None]
_BLOCK_BYTES: Final = 1024 * 1024
_TRIES: Final = 4
_LOOK_SECONDS: Final = 1.0
_TIMEOUT: Final = httpx.Timeout(30.0, read=300.0)
_BUSY: Final = frozenset({429, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Remote:
    """A server and the token it takes.

    :param wait: sleeps that many seconds; between tries and between looks at a running import.
    """

    client: httpx.Client
    wait: Callable[[float], None] = time.sleep


@contextmanager
def connected(url: str, token: str | None) -> Iterator[Remote]:
    """:raises MempersistError: VALIDATION for a missing token or something that is no URL."""
    if not token:
        raise MempersistError(Code.VALIDATION, "--url needs a bearer token; set MEMPERSIST_TOKEN or give --token")
    if not url.startswith(("http://", "https://")):
        raise MempersistError(Code.VALIDATION, "--url: must begin with http:// or https://")
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url.rstrip("/"), headers=headers, timeout=_TIMEOUT) as client:
        yield Remote(client)


def call(
    remote: Remote,
    method: str,
    path: str,
    *,
    params: Mapping[str, Any] | None = None,
    body: Callable[[], Iterator[bytes]] | bytes | None = None,
    headers: Mapping[str, str] | None = None,
) -> Any:
    """One request, tried again while the network or the server is busy; ``body`` is a function so that it can be sent
    again.

    :raises MempersistError: what the server refused, in its words; RETRYABLE_INFRASTRUCTURE after the last try.
    """
    problem = ""
    for attempt in range(_TRIES):
        if attempt:
            remote.wait(2.0**attempt)
        try:
            content = body() if callable(body) else body
            response = remote.client.request(method, path, params=params, content=content, headers=headers)
        except httpx.TransportError as error:
            problem = f"no connection to {remote.client.base_url} ({type(error).__name__})"
            continue
        if response.status_code in _BUSY:
            problem = f"{remote.client.base_url} answers {response.status_code}"
            continue
        return _answer(response)
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, f"{problem}; run the same command again to go on")


def _answer(response: httpx.Response) -> Any:
    try:
        value = response.json()
    except ValueError:
        message = f"{response.url} answers {response.status_code} without JSON; is it a mempersist server?"
        raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message) from None
    if response.is_success:
        return value
    error = value.get("error", {}) if isinstance(value, dict) else {}
    code = error.get("code")
    known = Code(code) if code in set(Code) else Code.RETRYABLE_INFRASTRUCTURE
    raise MempersistError(known, f"server: {error.get('message', response.status_code)}", status=response.status_code)


# ------------------------------------------------------------------ uploads


@dataclass(frozen=True, slots=True)
class Upload:
    """A file on its way to a server. ``notes`` is where it is written down how far it got."""

    path: Path
    size: int
    notes: Path
    namespace: str | None
    force: bool


def upload(remote: Remote, path: Path, notes: Path, namespace: str | None, force: bool, progress: Progress) -> str:
    """Bring a file to the server and return the import's id. A large file goes in parts; if that breaks off, calling
    again sends only the parts that the server does not have.

    :param notes: directory for the note of an upload under way.
    :raises MempersistError: as :func:`call`; IMPORT_CONFLICT if the server got other bytes than the file's.
    """
    size = path.stat().st_size
    name = hashlib.sha256(f"{remote.client.base_url}\x1f{path.resolve()}".encode("utf-8", "surrogateescape"))
    work = Upload(path, size, notes / f"{name.hexdigest()}.json", namespace, force)
    if size <= MAX_DIRECT_IMPORT_BYTES:
        return _direct(remote, work, progress)
    if size > MAX_MULTIPART_PART_BYTES * MAX_MULTIPART_PARTS:
        raise MempersistError(Code.REQUEST_TOO_LARGE, f"{path} has {size} bytes, more than all parts together may have")
    return _in_parts(remote, work, progress)


def _direct(remote: Remote, work: Upload, progress: Progress) -> str:
    headers = {"X-Filename": quote(work.path.name), "Content-Length": str(work.size)}
    answer = call(
        remote,
        "POST",
        "/api/imports/direct",
        params={**_where(work), **_forced(work)},
        headers=headers,
        body=lambda: _blocks(work.path, 0, work.size, lambda done: progress(done, work.size)),
    )
    return str(answer["importId"])


def _where(work: Upload) -> dict[str, str]:
    return {"namespace": work.namespace} if work.namespace is not None else {}


def _forced(work: Upload) -> dict[str, str]:
    return {"force": "true"} if work.force else {}


def _in_parts(remote: Remote, work: Upload, progress: Progress) -> str:
    import_id, there = _resumed(remote, work)
    if import_id is None:
        body = canonical.dumps({"filename": work.path.name, **_where(work)})
        import_id = str(call(remote, "POST", "/api/imports/multipart", body=body)["importId"])
        work.notes.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        work.notes.write_bytes(canonical.dumps({"importId": import_id, **_fingerprint(work)}))
    parts = range(0, work.size, MAX_MULTIPART_PART_BYTES)
    for number, offset in enumerate(parts, start=1):
        length = min(MAX_MULTIPART_PART_BYTES, work.size - offset)
        progress(offset, work.size)
        if there.get(number) != length:
            _send_part(remote, work, import_id, number, offset, length, progress)
    call(remote, "POST", f"/api/imports/{import_id}/complete", params=_forced(work))
    work.notes.unlink()
    return import_id


def _send_part(
    remote: Remote, work: Upload, import_id: str, number: int, offset: int, length: int, progress: Progress
) -> None:
    call(
        remote,
        "PUT",
        f"/api/imports/{import_id}/parts/{number}",
        headers={"Content-Length": str(length)},
        body=lambda: _blocks(work.path, offset, length, lambda done: progress(offset + done, work.size)),
    )


def _resumed(remote: Remote, work: Upload) -> tuple[str | None, dict[int, int]]:
    """The upload of this very file that a note tells of, with the parts (number: size) that the server has of it."""
    try:
        note = json.loads(work.notes.read_bytes())
    except (OSError, ValueError):
        return None, {}
    if not isinstance(note, dict) or {key: note.get(key) for key in _fingerprint(work)} != _fingerprint(work):
        return None, {}
    try:
        listed = call(remote, "GET", f"/api/imports/{note['importId']}/parts")["parts"]
    except MempersistError as error:
        if error.code in {Code.NOT_FOUND, Code.IMPORT_CONFLICT}:
            return None, {}
        raise
    return str(note["importId"]), {part["partNumber"]: part["sizeBytes"] for part in listed}


def _fingerprint(work: Upload) -> dict[str, Any]:
    return {"size": work.size, "modifiedNs": work.path.stat().st_mtime_ns, **_where(work)}


def _blocks(path: Path, offset: int, length: int, progress: Callable[[int], None]) -> Iterator[bytes]:
    done = 0
    with path.open("rb") as file:
        file.seek(offset)
        while done < length and (block := file.read(min(_BLOCK_BYTES, length - done))):
            yield block
            done += len(block)
            progress(done)


def finish(remote: Remote, import_id: str, progress: Progress) -> Any:
    """Wait until the import has ended and return its receipt. :raises MempersistError: if it was given up."""
    while True:
        status = call(remote, "GET", f"/api/imports/{import_id}")
        if status["bytes_total"]:
            progress(status["bytes_done"], status["bytes_total"])
        if status["phase"] is None:
            return call(remote, "GET", f"/api/imports/{import_id}/receipt")
        if status["status"] == "failed":
            message = f"import {import_id} was given up by the server: {status['error_message']}"
            raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, message)
        remote.wait(_LOOK_SECONDS)
