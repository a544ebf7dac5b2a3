"""Puts the gates around the program: once, before anything is registered."""

from __future__ import annotations

import atexit
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pulumi
from pulumi.runtime import is_dry_run

from mempersist_infra.gates.guard import Guard, Recorder
from mempersist_infra.gates.names import HOOKS
from mempersist_infra.gates.state import State, read_state, unsound
from mempersist_ops.gates import approvals, plans
from mempersist_ops.gates.changes import GateError, Identity, Operation
from mempersist_ops.gates.places import Places
from mempersist_ops.gates.words import table

Hook = Callable[[pulumi.ResourceHookArgs], Awaitable[None]]


def install(identity: Identity, root: Path, program: str) -> None:
    """Register the hooks and check the whole plan.

    :param root: the project's directory.
    :param program: digest of what the program was made from.
    :raises GateError: in an update, with a line for everything that is not approved or cannot be trusted.
    """
    places, state = Places(root, identity.stack), read_state(identity.stack)
    keeper = _recorder(identity, places, state, program) if is_dry_run() else _guard(identity, places, state)
    _attach(keeper)


def backend() -> str:
    """Where the state is kept: as the environment says, or the last `pulumi login`."""
    told = os.environ.get("PULUMI_BACKEND_URL")
    if told:
        return told
    home = Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi")
    try:
        return str(json.loads((home / "credentials.json").read_text("utf-8"))["current"])
    except (OSError, ValueError, KeyError):
        return ""


def _recorder(identity: Identity, places: Places, state: State, program: str) -> Recorder:
    places.plan.unlink(missing_ok=True)
    for problem in unsound(state):
        pulumi.log.warn(problem)
    recorder = Recorder(identity, places, state, program, places.key())

    def finish() -> None:
        print(table(recorder.finish()), flush=True)

    atexit.register(finish)
    return recorder


def _guard(identity: Identity, places: Places, state: State) -> Guard:
    problems = list(unsound(state))
    if problems:
        raise GateError("\n".join(problems))
    plan = plans.load(places.plan)
    policy = approvals.load_policy(places.policy) if plan.changes else approvals.Policy((), {})
    guard = Guard(identity, places, state, places.key(), plan, policy)
    refusals = guard.refusals()
    if refusals:
        raise GateError("\n".join(f"{each}" for each in refusals))
    return guard


def _attach(keeper: Recorder | Guard) -> None:
    options = pulumi.ResourceHookOptions(on_dry_run=True)

    def hook(event: str, moment: str, operation: Operation) -> pulumi.ResourceHook:
        async def run(args: pulumi.ResourceHookArgs) -> None:
            await getattr(keeper, moment)(operation, args)

        return pulumi.ResourceHook(HOOKS[event], run, options)

    bound: dict[str, Any] = {
        "before_create": [hook("BeforeCreate", "before", "create")],
        "after_create": [hook("AfterCreate", "after", "create")],
        "before_update": [hook("BeforeUpdate", "before", "update")],
        "after_update": [hook("AfterUpdate", "after", "update")],
        "before_delete": [hook("BeforeDelete", "before", "delete")],
        "after_delete": [hook("AfterDelete", "after", "delete")],
    }
    if isinstance(keeper, Guard):
        bound["on_error"] = [pulumi.ErrorHook("gate:failed", keeper.failed)]
    binding = pulumi.ResourceHookBinding(**bound)

    def transform(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if not args.custom:
            return None
        options = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(hooks=binding))
        return pulumi.ResourceTransformResult(args.props, options)

    pulumi.runtime.register_resource_transform(transform)
