"""The Worker's code: an upload that becomes a version, apart from the deployment that puts it to use.

The resource holds the bundle's digest in place of its bytes. Whoever approves it approves that digest, the state stays
small, and the upload is refused unless the sources still give the same bundle. Secrets that the Worker has are carried
over to the new version, by name alone.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider

from mempersist_infra.providers.calls import ProviderError, calling, changed, whole
from mempersist_ops.bundle import Bundle, build, find_sources
from mempersist_ops.bundle.modules import COMPATIBILITY_DATE, COMPATIBILITY_FLAGS, MAIN
from mempersist_ops.gates.changes import digest_of
from mempersist_ops.stores.remote.rest import RestClient, RestError

_NOT_FOUND: Final = 404
_REPLACING: Final = ("account", "worker_id", "script", "bundle", "bindings")
_TAG_CHARS: Final = 24
_PAGE: Final = 100


def current_bundle() -> Bundle:
    """The bundle that the sources give now."""
    root = Path(__file__).resolve().parents[3]
    return build(find_sources(), root / ".cache" / "worker" / "wheels")


def tag_of(props: Mapping[str, Any]) -> str:
    """What a version is known by: its code, bindings and runtime."""
    parts = [props["bundle"], whole(props["bindings"]), COMPATIBILITY_DATE, list(COMPATIBILITY_FLAGS)]
    return digest_of(parts)[:_TAG_CHARS]


async def upload(client: RestClient, props: Mapping[str, Any], bundle: Bundle) -> dict[str, Any]:
    """A version of the Worker with this bundle: the newest one if it is that already, as after a crash; else a new one.

    :raises ProviderError: if the sources have changed since the digest was taken, or Cloudflare names no version.
    """
    if bundle.digest != props["bundle"]:
        raise ProviderError("the Worker's sources have changed since the preview; run the preview again")
    tag, path = tag_of(props), f"/workers/workers/{props['worker_id']}/versions"
    newest = await client.call("GET", path, query={"per_page": str(_PAGE)}, repeatable=True)
    for version in newest[:1] if isinstance(newest, list) else []:
        if (version.get("annotations") or {}).get("workers/tag") == tag:
            return {"version_id": version["id"], "tag": tag}
    kept = [{"type": "inherit", "name": name} for name in await _secrets(client, str(props["script"]))]
    body = {
        "main_module": MAIN,
        "modules": [
            {
                "name": module.name,
                "content_type": module.type,
                "content_base64": base64.b64encode(module.data).decode(),
            }
            for module in bundle.modules
        ],
        "bindings": sorted([*whole(props["bindings"]), *kept], key=lambda each: str(each["name"])),
        "compatibility_date": COMPATIBILITY_DATE,
        "compatibility_flags": list(COMPATIBILITY_FLAGS),
        "annotations": {"workers/tag": tag, "workers/message": f"bundle {bundle.digest}"},
        "usage_model": "standard",
    }
    made = await client.call("POST", path, body=body, repeatable=False)
    if not isinstance(made, dict) or not made.get("id"):
        raise ProviderError("Cloudflare took the upload without naming a version; run the same command again")
    return {"version_id": str(made["id"]), "tag": tag}


async def there(client: RestClient, worker_id: str, version: str) -> bool:
    """Whether the version still exists."""
    try:
        await client.call("GET", f"/workers/workers/{worker_id}/versions/{version}", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return False
        raise
    return True


async def _secrets(client: RestClient, script: str) -> list[str]:
    try:
        found = await client.call("GET", f"/workers/scripts/{script}/secrets", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return []
        raise
    return sorted(str(each["name"]) for each in found or ())


class WorkerVersionProvider(ResourceProvider):
    """A version never changes: every change makes another one. Its deletion does nothing, as versions are kept."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced = changed(_olds, _news, _REPLACING)
        return DiffResult(changes=bool(replaced), replaces=replaced, delete_before_replace=False)

    def create(self, props: dict[str, Any]) -> CreateResult:
        bundle = current_bundle()
        made = calling(str(props["account"]), lambda client: upload(client, props, bundle))
        return CreateResult(made["version_id"], {**props, **made})

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        found = calling(str(props["account"]), lambda client: there(client, str(props["worker_id"]), id_))
        return ReadResult(id_, props) if found else ReadResult(None, {})


class WorkerVersion(Resource, module="mempersist", name="WorkerVersion"):
    """The Worker's code.

    :ivar version_id: what a deployment names.
    """

    version_id: pulumi.Output[str]
    tag: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        *,
        account: str,
        worker_id: pulumi.Input[str],
        script: str,
        bundle: str,
        bindings: list[dict[str, Any]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {
            "account": account,
            "worker_id": worker_id,
            "script": script,
            "bundle": bundle,
            "bindings": bindings,
            "version_id": None,
            "tag": None,
        }
        super().__init__(WorkerVersionProvider(), name, props, opts)
