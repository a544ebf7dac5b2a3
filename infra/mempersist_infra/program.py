"""The program: settings and gates first, then the parts in the order in which they need each other."""

from __future__ import annotations

from pathlib import Path

import pulumi
from pulumi.runtime import config

from mempersist_infra.catalog import Catalog
from mempersist_infra.context import Context
from mempersist_infra.domains import Domains, public_url
from mempersist_infra.gates.install import backend, install
from mempersist_infra.mail import MailDomain
from mempersist_infra.names import names
from mempersist_infra.providers.calls import ProviderError
from mempersist_infra.providers.worker_version import current_bundle
from mempersist_infra.queues import Queues
from mempersist_infra.schedule import schedule
from mempersist_infra.search_index import SearchIndex
from mempersist_infra.service import Service
from mempersist_infra.settings import NAMESPACE, load
from mempersist_infra.storage import Storage
from mempersist_infra.values import SettingsError
from mempersist_ops.bundle import BundleError
from mempersist_ops.gates.changes import GateError, Identity, digest_of


def run() -> None:
    """Declare everything. :raises pulumi.RunError: for what the operator has to mend first, a line for each."""
    try:
        given = _given()
        context = Context(load(given), names(pulumi.get_project(), pulumi.get_stack()))
        bundle = current_bundle().digest
        identity = Identity(context.account, pulumi.get_project(), pulumi.get_stack(), backend())
        install(identity, Path(pulumi.runtime.get_root_directory()), digest_of([given, bundle]))
        deploy(context, bundle)
    except (SettingsError, GateError, BundleError, ProviderError) as error:
        raise pulumi.RunError(str(error)) from None


def deploy(context: Context, bundle: str) -> None:
    """The table of contents. ``bundle`` is the digest of the Worker's code."""
    storage = Storage(context)
    catalog = Catalog(context)
    index = SearchIndex(context, f"mempersist {pulumi.get_project()}/{pulumi.get_stack()}")
    queues = Queues(context)
    service = Service(context, storage, catalog, index, queues, bundle)
    schedule(context, service.worker, service.deployment)
    Domains(context, service.worker, service.deployment)
    MailDomain(context)
    url = public_url(context)
    for name, value in {
        "accountId": context.account,
        "bucket": storage.bucket.name,
        "jurisdiction": context.settings.jurisdiction,
        "databaseId": catalog.database.uuid,
        "vectorIndexes": {generation: context.names.index(generation) for generation in context.settings.generations},
        "activeGeneration": context.settings.active_generation,
        "importQueueId": queues.imports.queue_id,
        "indexQueueId": queues.index.queue_id,
        "deadLetterQueueId": queues.dead_letters.queue_id,
        "worker": context.names.worker,
        "versionId": service.version.version_id,
        "bundle": bundle,
        "url": url,
        "mcpUrl": f"{url}/mcp",
    }.items():
        pulumi.export(name, value)


def _given() -> dict[str, object]:
    prefix = f"{NAMESPACE}:"
    return {key.removeprefix(prefix): value for key, value in config.get_config_env().items() if key.startswith(prefix)}
