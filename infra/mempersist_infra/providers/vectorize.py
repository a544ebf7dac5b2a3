"""Vectorize: indexes and their metadata indexes.

An index cannot be changed, so every change replaces it, the old one first. Its description says whose it is: a creation
that finds the name taken by an index of the same deployment and shape takes it over, as after a crash, and refuses any
other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import pulumi
from pulumi.dynamic import CreateResult, DiffResult, ReadResult, Resource, ResourceProvider

from mempersist_infra.providers.calls import ProviderError, calling, changed
from mempersist_ops.stores.remote.rest import RestClient, RestError

_NOT_FOUND: Final = 404
_INDEXES: Final = "/vectorize/v2/indexes"
_SHAPE: Final = ("account", "name", "dimensions", "metric", "owner")
_METADATA: Final = ("account", "index", "property", "type")
_LOOK_AGAIN_SECONDS: Final = 2.0
_LOOKS: Final = 90
"""Three minutes: a mutation takes seconds, and some ten of them when the service is busy."""

Sleep = Callable[[float], Awaitable[None]]


async def create_index(client: RestClient, props: Mapping[str, Any]) -> None:
    """Make the index, or take over this deployment's own. :raises ProviderError: if the name is somebody else's."""
    name = str(props["name"])
    found = await find_index(client, name)
    if found is None:
        config = {"dimensions": int(props["dimensions"]), "metric": str(props["metric"])}
        body = {"name": name, "description": str(props["owner"]), "config": config}
        made = await client.call("POST", _INDEXES, body=body, repeatable=False)
        if not isinstance(made, dict) or made.get("name") != name:
            raise ProviderError(f"Cloudflare did not say that it made the index {name}; run the same command again")
        return
    if found.get("description") != props["owner"]:
        raise ProviderError(f"there is a vector index {name} that is not this deployment's; delete or rename that one")
    shape = found.get("config") or {}
    if (shape.get("dimensions"), shape.get("metric")) != (int(props["dimensions"]), props["metric"]):
        raise ProviderError(f"the vector index {name} has another shape; name another generation in the settings")


async def find_index(client: RestClient, name: str) -> dict[str, Any] | None:
    """What Cloudflare says of the index; None where there is none."""
    try:
        found = await client.call("GET", f"{_INDEXES}/{name}", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return None
        raise
    if not isinstance(found, dict) or found.get("name") != name:
        raise ProviderError(f"Cloudflare's answer about the vector index {name} cannot be understood")
    return found


async def delete_index(client: RestClient, name: str) -> None:
    """Delete the index with all its vectors; nothing if it is gone."""
    try:
        await client.call("DELETE", f"{_INDEXES}/{name}", repeatable=True)
    except RestError as error:
        if error.status != _NOT_FOUND:
            raise


async def create_metadata_index(client: RestClient, props: Mapping[str, Any], sleep: Sleep = asyncio.sleep) -> None:
    """Make a metadata index and wait until it is there.

    :raises ProviderError: if the index holds vectors, which would not be found by it, or it does not come.
    """
    path, name = f"{_INDEXES}/{props['index']}", str(props["property"])
    if name in await metadata_indexes(client, str(props["index"])):
        return
    info = await client.call("GET", f"{path}/info", repeatable=True)
    if not isinstance(info, dict) or int(info.get("vectorCount", -1)) != 0:
        raise ProviderError(
            f"the vector index {props['index']} holds vectors already, and those would not be found by {name};"
            " set a new generation in the settings and reindex into it"
        )
    body = {"propertyName": name, "indexType": str(props["type"])}
    await client.call("POST", f"{path}/metadata_index/create", body=body, repeatable=True)
    for _ in range(_LOOKS):
        if name in await metadata_indexes(client, str(props["index"])):
            return
        await sleep(_LOOK_AGAIN_SECONDS)
    raise ProviderError(f"the metadata index {name} of {props['index']} has not come yet; run the same command again")


async def metadata_indexes(client: RestClient, index: str) -> frozenset[str]:
    """Names of the properties that an index's metadata indexes cover; none where there is no such index."""
    try:
        found = await client.call("GET", f"{_INDEXES}/{index}/metadata_index/list", repeatable=True)
    except RestError as error:
        if error.status == _NOT_FOUND:
            return frozenset()
        raise
    if not isinstance(found, dict):
        raise ProviderError(f"Cloudflare's answer about the metadata indexes of {index} cannot be understood")
    return frozenset(str(each["propertyName"]) for each in found.get("metadataIndexes") or ())


async def delete_metadata_index(client: RestClient, index: str, name: str) -> None:
    """Delete a metadata index; nothing if it is gone, or the whole index is."""
    if name in await metadata_indexes(client, index):
        path = f"{_INDEXES}/{index}/metadata_index/delete"
        await client.call("POST", path, body={"propertyName": name}, repeatable=True)


class VectorizeIndexProvider(ResourceProvider):
    """Thin cover over the functions of this module."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced = changed(_olds, _news, _SHAPE)
        return DiffResult(changes=bool(replaced), replaces=replaced, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        calling(str(props["account"]), lambda client: create_index(client, props))
        return CreateResult(str(props["name"]), props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        account, _, name = id_.rpartition("/")
        account = account or str(props["account"])
        found = calling(account, lambda client: find_index(client, name))
        if found is None:
            return ReadResult(None, {})
        config = found.get("config") or {}
        seen = {"name": name, "dimensions": config.get("dimensions"), "metric": config.get("metric")}
        return ReadResult(name, {**props, "account": account, **seen, "owner": found.get("description", "")})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        calling(str(_props["account"]), lambda client: delete_index(client, _id))


class VectorizeMetadataIndexProvider(ResourceProvider):
    """Thin cover over the functions of this module."""

    serialize_as_secret_always = False

    def diff(self, _id: str, _olds: dict[str, Any], _news: dict[str, Any]) -> DiffResult:
        replaced = changed(_olds, _news, _METADATA)
        return DiffResult(changes=bool(replaced), replaces=replaced, delete_before_replace=True)

    def create(self, props: dict[str, Any]) -> CreateResult:
        calling(str(props["account"]), lambda client: create_metadata_index(client, props))
        return CreateResult(f"{props['index']}/{props['property']}", props)

    def read(self, id_: str, props: dict[str, Any]) -> ReadResult:
        index, _, name = id_.rpartition("/")
        found = calling(str(props["account"]), lambda client: metadata_indexes(client, index))
        return ReadResult(id_, props) if name in found else ReadResult(None, {})

    def delete(self, _id: str, _props: dict[str, Any]) -> None:
        index, name = str(_props["index"]), str(_props["property"])
        calling(str(_props["account"]), lambda client: delete_metadata_index(client, index, name))


class VectorizeIndex(Resource, module="mempersist", name="VectorizeIndex"):
    """An index. ``owner`` is the mark of the deployment. To import one, name it as account id, slash, name."""

    def __init__(
        self,
        name: str,
        *,
        account: str,
        index: str,
        dimensions: int,
        metric: str,
        owner: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"account": account, "name": index, "dimensions": dimensions, "metric": metric, "owner": owner}
        super().__init__(VectorizeIndexProvider(), name, props, opts)


class VectorizeMetadataIndex(Resource, module="mempersist", name="VectorizeMetadataIndex"):
    """A property of vectors' metadata by which they can be filtered. ``type`` is string, number or boolean."""

    def __init__(
        self,
        name: str,
        *,
        account: str,
        index: str,
        property_name: str,
        value_type: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        props = {"account": account, "index": index, "property": property_name, "type": value_type}
        super().__init__(VectorizeMetadataIndexProvider(), name, props, opts)
