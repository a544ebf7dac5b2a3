"""A Worker's secret. Its value goes from the operator's file to Cloudflare, and is nowhere else: not in the program's
inputs, the state, a plan, a log or an argument. What stands there is a fingerprint, by which a new value is noticed.
"""

from __future__ import annotations

import hmac
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider, UpdateResult

from mempersist_infra.providers.calls import ProviderError, calling, changed
from mempersist_ops.stores.remote.rest import RestClient, RestError

FILE: Final = "MEMPERSIST_SECRETS_FILE"
"""Names the file that holds the values, as JSON, by the secrets' names."""
LEAST_CHARS: Final = 32
_NOT_FOUND: Final = 404
_NOT_DEPLOYED: Final = 10215
_REPLACING: Final = ("account", "script", "name")
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


def values() -> dict[str, str]:
    """The operator's secrets. :raises ProviderError: if there is no such file, or others can read it."""
    named = os.environ.get(FILE, "")
    if not named:
        raise ProviderError(f"{FILE} names no file of secrets; make one with: mempersist secrets new FILE")
    path = Path(named)
    try:
        mode, text = path.stat().st_mode, path.read_text("utf-8")
    except OSError as error:
        raise ProviderError(f"{path}: {error.strerror}; make it with: mempersist secrets new {path}") from None
    if mode & _OTHERS:
        raise ProviderError(f"{path}: others can read these secrets; mend that with: chmod 600 {path}")
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ProviderError(f"{path}: must be a JSON object of texts")
    return found


def value_of(name: str) -> str:
    """:raises ProviderError: if the file has no such secret, or one that could be guessed."""
    found = values().get(name, "")
    if len(found) < LEAST_CHARS:
        raise ProviderError(f"the secret {name} must have at least {LEAST_CHARS} characters, and be random")
    return found


def fingerprint(account: str, script: str, name: str, value: str) -> str:
    """What a value is known by: an HMAC with whose it is as its key. The values are random and long, so it tells
    nothing of them; the same value elsewhere has another fingerprint."""
    key = "\n".join(("mempersist secret v1", account, script, name)).encode()
    return hmac.new(key, value.encode(), "sha256").hexdigest()[:32]


async def put_secret(client: RestClient, props: Mapping[str, Any], value: str) -> None:
    """Set the secret. :raises ProviderError: if the value is not the one whose fingerprint was approved."""
    script, name = str(props["script"]), str(props["name"])
    now = fingerprint(str(props["account"]), script, name, value)
    if not hmac.compare_digest(now, str(props["fingerprint"])):
        raise ProviderError(f"the secret {name} is not the one of the preview; run the preview again")
    body = {"name": name, "text": value, "type": "secret_text"}
    try:
        answer = await client.call("PUT", f"/workers/scripts/{script}/secrets", body=body, repeatable=True)
    except RestError as error:
        if _NOT_DEPLOYED in error.codes:
            raise ProviderError(f"the newest version of {script} is not deployed; deploy it, then set {name}") from None
        raise
    if not isinstance(answer, dict) or answer.get("name") != name:
        raise ProviderError(f"Cloudflare did not say that it took the secret {name}; run the same command again")


async def has_secret(client: RestClient, script: str, name: str) -> bool:
    """Whether the Worker has a secret of this name. What it is, nobody can read."""
    try:
        found = await client.call("GET", f"/workers/scripts/{script}/secrets", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    if not isinstance(found, list):
        raise ProviderError(f"Cloudflare's answer about the secrets of {script} cannot be understood")
    return any(each.get("name") == name for each in found)


async def delete_secret(client: RestClient, script: str, name: str) -> None:
    """Remove the secret; nothing if it is gone, or the whole Worker is."""
    try:
        await client.call("DELETE", f"/workers/scripts/{script}/secrets/{name}", repeatable=True)
    except RestError as error:
        if error.status != _NOT_FOUND:
            raise


class WorkerSecretProvider(ResourceProvider):
    """Thin cover over the functions of this module."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced, altered = changed(_olds, _news, _REPLACING), changed(_olds, _news, ("fingerprint",))
        return DiffResult(changes=bool(replaced or altered), replaces=replaced, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        value = value_of(str(props["name"]))
        calling(str(props["account"]), lambda client: put_secret(client, props, value))
        return CreateResult(f"{props['script']}/{props['name']}", props)

    def update(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> UpdateResult:
        value = value_of(str(_news["name"]))
        calling(str(_news["account"]), lambda client: put_secret(client, _news, value))
        return UpdateResult(_news)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        script, _, name = id_.partition("/")
        found = calling(str(props["account"]), lambda client: has_secret(client, script, name))
        return ReadResult(id_, props) if found else ReadResult(None, {})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        script, _, name = _id.partition("/")
        calling(str(_props["account"]), lambda client: delete_secret(client, script, name))


class WorkerSecret(Resource, module="mempersist", name="WorkerSecret"):
    """A secret by its name and fingerprint; see :func:`fingerprint`."""

    def __init__(
        self,
        name: str,
        *,
        account: str,
        script: str,
        secret: str,
        fingerprint: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"account": account, "script": script, "name": secret, "fingerprint": fingerprint}
        super().__init__(WorkerSecretProvider(), name, props, opts)
