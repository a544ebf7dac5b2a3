"""Stands before every operation: writes the plan down in a preview, and lets through what is approved in an update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import pulumi

from mempersist_infra.gates.leaves import leaves
from mempersist_infra.gates.state import NO_ID, State
from mempersist_ops.gates import ledger, plans
from mempersist_ops.gates.approvals import Allowed, Policy, Refused, decide, iso
from mempersist_ops.gates.changes import KINDS, Change, GateError, Identity, Leaves, Operation, gate_of, natural_key
from mempersist_ops.gates.places import Places
from mempersist_ops.gates.plans import Plan

_FAILED: Final = "failed"


@dataclass
class Recorder:
    """Gathers the changes of a preview."""

    identity: Identity
    places: Places
    state: State
    program: str
    key: bytes
    changes: list[Change] = field(default_factory=list)

    async def before(self, operation: Operation, args: pulumi.ResourceHookArgs) -> None:
        self.changes.append(await change_of(operation, args, self.key))

    async def after(self, operation: Operation, args: pulumi.ResourceHookArgs) -> None:
        """Nothing happens in a preview, so nothing can have gone wrong."""

    def finish(self) -> Plan:
        """Save the plan of what was gathered."""
        plan = plans.plan_of(self.identity, self.state.digest, self.program, self.changes)
        plans.save(plan, self.places.plan)
        return plan


@dataclass
class Guard:
    """Lets an update do what its plan says and approvals cover."""

    identity: Identity
    places: Places
    state: State
    key: bytes
    plan: Plan
    policy: Policy
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    under: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)

    def refusals(self) -> tuple[Refused, ...]:
        """What of the plan is not approved: decided before anything is registered."""
        entries, now = ledger.read(self.places.ledger), self.clock()
        answers = [
            decide(change, self.plan, self.state.digest, entries, self.policy, self.identity, now)
            for change in self.plan.changes
        ]
        return tuple(answer for answer in answers if isinstance(answer, Refused))

    async def before(self, operation: Operation, args: pulumi.ResourceHookArgs) -> None:
        """:raises GateError: unless this very change is approved."""
        change = await change_of(operation, args, self.key)
        entries, now = ledger.read(self.places.ledger), self.clock()
        answer = decide(change, self.plan, self.state.digest, entries, self.policy, self.identity, now)
        if isinstance(answer, Refused):
            ledger.append(self.places.ledger, "refusal", {"target": change.target, "operation": operation}, iso(now))
            raise GateError(str(answer))
        self._allow(change, answer)

    async def after(self, operation: Operation, args: pulumi.ResourceHookArgs) -> None:
        """:raises GateError: if what came back cannot be what was asked for, whatever the provider says."""
        problem = None if operation == "delete" else await self._problem(args)
        self._receipt(args.urn, operation, _FAILED if problem else "done")
        if problem:
            raise GateError(problem)

    def failed(self, args: Any) -> bool:
        """Note that the provider reported an error; the operation is not tried again here."""
        self._receipt(args.urn, args.failed_operation, _FAILED)
        return False

    def _allow(self, change: Change, answer: Allowed) -> None:
        planned = self.plan.find(change.target, change.operation)
        assert planned is not None  # noqa: S101 - it was just found there
        nonce, digest = answer.approval.nonce, planned.digest(self.identity)
        self.under[change.target, change.operation] = nonce, digest
        self._receipt(change.target, change.operation, "started")

    def _receipt(self, target: str, operation: str, state: str) -> None:
        nonce, digest = self.under.get((target, operation), ("", ""))
        body = {"target": target, "operation": operation, "state": state, "nonce": nonce, "change": digest}
        ledger.append(self.places.ledger, "receipt", body, iso(self.clock()))

    async def _problem(self, args: pulumi.ResourceHookArgs) -> str | None:
        asked, got = await leaves(args.new_inputs, self.key), await leaves(args.new_outputs, self.key)
        if args.id in NO_ID:
            return (
                f"{args.urn}: Cloudflare's answer held no id, so nobody knows what was made; drop the entry with:"
                f" pulumi state delete '{args.urn}' and look with: mempersist audit"
            )
        missing = [name for name in KINDS[args.type].key if got.get(name) != asked.get(name)]
        if missing:
            return f"{args.urn}: Cloudflare answered for another object: {', '.join(missing)} is not what was asked for"
        return None


async def change_of(operation: Operation, args: pulumi.ResourceHookArgs, key: bytes) -> Change:
    """The change that a hook is told of. :raises GateError: for a type that no gate is known for."""
    inputs: Leaves = await leaves(args.new_inputs, key)
    before: Leaves = await leaves(args.old_inputs, key)
    name = natural_key(args.type, inputs or before)
    return Change(args.urn, args.type, operation, gate_of(args.type, operation), name, inputs, before)
