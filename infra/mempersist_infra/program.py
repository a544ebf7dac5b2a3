"""The program: settings and gates first, then the parts in the order in which they need each other."""

from __future__ import annotations

from pathlib import Path

import pulumi
from pulumi.runtime import config

from mempersist_infra.context import Context
from mempersist_infra.gates.install import backend, install
from mempersist_infra.names import names
from mempersist_infra.queues import Queues
from mempersist_infra.settings import NAMESPACE, load
from mempersist_infra.storage import Storage
from mempersist_infra.values import SettingsError
from mempersist_ops.gates.changes import GateError, Identity, digest_of


def run() -> None:
    """Declare everything. :raises pulumi.RunError: for what the operator has to mend first, a line for each."""
    try:
        given = _given()
        context = Context(load(given), names(pulumi.get_project(), pulumi.get_stack()))
        identity = Identity(context.account, pulumi.get_project(), pulumi.get_stack(), backend())
        install(identity, Path(pulumi.runtime.get_root_directory()), digest_of([given]))
    except (SettingsError, GateError) as error:
        raise pulumi.RunError(str(error)) from None
    deploy(context)


def deploy(context: Context) -> None:
    """The table of contents."""
    Storage(context)
    Queues(context)


def _given() -> dict[str, object]:
    prefix = f"{NAMESPACE}:"
    return {key.removeprefix(prefix): value for key, value in config.get_config_env().items() if key.startswith(prefix)}
