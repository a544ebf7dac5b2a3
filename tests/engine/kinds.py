"""What the Cloudflare provider sends for each type of resource: one request for each operation, as it was measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    """``path`` is below ``/client/v4``."""

    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Kind:
    """A type of resource.

    :param create: the request made of the inputs.
    :param read: of inputs and the object's id; None for a type that cannot be read.
    :param update: of inputs and id; None where every change is a replacement.
    :param delete: of inputs and id; None where the provider sends nothing.
    :param id_field: of the answer to a creation: the object's id. None where the id is known from the inputs.
    :param pulumi_id: the input whose value is the entry's id, where it is not the object's id.
    :param replaces: inputs that cannot be changed in place.
    :param swallowed: inputs whose change is taken for none.
    :param computed: names of outputs in the answer that the state keeps.
    :param seen: inputs that a refresh compares.
    """

    create: Callable[[Values], Request]
    read: Callable[[Values, str], Request] | None
    update: Callable[[Values, str], Request] | None
    delete: Callable[[Values, str], Request] | None
    id_field: str | None = "id"
    pulumi_id: str | None = None
    replaces: frozenset[str] = frozenset({"accountId"})
    swallowed: frozenset[str] = frozenset()
    computed: tuple[str, ...] = ()
    secret: frozenset[str] = frozenset()
    seen: tuple[str, ...] = ()


def snake(value: Any) -> Any:
    """Keys as the API writes them."""
    if isinstance(value, dict):
        return {_snake(key): snake(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [snake(item) for item in value]
    return value


def camel(value: Any) -> Any:
    """Keys as the engine writes them."""
    if isinstance(value, dict):
        return {_camel(key): camel(item) for key, item in value.items()}
    if isinstance(value, list):
        return [camel(item) for item in value]
    return value


def _snake(key: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in key)


def _camel(key: str) -> str:
    first, *others = key.split("_")
    return first + "".join(word.capitalize() for word in others)


def _given(inputs: Values, *names: str) -> dict[str, Any]:
    return {_snake(name): snake(inputs[name]) for name in names if inputs.get(name) is not None}


def _account(inputs: Values) -> str:
    return f"/accounts/{inputs['accountId']}"


def _simple(
    collection: str,
    names: tuple[str, ...],
    *,
    id_field: str = "id",
    replaces: frozenset[str] = frozenset(),
    seen: tuple[str, ...] = (),
    computed: tuple[str, ...] = (),
    secret: frozenset[str] = frozenset(),
    zone: bool = False,
) -> Kind:
    """POST to a collection, then GET, PUT and DELETE of its member."""

    def base(inputs: Values) -> str:
        return (f"/zones/{inputs['zoneId']}" if zone else _account(inputs)) + collection.format(**inputs)

    return Kind(
        create=lambda inputs: Request("POST", base(inputs), _given(inputs, *names)),
        read=lambda inputs, name: Request("GET", f"{base(inputs)}/{name}"),
        update=lambda inputs, name: Request("PUT", f"{base(inputs)}/{name}", _given(inputs, *names)),
        delete=lambda inputs, name: Request("DELETE", f"{base(inputs)}/{name}"),
        id_field=id_field,
        replaces=frozenset({"zoneId" if zone else "accountId"}) | replaces,
        seen=seen,
        computed=(id_field, *computed),
        secret=secret,
    )


def _bucket_headers(inputs: Values) -> dict[str, str]:
    return {"cf-r2-jurisdiction": inputs.get("jurisdiction") or "default"}


def _bucket_part(part: str) -> Kind:
    """Configuration of a bucket that is put whole and never deleted."""

    def path(inputs: Values) -> str:
        return f"{_account(inputs)}/r2/buckets/{inputs['bucketName']}/{part}"

    def put(inputs: Values, _: str = "") -> Request:
        return Request("PUT", path(inputs), {"rules": inputs.get("rules") or []}, _bucket_headers(inputs))

    return Kind(
        create=put,
        read=lambda inputs, _: Request("GET", path(inputs), None, _bucket_headers(inputs)),
        update=put,
        delete=None,
        id_field=None,
        pulumi_id="accountId",
        replaces=frozenset({"accountId", "bucketName"}),
        seen=("rules",),
    )


def _bucket() -> Kind:
    def create(inputs: Values) -> Request:
        body = {"name": inputs["name"], "storageClass": inputs.get("storageClass") or "Standard"}
        if inputs.get("location"):
            body["locationHint"] = inputs["location"]
        return Request("POST", f"{_account(inputs)}/r2/buckets", body, _bucket_headers(inputs))

    def member(method: str) -> Callable[[Values, str], Request]:
        return lambda inputs, name: Request(
            method, f"{_account(inputs)}/r2/buckets/{name}", None, _bucket_headers(inputs)
        )

    def update(inputs: Values, name: str) -> Request:
        headers = {**_bucket_headers(inputs), "cf-r2-storage-class": inputs.get("storageClass") or "Standard"}
        return Request("PATCH", f"{_account(inputs)}/r2/buckets/{name}", None, headers)

    return Kind(
        create=create,
        read=member("GET"),
        update=update,
        delete=member("DELETE"),
        id_field="name",
        replaces=frozenset({"accountId", "name"}),
        swallowed=frozenset({"location"}),
        seen=("storageClass",),
    )


def _deployment() -> Kind:
    def path(inputs: Values) -> str:
        return f"{_account(inputs)}/workers/scripts/{inputs['scriptName']}/deployments"

    def create(inputs: Values) -> Request:
        return Request("POST", path(inputs), _given(inputs, "strategy", "versions", "annotations"))

    return Kind(
        create=create,
        read=lambda inputs, name: Request("GET", f"{path(inputs)}/{name}"),
        update=None,
        delete=None,
    )


def _schedules() -> Kind:
    def path(inputs: Values) -> str:
        return f"{_account(inputs)}/workers/scripts/{inputs['scriptName']}/schedules"

    def put(inputs: Values, _: str = "") -> Request:
        return Request("PUT", path(inputs), [{"cron": each["cron"]} for each in inputs["schedules"]])

    return Kind(
        create=put,
        read=lambda inputs, _: Request("GET", path(inputs)),
        update=put,
        delete=None,
        id_field=None,
        pulumi_id="scriptName",
        replaces=frozenset({"accountId", "scriptName"}),
    )


def _subdomain() -> Kind:
    def path(inputs: Values) -> str:
        return f"{_account(inputs)}/workers/scripts/{inputs['scriptName']}/subdomain"

    def post(inputs: Values, _: str = "") -> Request:
        return Request("POST", path(inputs), _given(inputs, "enabled", "previewsEnabled"))

    return Kind(
        create=post,
        read=lambda inputs, _: Request("GET", path(inputs)),
        update=post,
        delete=lambda inputs, _: Request("DELETE", path(inputs)),
        id_field=None,
        pulumi_id="accountId",
        replaces=frozenset({"accountId", "scriptName"}),
        seen=("enabled", "previewsEnabled"),
    )


def _domain() -> Kind:
    def base(inputs: Values) -> str:
        return f"{_account(inputs)}/workers/domains"

    def put(inputs: Values, _: str = "") -> Request:
        return Request("PUT", base(inputs), _given(inputs, "hostname", "service", "zoneId", "environment"))

    return Kind(
        create=put,
        read=lambda inputs, name: Request("GET", f"{base(inputs)}/{name}"),
        update=put,
        delete=lambda inputs, name: Request("DELETE", f"{base(inputs)}/{name}"),
        replaces=frozenset({"accountId", "hostname", "service"}),
        seen=("hostname", "service", "zoneId"),
    )


def _token() -> Kind:
    simple = _simple(
        "/tokens", ("name", "policies", "condition", "expiresOn", "notBefore"), seen=("name",), computed=("value",)
    )

    def with_resources(request: Request) -> Request:
        policies = [
            {**each, "resources": json.loads(each["resources"])} for each in (request.body or {}).get("policies", [])
        ]
        return Request(request.method, request.path, {**request.body, "policies": policies}, request.headers)

    update = simple.update
    assert update is not None
    return Kind(
        create=lambda inputs: with_resources(simple.create(inputs)),
        read=simple.read,
        update=lambda inputs, name: with_resources(update(inputs, name)),
        delete=simple.delete,
        computed=("id", "value"),
        secret=frozenset({"value"}),
        seen=("name",),
    )


_D1: Final = ("name", "primaryLocationHint", "jurisdiction", "readReplication")
_WORKER: Final = ("name", "observability", "logpush", "subdomain", "tags", "tailConsumers")
_RULESET: Final = ("kind", "name", "phase", "description", "rules")

KINDS: Final[Mapping[str, Kind]] = {
    "cloudflare:index/r2Bucket:R2Bucket": _bucket(),
    "cloudflare:index/r2BucketLock:R2BucketLock": _bucket_part("lock"),
    "cloudflare:index/r2BucketLifecycle:R2BucketLifecycle": _bucket_part("lifecycle"),
    "cloudflare:index/d1Database:D1Database": _simple(
        "/d1/database",
        _D1,
        id_field="uuid",
        replaces=frozenset({"name", "primaryLocationHint", "jurisdiction"}),
        seen=("readReplication",),
    ),
    "cloudflare:index/queue:Queue": _simple(
        "/queues", ("queueName", "settings"), id_field="queue_id", seen=("queueName", "settings")
    ),
    "cloudflare:index/queueConsumer:QueueConsumer": _simple(
        "/queues/{queueId}/consumers",
        ("type", "scriptName", "deadLetterQueue", "settings"),
        id_field="consumer_id",
        replaces=frozenset({"queueId"}),
        seen=("settings",),
    ),
    "cloudflare:index/worker:Worker": _simple(
        "/workers/workers", _WORKER, seen=("name", "observability", "subdomain", "logpush")
    ),
    "cloudflare:index/workersDeployment:WorkersDeployment": _deployment(),
    "cloudflare:index/workersCronTrigger:WorkersCronTrigger": _schedules(),
    "cloudflare:index/workersScriptSubdomain:WorkersScriptSubdomain": _subdomain(),
    "cloudflare:index/workersCustomDomain:WorkersCustomDomain": _domain(),
    "cloudflare:index/ruleset:Ruleset": _simple("/rulesets", _RULESET, zone=True, seen=("name", "rules")),
    "cloudflare:index/accountToken:AccountToken": _token(),
    "cloudflare:index/emailSendingSubdomain:EmailSendingSubdomain": _simple(
        "/email/sending/subdomains", ("name",), zone=True, replaces=frozenset({"name"}), seen=("name",)
    ),
}
"""By the token that the SDK registers a resource with."""
