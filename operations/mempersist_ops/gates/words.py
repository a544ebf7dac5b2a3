"""A plan in words, for the person who is asked to approve it."""

from __future__ import annotations

from collections.abc import Iterator

from mempersist_ops.gates.changes import Change
from mempersist_ops.gates.plans import Plan


def table(plan: Plan) -> str:
    """The changes by gate, and the digest of the whole."""
    return "\n".join(_lines(plan))


def details(change: Change) -> Iterator[str]:
    """What a change sets, and what it was before."""
    for path in change.changed:
        new = change.inputs.get(path, "(gone)") if path in change.inputs else "(gone)"
        shown = "(known later)" if new is None else new
        old = change.before.get(path)
        yield f"{path}: {shown}" if old is None else f"{path}: {old} -> {shown}"


def _lines(plan: Plan) -> Iterator[str]:
    identity = plan.identity
    if not plan.changes:
        yield f"PLAN for {identity.project}/{identity.stack}: no changes"
        return
    yield f"PLAN sha256:{plan.digest} for {identity.project}/{identity.stack} in account {identity.account}"
    for gate, changes in plan.by_gate().items():
        yield f"  {gate} ({len(changes)})"
        for change in changes:
            yield f"    {change.words}"
