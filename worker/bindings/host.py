"""The Worker's environment as the service has it: bindings become ports, variables become settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bindings.catalog import D1Catalog
from bindings.embedder import WorkersAiEmbedder
from bindings.ffi import binding, is_nothing, variable
from bindings.mailer import WorkerMailer
from bindings.objects import R2ObjectStore
from bindings.queue import WorkerQueues
from bindings.vectors import VectorizeIndex
from mempersist import logs
from mempersist.defects import place_of, refusal
from mempersist.errors import Code, MempersistError
from mempersist.limits import WORKER_CONVERSATION_BYTES
from mempersist.ports import Mailer, Ports
from mempersist.sealing import parse_keys
from mempersist.service import Service, Settings
from mempersist.startup import begin
from mempersist.system import SystemClock, SystemIds

_MIGRATIONS: Final = Path(__file__).parent.parent / "migrations"
_NOT_STARTED: Final = "the service cannot start; its log says why"


class Isolate:
    """What lives as long as the isolate: whether the service has begun. Its bindings are those of each event."""

    def __init__(self) -> None:
        self._begun = False

    async def service(self, env: Any) -> Service:
        """The service over the bindings of ``env``; ``trouble`` says why where it cannot serve, and is tried again."""
        service = Service(ports_of(env), settings_of(env))
        if self._begun:
            return service
        try:
            await begin(service.ports, _newest_migration())
        except MempersistError as error:
            return replace(service, trouble=error)
        except Exception as error:  # the caller hears that it is out of order, the log hears where
            logs.error("not_started", defect=place_of(error))
            told = refusal(error) or MempersistError(Code.RETRYABLE_INFRASTRUCTURE, _NOT_STARTED)
            return replace(service, trouble=told)
        self._begun = True
        return service


def ports_of(env: Any) -> Ports:
    """:raises AttributeError: naming a binding that is missing."""
    embedder = WorkersAiEmbedder(binding(env, "AI"))
    queues = WorkerQueues({"import": binding(env, "IMPORT_QUEUE"), "index": binding(env, "INDEX_QUEUE")})
    return Ports(
        R2ObjectStore(binding(env, "MEMORY_BUCKET")),
        D1Catalog(binding(env, "MEMORY_DB")),
        VectorizeIndex(binding(env, "MEMORY_VECTOR"), embedder.model.dimensions),
        queues,
        embedder,
        SystemClock(),
        SystemIds(),
        _mailer(env),
        WORKER_CONVERSATION_BYTES,
    )


def _newest_migration() -> str | None:
    """Name of the last of the migrations that came with this code."""
    return max((path.name for path in _MIGRATIONS.glob("*.sql")), default=None)


def _mailer(env: Any) -> Mailer | None:
    """None unless the binding and the sender's address are both there."""
    email, sender = getattr(env, "EMAIL", None), variable(env, "MAIL_FROM")
    return None if is_nothing(email) or sender is None else WorkerMailer(email, sender)


def settings_of(env: Any) -> Settings:
    """:raises AttributeError: if there is no ``PUBLIC_URL``, which nothing may be guessed for.
    :raises MempersistError: VALIDATION for ``CURSOR_KEYS`` that are none.
    """
    public_url = variable(env, "PUBLIC_URL")
    if public_url is None:
        raise AttributeError("the Worker has no variable PUBLIC_URL; set it to the scheme and host that clients use")
    return Settings(
        public_url.rstrip("/"),
        tuple((variable(env, "ALLOWED_ORIGINS") or "").split()),
        variable(env, "API_TOKEN_SHA256"),
        alert_address=variable(env, "ALERT_ADDRESS"),
        owner_address=(variable(env, "OWNER_ADDRESS") or "").strip().lower() or None,
        sign_up=tuple((variable(env, "SIGN_UP") or "").lower().split()),
        cursor_keys=parse_keys(variable(env, "CURSOR_KEYS") or ""),
    )
