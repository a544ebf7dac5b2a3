"""One change to a deployment, and the gate that it has to pass."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, Final, Literal

Operation = Literal["create", "update", "delete", "run"]
Leaves = Mapping[str, str | None]
"""Values by their path, such as ``rules/0/prefix``, as JSON text; a long one as ``sha256:…``, a secret as ``hmac:…``,
one that is not known yet as None."""

LONGEST_SHOWN_CHARS: Final = 200


class Gate(StrEnum):
    """What a person approves apart from the rest."""

    PROVISION = "PROVISION"
    SECRETS = "SECRETS"
    MIGRATE = "MIGRATE"
    DEPLOY = "DEPLOY"
    DATA = "DATA"
    DESTROY = "DESTROY"


class GateError(Exception):
    """A change, plan or ledger cannot be understood or trusted. The message says which and what to do."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose deployment is meant. ``backend`` is where its state is kept, as a URL."""

    account: str
    project: str
    stack: str
    backend: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of resource: its gate, the inputs that name the object in Cloudflare, and the word for it."""

    gate: Gate
    key: tuple[str, ...]
    word: str


_OWN: Final = "pulumi-python:dynamic/mempersist"
KINDS: Final[Mapping[str, Kind]] = {
    "cloudflare:index/r2Bucket:R2Bucket": Kind(Gate.PROVISION, ("name",), "R2 bucket"),
    "cloudflare:index/r2BucketLock:R2BucketLock": Kind(Gate.PROVISION, ("bucketName",), "locks of R2 bucket"),
    "cloudflare:index/r2BucketLifecycle:R2BucketLifecycle": Kind(
        Gate.PROVISION, ("bucketName",), "lifecycle of R2 bucket"
    ),
    "cloudflare:index/d1Database:D1Database": Kind(Gate.PROVISION, ("name",), "D1 database"),
    "cloudflare:index/queue:Queue": Kind(Gate.PROVISION, ("queueName",), "queue"),
    "cloudflare:index/worker:Worker": Kind(Gate.PROVISION, ("name",), "Worker"),
    "cloudflare:index/workersDeployment:WorkersDeployment": Kind(Gate.DEPLOY, ("scriptName",), "deployment of Worker"),
    "cloudflare:index/workersCronTrigger:WorkersCronTrigger": Kind(Gate.DEPLOY, ("scriptName",), "schedule of Worker"),
    "cloudflare:index/workersScriptSubdomain:WorkersScriptSubdomain": Kind(
        Gate.DEPLOY, ("scriptName",), "workers.dev name of Worker"
    ),
    "cloudflare:index/workersCustomDomain:WorkersCustomDomain": Kind(Gate.DEPLOY, ("hostname",), "domain"),
    "cloudflare:index/ruleset:Ruleset": Kind(Gate.PROVISION, ("zoneId", "phase"), "firewall rules of zone"),
    "cloudflare:index/accountToken:AccountToken": Kind(Gate.SECRETS, ("name",), "API token"),
    "cloudflare:index/emailSendingSubdomain:EmailSendingSubdomain": Kind(Gate.PROVISION, ("name",), "sending domain"),
    f"{_OWN}:VectorizeIndex": Kind(Gate.PROVISION, ("name",), "vector index"),
    f"{_OWN}:VectorizeMetadataIndex": Kind(Gate.PROVISION, ("index", "property"), "metadata index"),
    f"{_OWN}:QueueConsumer": Kind(Gate.DEPLOY, ("queue", "script"), "consumer of queue"),
    f"{_OWN}:WorkerVersion": Kind(Gate.DEPLOY, ("script",), "code of Worker"),
    f"{_OWN}:WorkerSecret": Kind(Gate.SECRETS, ("script", "name"), "secret of Worker"),
    f"{_OWN}:D1Migrations": Kind(Gate.MIGRATE, ("database_name",), "migrations of D1 database"),
}
"""Every type that a deployment may hold. What is not here is refused."""

JOB: Final = "mempersist:job"
_VERBS: Final[Mapping[Operation, str]] = {"create": "create", "update": "change", "delete": "DELETE", "run": "run"}


@dataclass(frozen=True, slots=True)
class Change:
    """One operation on one object.

    :param target: the resource's URN, or ``job:`` and the name of an operator's job.
    :param natural_key: the object's name in Cloudflare.
    :param inputs: what is to be; empty for a deletion.
    :param before: what was; empty for a creation.
    """

    target: str
    type: str
    operation: Operation
    gate: Gate
    natural_key: str
    inputs: Leaves
    before: Leaves

    @property
    def words(self) -> str:
        """What it does, in a line."""
        word = KINDS[self.type].word if self.type in KINDS else "job"
        return f"{_VERBS[self.operation]} {word} {self.natural_key}"

    @property
    def changed(self) -> tuple[str, ...]:
        """Paths whose value is not what it was, sorted."""
        paths = sorted(self.inputs.keys() | self.before.keys())
        return tuple(path for path in paths if self.inputs.get(path) != self.before.get(path) or self._opens(path))

    def _opens(self, path: str) -> bool:
        return path in self.inputs and self.inputs[path] is None

    def digest(self, identity: Identity) -> str:
        """SHA-256 hex over all of it and whose it is."""
        return digest_of({**asdict(identity), **asdict(self)})

    def differs(self, actual: Change) -> tuple[str, ...]:
        """Paths at which ``actual``, whose values are all known, is not what this change said; empty if nowhere.

        A value that was not known may be anything, and have anything below it.
        """
        open_paths = tuple(path for path, value in self.inputs.items() if value is None)
        found = {
            path
            for path in self.inputs.keys() | actual.inputs.keys()
            if self.inputs.get(path) != actual.inputs.get(path) and not _below(path, open_paths)
        }
        found |= {
            path
            for path in self.before.keys() | actual.before.keys()
            if self.before.get(path) != actual.before.get(path)
        }
        return tuple(sorted(found))


def gate_of(kind: str, operation: Operation) -> Gate:
    """The gate of an operation on a type. :raises GateError: for a type that no deployment of ours holds."""
    if operation == "run" and kind == JOB:
        return Gate.DATA
    if kind not in KINDS:
        raise GateError(f"{kind}: no gate is known for this type of resource, so nothing may be done with it")
    return Gate.DESTROY if operation == "delete" else KINDS[kind].gate


def natural_key(kind: str, inputs: Leaves) -> str:
    """The object's name. :raises GateError: for an unknown type, or while the name is not known."""
    if kind not in KINDS:
        raise GateError(f"{kind}: no gate is known for this type of resource, so nothing may be done with it")
    parts = [inputs.get(name) for name in KINDS[kind].key]
    return "/".join("(known later)" if part is None else str(json.loads(part)) for part in parts)


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def digest_of(value: Any) -> str:
    """SHA-256 hex of the canonical JSON."""
    return hashlib.sha256(canonical(value)).hexdigest()


def leaf(value: Any) -> str:
    """A known, plain value as it stands among the leaves."""
    text = canonical(value).decode()
    return text if len(text) <= LONGEST_SHOWN_CHARS else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _below(path: str, open_paths: tuple[str, ...]) -> bool:
    return any(path == each or path.startswith(f"{each}/") for each in open_paths)
