"""The Worker: its code, what it is bound to, its deployment, its secrets, and the queues it takes from."""

from __future__ import annotations

from typing import Any, Final

import pulumi
import pulumi_cloudflare as cloudflare

from mempersist.limits import MAX_DELIVERIES
from mempersist_infra.catalog import Catalog
from mempersist_infra.context import Component, Context
from mempersist_infra.domains import public_url
from mempersist_infra.providers.queue_consumer import QueueConsumer
from mempersist_infra.providers.worker_secret import WorkerSecret, fingerprint, value_of
from mempersist_infra.providers.worker_version import WorkerVersion
from mempersist_infra.queues import Queues
from mempersist_infra.search_index import SearchIndex
from mempersist_infra.storage import Storage

SECRETS: Final = ("API_TOKEN_SHA256", "CURSOR_KEYS")
CONSUMER: Final = {"batch_size": 5, "max_wait_time_ms": 5000, "max_retries": MAX_DELIVERIES}
DEAD_LETTER_CONSUMER: Final = {"batch_size": 10, "max_wait_time_ms": 30_000, "max_retries": 100}


class Service(Component):
    """Goes first when all is destroyed: what a Worker is bound to cannot be deleted before it."""

    worker: cloudflare.Worker
    version: WorkerVersion
    deployment: cloudflare.WorkersDeployment

    def __init__(
        self, context: Context, storage: Storage, catalog: Catalog, index: SearchIndex, queues: Queues, bundle: str
    ) -> None:
        super().__init__("Service", context)
        context = context.within(self)
        self.worker = cloudflare.Worker(
            "worker",
            account_id=context.account,
            name=context.names.worker,
            logpush=False,
            # Everything is said, as what is left to Cloudflare comes back as a change.
            observability={
                "enabled": True,
                "head_sampling_rate": 1,
                "logs": {"enabled": True, "head_sampling_rate": 1, "invocation_logs": False, "persist": True},
            },
            subdomain={"enabled": False, "previews_enabled": False},
            tags=[],
            opts=context.options(
                after=(storage.bucket, catalog.database, *index.ready, *queues.all),
                ignore=("subdomain",),  # set apart, once there is something to serve
                delete_first=True,
            ),
        )
        self.version = WorkerVersion(
            "worker-version",
            account=context.account,
            worker_id=self.worker.id,
            script=context.names.worker,
            bundle=bundle,
            bindings=bindings(context, catalog.database.uuid),
            opts=context.options(after=(self.worker,)),
        )
        self.deployment = cloudflare.WorkersDeployment(
            "worker-deployment",
            account_id=context.account,
            script_name=context.names.worker,
            strategy="percentage",
            versions=[{"version_id": self.version.version_id, "percentage": 100}],
            annotations={"workers_message": f"bundle {bundle}"},
            # A schema that the code does not know yet is no harm; code that does not know its schema is.
            opts=context.options(after=(self.version, catalog.migrations)),
        )
        for name in SECRETS:
            mark = fingerprint(context.account, context.names.worker, name, value_of(name))
            WorkerSecret(
                f"secret-{name.lower().replace('_', '-')}",
                account=context.account,
                script=context.names.worker,
                secret=name,
                fingerprint=mark,
                opts=context.options(after=(self.deployment,)),
            )
        self._consumers(context, queues)

    def _consumers(self, context: Context, queues: Queues) -> None:
        names = context.names
        for queue, name, dead_letters, settings in (
            (queues.imports, names.import_queue, names.dead_letter_queue, CONSUMER),
            (queues.index, names.index_queue, names.dead_letter_queue, CONSUMER),
            (queues.dead_letters, names.dead_letter_queue, "", DEAD_LETTER_CONSUMER),
        ):
            QueueConsumer(
                f"{name.removeprefix(names.base).strip('-')}-consumer",
                account=context.account,
                queue_id=queue.queue_id,
                queue=name,
                script=names.worker,
                dead_letter_queue=dead_letters,
                settings=settings,
                opts=context.options(after=(self.worker, self.deployment)),
            )


def bindings(context: Context, database: pulumi.Input[str]) -> list[dict[str, Any]]:
    """What the Worker has by name; see ARCHITECTURE.md. No secret is among them: it would hide the list from review."""
    names, settings = context.names, context.settings
    bucket: dict[str, Any] = {"type": "r2_bucket", "name": "MEMORY_BUCKET", "bucket_name": names.bucket}
    if settings.jurisdiction != "default":
        bucket["jurisdiction"] = settings.jurisdiction
    found = [
        {"type": "ai", "name": "AI"},
        bucket,
        {"type": "d1", "name": "MEMORY_DB", "id": database},
        {"type": "vectorize", "name": "MEMORY_VECTOR", "index_name": names.index(settings.active_generation)},
        {"type": "queue", "name": "IMPORT_QUEUE", "queue_name": names.import_queue},
        {"type": "queue", "name": "INDEX_QUEUE", "queue_name": names.index_queue},
    ]
    if settings.mail is not None:
        found.append({"type": "send_email", "name": "EMAIL", "allowed_sender_addresses": [settings.mail.sender]})
    texts = {
        "PUBLIC_URL": public_url(context),
        "ALLOWED_ORIGINS": " ".join(settings.allowed_origins),
        "OWNER_ADDRESS": settings.owner_address,
        "SIGN_UP": " ".join(settings.sign_up),
        "ALERT_ADDRESS": settings.alert_address,
        "MAIL_FROM": None if settings.mail is None else settings.mail.sender,
    }
    found += [{"type": "plain_text", "name": name, "text": text} for name, text in texts.items() if text]
    return sorted(found, key=lambda each: str(each["name"]))
