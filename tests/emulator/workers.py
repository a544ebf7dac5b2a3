"""Workers: scripts, their versions and deployments, schedules, secrets and names under workers.dev."""

from __future__ import annotations

import base64
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mempersist import timestamps
from mempersist.ports import Clock
from tests.emulator.routing import Call, Route
from tests.emulator.wire import ApiError, Result, page_of

_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}")
_CRON = re.compile(r"\S+( \S+){4}")
_SECRET_KINDS = ("secret_text", "secret_key")
Exists = Callable[[str, Mapping[str, Any]], bool]
"""Whether the target of a binding exists, given the account and the binding."""


@dataclass(slots=True)
class Version:
    """``modules`` holds each part's media type and contents."""

    id: str
    number: int
    created: str
    body: dict[str, Any]
    modules: dict[str, tuple[str, bytes]]
    secrets: dict[str, str]


@dataclass(slots=True)
class Script:
    """A Worker. ``deployed`` is the version that serves; the newest deployment is the last."""

    id: str
    name: str
    about: dict[str, Any]
    versions: list[Version] = field(default_factory=list)
    deployments: list[dict[str, Any]] = field(default_factory=list)
    schedules: list[dict[str, Any]] = field(default_factory=list)
    subdomain: dict[str, Any] = field(default_factory=lambda: {"enabled": False, "previews_enabled": False})

    @property
    def deployed(self) -> Version | None:
        """The version that serves all requests, or most of them."""
        if not self.deployments:
            return None
        chosen = max(self.deployments[-1]["versions"], key=lambda each: each["percentage"])
        return next(version for version in self.versions if version.id == chosen["version_id"])


class Workers:
    """The Workers of every account."""

    def __init__(self, clock: Clock, exists: Exists, in_use: Callable[[str, str], bool]) -> None:
        self._clock, self._exists, self._in_use = clock, exists, in_use
        self.scripts: dict[tuple[str, str], Script] = {}

    def routes(self) -> list[Route]:
        product, script = "Workers Scripts", "/workers/scripts/{name}"
        worker = "/workers/workers/{worker_id}"
        return [
            Route("POST", "/workers/workers", product, "Write", self._create),
            Route("GET", "/workers/workers", product, "Read", self._list),
            Route("GET", worker, product, "Read", self._get),
            Route("PUT", worker, product, "Write", self._update),
            Route("DELETE", worker, product, "Write", self._delete_worker),
            Route("POST", f"{worker}/versions", product, "Write", self._upload),
            Route("GET", f"{worker}/versions", product, "Read", self._versions),
            Route("GET", f"{worker}/versions/{{version_id}}", product, "Read", self._version),
            Route("DELETE", script, product, "Write", self._delete_script),
            Route("POST", f"{script}/deployments", product, "Write", self._deploy),
            Route("GET", f"{script}/deployments", product, "Read", self._deployments),
            Route("GET", f"{script}/deployments/{{deployment_id}}", product, "Read", self._deployment),
            Route("GET", f"{script}/schedules", product, "Read", self._get_schedules),
            Route("PUT", f"{script}/schedules", product, "Write", self._put_schedules),
            Route("GET", f"{script}/secrets", product, "Read", self._secrets),
            Route("PUT", f"{script}/secrets", product, "Write", self._put_secret),
            Route("DELETE", f"{script}/secrets/{{secret}}", product, "Write", self._delete_secret),
            Route("GET", f"{script}/subdomain", product, "Read", self._get_subdomain),
            Route("POST", f"{script}/subdomain", product, "Write", self._put_subdomain),
            Route("DELETE", f"{script}/subdomain", product, "Write", self._delete_subdomain),
        ]

    def named(self, account: str, name: str) -> Script:
        """:raises ApiError: 10007"""
        script = self.scripts.get((account, name))
        if script is None:
            raise ApiError(404, 10007, "This Worker does not exist on your account.")
        return script

    async def _create(self, call: Call) -> Result:
        given = call.request.json_object()
        name = str(given.get("name", ""))
        if not _NAME.fullmatch(name):
            raise ApiError(400, 10016, "Invalid Worker name.")
        if (call.account, name) in self.scripts:
            raise ApiError(409, 10040, "A Worker with this name already exists.", {"x-should-retry": "false"})
        now = self._now()
        about = {
            "logpush": False,
            "observability": {"enabled": False},
            "tags": [],
            "tail_consumers": [],
            **given,
            "created_on": now,
            "updated_on": now,
        }
        script = Script(uuid.uuid4().hex, name, about)
        script.subdomain.update(given.get("subdomain") or {})
        self.scripts[call.account, name] = script
        return Result(self._about(script))

    async def _list(self, call: Call) -> Result:
        found = [script for (account, _), script in sorted(self.scripts.items()) if account == call.account]
        return page_of([self._about(script) for script in found], call.request, per_page=20, most=100)

    async def _get(self, call: Call, worker_id: str) -> Result:
        return Result(self._about(self._by_id(call, worker_id)))

    async def _update(self, call: Call, worker_id: str) -> Result:
        script, given = self._by_id(call, worker_id), call.request.json_object()
        name = str(given.get("name", script.name))
        if name != script.name:
            if (call.account, name) in self.scripts:
                raise ApiError(409, 10040, "A Worker with this name already exists.", {"x-should-retry": "false"})
            del self.scripts[call.account, script.name]
            script.name = name
            self.scripts[call.account, name] = script
        script.about = {**script.about, **given, "updated_on": self._now()}
        script.subdomain.update(given.get("subdomain") or {})
        return Result(self._about(script))

    async def _delete_worker(self, call: Call, worker_id: str) -> Result:
        return self._delete(call, self._by_id(call, worker_id))

    async def _delete_script(self, call: Call, name: str) -> Result:
        return self._delete(call, self.named(call.account, name))

    def _delete(self, call: Call, script: Script) -> Result:
        if self._in_use(call.account, script.name) and call.request.arguments.get("force") != "true":
            raise ApiError(400, 10064, "This Worker is a consumer of a queue. Remove the consumer first.")
        del self.scripts[call.account, script.name]
        return Result({"id": script.id})

    async def _upload(self, call: Call, worker_id: str) -> Result:
        script, given = self._by_id(call, worker_id), call.request.json_object(10021)
        modules = {
            str(each["name"]): (str(each["content_type"]), base64.b64decode(each["content_base64"]))
            for each in given.get("modules") or ()
        }
        if given.get("main_module") not in modules:
            raise ApiError(400, 10021, "The main module is not among the modules.")
        return Result(self._shown(script, self.add(call.account, script, given, modules)))

    def add(
        self, account: str, script: Script, given: Mapping[str, Any], modules: dict[str, tuple[str, bytes]]
    ) -> Version:
        """A version of the script. What its bindings inherit comes from the newest version; what is not there is
        dropped. :raises ApiError: 10021 for a binding without a target."""
        newest = script.versions[-1] if script.versions else None
        old = {each["name"]: each for each in (newest.body["bindings"] if newest else ())}
        bindings: list[dict[str, Any]] = []
        secrets: dict[str, str] = {}
        for each in given.get("bindings") or ():
            name, kind = str(each["name"]), each["type"]
            if kind == "inherit":
                if newest is not None and name in newest.secrets:
                    secrets[name] = newest.secrets[name]
                elif name in old:
                    bindings.append(old[name])
            elif kind in _SECRET_KINDS:
                secrets[name] = str(each.get("text", ""))
            elif not self._exists(account, each):
                raise ApiError(400, 10021, f"The target of the binding {name} of type {kind} does not exist.")
            else:
                bindings.append(dict(each))
        bindings.sort(key=lambda each: str(each["name"]))
        body = {key: value for key, value in given.items() if key not in {"modules", "bindings"}}
        version = Version(
            str(uuid.uuid4()),
            (newest.number if newest else 0) + 1,
            self._now(),
            {**body, "bindings": bindings},
            modules,
            secrets,
        )
        script.versions.append(version)
        return version

    async def _versions(self, call: Call, worker_id: str) -> Result:
        script = self._by_id(call, worker_id)
        shown = [self._shown(script, version) for version in reversed(script.versions)]
        return page_of(shown, call.request, per_page=10, most=100)

    async def _version(self, call: Call, worker_id: str, version_id: str) -> Result:
        script = self._by_id(call, worker_id)
        for version in script.versions:
            if version.id == version_id:
                return Result(self._shown(script, version, modules=call.request.arguments.get("include") == "modules"))
        raise ApiError(404, 100146, "This version does not exist.")

    async def _deploy(self, call: Call, name: str) -> Result:
        script, given = self.named(call.account, name), call.request.json_object()
        versions = given.get("versions") or []
        known = {version.id for version in script.versions}
        if given.get("strategy") != "percentage" or not 1 <= len(versions) <= 2:
            raise ApiError(400, 10222, "A deployment names one or two versions by percentage.")
        if any(each.get("version_id") not in known for each in versions):
            raise ApiError(404, 100146, "This version does not exist.")
        if sum(each.get("percentage", 0) for each in versions) != 100:
            raise ApiError(400, 10222, "The percentages must sum up to 100.")
        return Result(self.deploy(script, versions, given.get("annotations")))

    def deploy(self, script: Script, versions: list[dict[str, Any]], annotations: Any = None) -> dict[str, Any]:
        """Put versions to use."""
        deployment = {
            "id": str(uuid.uuid4()),
            "created_on": self._now(),
            "source": "api",
            "strategy": "percentage",
            "author_email": "operator@example.com",
            "annotations": annotations or {},
            "versions": versions,
        }
        script.deployments.append(deployment)
        return deployment

    async def _deployments(self, call: Call, name: str) -> Result:
        return Result({"deployments": list(reversed(self.named(call.account, name).deployments))})

    async def _deployment(self, call: Call, name: str, deployment_id: str) -> Result:
        for deployment in self.named(call.account, name).deployments:
            if deployment["id"] == deployment_id:
                return Result(deployment)
        raise ApiError(404, 10336, "This deployment does not exist.")

    async def _get_schedules(self, call: Call, name: str) -> Result:
        return Result({"schedules": self.named(call.account, name).schedules})

    async def _put_schedules(self, call: Call, name: str) -> Result:
        script, given = self.named(call.account, name), call.request.json()
        if not isinstance(given, list) or not all(_CRON.fullmatch(str(each.get("cron"))) for each in given):
            raise ApiError(400, 10100, "Invalid cron expression.")
        now = self._now()
        script.schedules = [{"cron": each["cron"], "created_on": now, "modified_on": now} for each in given]
        return Result({"schedules": script.schedules})

    async def _secrets(self, call: Call, name: str) -> Result:
        script = self.named(call.account, name)
        newest = script.versions[-1].secrets if script.versions else {}
        return Result([{"name": each, "type": "secret_text"} for each in sorted(newest)])

    async def _put_secret(self, call: Call, name: str) -> Result:
        """A new version like the newest but for the secret, deployed at once."""
        script, given = self.named(call.account, name), call.request.json_object()
        newest = self._deployed_newest(script)
        secret, text = given.get("name"), given.get("text")
        if not isinstance(secret, str) or not secret or not isinstance(text, str):
            raise ApiError(400, 10021, "A secret needs a name and a text.")
        self._altered(script, newest, {**newest.secrets, secret: text})
        return Result({"name": secret, "type": "secret_text"})

    async def _delete_secret(self, call: Call, name: str, secret: str) -> Result:
        script = self.named(call.account, name)
        newest = self._deployed_newest(script)
        if secret not in newest.secrets:
            raise ApiError(404, 10056, "This secret does not exist.")
        self._altered(script, newest, {key: text for key, text in newest.secrets.items() if key != secret})
        return Result(None)

    def _deployed_newest(self, script: Script) -> Version:
        if not script.versions or script.deployed is not script.versions[-1]:
            words = "Secret edit failed. You attempted to modify a secret, but the latest version isn't deployed."
            raise ApiError(400, 10215, words)
        return script.versions[-1]

    def _altered(self, script: Script, version: Version, secrets: dict[str, str]) -> None:
        body = {**version.body, "annotations": {"workers/triggered_by": "secret"}}
        made = Version(str(uuid.uuid4()), version.number + 1, self._now(), body, version.modules, secrets)
        script.versions.append(made)
        annotations = {"workers/triggered_by": "secret"}
        self.deploy(script, [{"version_id": made.id, "percentage": 100}], annotations)

    async def _get_subdomain(self, call: Call, name: str) -> Result:
        return Result(self.named(call.account, name).subdomain)

    async def _put_subdomain(self, call: Call, name: str) -> Result:
        script, given = self.named(call.account, name), call.request.json_object()
        for key in ("enabled", "previews_enabled"):
            if key in given:
                script.subdomain[key] = bool(given[key])
        return Result(script.subdomain)

    async def _delete_subdomain(self, call: Call, name: str) -> Result:
        script = self.named(call.account, name)
        script.subdomain.update(enabled=False, previews_enabled=False)
        return Result(script.subdomain)

    def _by_id(self, call: Call, worker_id: str) -> Script:
        for (account, _), script in self.scripts.items():
            if account == call.account and worker_id in {script.id, script.name}:
                return script
        raise ApiError(404, 10007, "This Worker does not exist on your account.")

    def _about(self, script: Script) -> dict[str, Any]:
        return {**script.about, "id": script.id, "name": script.name, "subdomain": script.subdomain}

    def _shown(self, script: Script, version: Version, *, modules: bool = False) -> dict[str, Any]:
        secrets = [{"type": "secret_text", "name": name} for name in version.secrets]
        shown = {
            **version.body,
            "id": version.id,
            "number": version.number,
            "created_on": version.created,
            "source": "api",
            "urls": [],
            "bindings": sorted([*version.body["bindings"], *secrets], key=lambda each: str(each["name"])),
        }
        if modules:
            shown["modules"] = [
                {"name": name, "content_type": kind, "content_base64": base64.b64encode(data).decode()}
                for name, (kind, data) in version.modules.items()
            ]
        return shown

    def _now(self) -> str:
        return timestamps.from_ms(self._clock.now_ms())
