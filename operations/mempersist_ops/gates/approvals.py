"""Approvals: who may give them, what they say, and whether one covers a change."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from mempersist_ops.gates import keys
from mempersist_ops.gates.changes import Change, Gate, GateError, Identity, canonical
from mempersist_ops.gates.ledger import Entry
from mempersist_ops.gates.plans import Plan

LONGEST: Final = timedelta(hours=24)
USUAL: Final = timedelta(hours=4)
_DOMAIN: Final = b"mempersist approval v1\n"


@dataclass(frozen=True, slots=True)
class Approver:
    """A key that may approve. ``public`` is the key, in base64; ``gates`` those it may approve."""

    name: str
    public: str
    gates: frozenset[Gate]

    @property
    def id(self) -> str:
        return keys.key_id(self.public)


@dataclass(frozen=True, slots=True)
class Policy:
    """Whose approvals count. ``signatures`` says how many different keys a gate needs; one where it says nothing."""

    approvers: tuple[Approver, ...]
    signatures: Mapping[Gate, int]

    def needed(self, gate: Gate) -> int:
        return max(1, self.signatures.get(gate, 1))

    def signers(self, approval: Approval) -> frozenset[str]:
        """Ids of the keys that signed it and may approve its gate."""
        publics = [each.public for each in self.approvers if approval.gate in each.gates]
        return keys.signed_by(approval.message(), approval.signatures, publics)

    def name(self, key: str) -> str:
        return next((each.name for each in self.approvers if each.id == key), key)


@dataclass(frozen=True, slots=True)
class Approval:
    """That the changes with these digests may be made.

    :param plan: digest of the plan that was looked at.
    :param commit: of the repository, or empty.
    :param not_before: and ``expires`` are ISO 8601 UTC.
    """

    identity: Identity
    plan: str
    gate: Gate
    changes: tuple[str, ...]
    reason: str
    commit: str
    not_before: str
    expires: str
    nonce: str
    signatures: tuple[keys.Signature, ...] = ()

    def message(self) -> bytes:
        """What is signed: all but the signatures."""
        fields = asdict(self)
        del fields["signatures"]
        return _DOMAIN + canonical(fields)


def propose(
    plan: Plan, gate: Gate, *, now: datetime, nonce: str, lasts: timedelta = USUAL, reason: str = "", commit: str = ""
) -> Approval:
    """An approval of all of a gate's changes in ``plan``, to be signed.

    :raises GateError: if it would last longer than a day, or there is nothing to approve.
    """
    if not timedelta(0) < lasts <= LONGEST:
        raise GateError(f"an approval lasts at most {LONGEST.total_seconds() / 3600:.0f} hours")
    changes = plan.by_gate().get(gate)
    if not changes:
        raise GateError(f"the plan changes nothing behind the gate {gate}")
    digests = tuple(sorted(change.digest(plan.identity) for change in changes))
    return Approval(plan.identity, plan.digest, gate, digests, reason, commit, iso(now), iso(now + lasts), nonce)


def iso(moment: datetime) -> str:
    """UTC to the second."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def body_of(approval: Approval) -> dict[str, Any]:
    """As the ledger keeps it."""
    return asdict(approval)


def of_body(body: Mapping[str, Any]) -> Approval:
    """:raises GateError: if it is no approval."""
    try:
        return Approval(
            identity=Identity(**body["identity"]),
            plan=body["plan"],
            gate=Gate(body["gate"]),
            changes=tuple(body["changes"]),
            reason=body["reason"],
            commit=body["commit"],
            not_before=body["not_before"],
            expires=body["expires"],
            nonce=body["nonce"],
            signatures=tuple(keys.Signature(**each) for each in body["signatures"]),
        )
    except (KeyError, TypeError, ValueError):
        raise GateError("an entry of the ledger is no approval, although it says so") from None


def load_policy(path: Path) -> Policy:
    """:raises GateError: if there is none, or it is not what a policy is."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise GateError(f"{path}: nobody may approve anything yet; begin with: mempersist approver new") from None
    except (OSError, ValueError):
        raise GateError(f"{path}: cannot be read as JSON") from None
    try:
        approvers = tuple(
            Approver(each["name"], each["public"], frozenset(Gate(gate) for gate in each["gates"]))
            for each in document["approvers"]
        )
        signatures = {Gate(gate): int(count) for gate, count in document.get("signatures", {}).items()}
    except (KeyError, TypeError, ValueError, AttributeError):
        raise GateError(
            f"{path}: must hold approvers, each with name, public and gates, and may hold signatures by gate"
        ) from None
    return Policy(approvers, signatures)


def policy_text(policy: Policy) -> str:
    """As it stands in its file."""
    approvers = [
        {"name": each.name, "public": each.public, "gates": [gate for gate in Gate if gate in each.gates]}
        for each in policy.approvers
    ]
    return json.dumps({"approvers": approvers, "signatures": dict(policy.signatures)}, indent=2) + "\n"


@dataclass(frozen=True, slots=True)
class Allowed:
    """The change may be made, under this approval."""

    approval: Approval


@dataclass(frozen=True, slots=True)
class Refused:
    """The change may not be made. ``reason`` says why; ``command`` would bring the approval that is missing."""

    reason: str
    command: str

    def __str__(self) -> str:
        return f"{self.reason}; to approve it: {self.command}"


def decide(
    change: Change,
    plan: Plan,
    checkpoint: str,
    entries: Sequence[Entry],
    policy: Policy,
    identity: Identity,
    now: datetime,
) -> Allowed | Refused:
    """Whether ``change``, as it is about to be made, may be made.

    :param checkpoint: digest of the state as it is now.
    :param entries: the ledger's.
    """
    command = f"pulumi preview && mempersist approve --gate {change.gate}"
    if plan.identity != identity:
        other = next(name for name, value in asdict(identity).items() if getattr(plan.identity, name) != value)
        return Refused(f"{change.words}: the plan is that of another {other}", command)
    if plan.checkpoint != checkpoint:
        return Refused(f"{change.words}: the plan is stale, as the state has changed since it was made", command)
    planned = plan.find(change.target, change.operation)
    if planned is None:
        return Refused(f"{change.words}: is not in the plan that was previewed", command)
    if (planned.type, planned.gate) != (change.type, change.gate):
        return Refused(f"{change.words}: is not what was previewed: another type", command)
    differing = planned.differs(change)
    if differing:
        return Refused(f"{change.words}: is not what was previewed; it differs at {', '.join(differing)}", command)
    digest = planned.digest(identity)
    reasons = [_why_not(each, change.gate, digest, entries, policy, identity, now) for each in approvals(entries)]
    for approval, reason in zip(approvals(entries), reasons, strict=True):
        if reason is None:
            return Allowed(approval)
    told = [reason for reason in reasons if reason]
    return Refused(f"{change.words}: {told[-1] if told else 'is not approved'}", command)


def approvals(entries: Sequence[Entry]) -> tuple[Approval, ...]:
    """All approvals of a ledger, the oldest first."""
    return tuple(of_body(entry.body) for entry in entries if entry.kind == "approval")


def _why_not(
    approval: Approval,
    gate: Gate,
    digest: str,
    entries: Sequence[Entry],
    policy: Policy,
    identity: Identity,
    now: datetime,
) -> str | None:
    """None if the approval covers the change; an empty text if it speaks of others; else why it does not count."""
    if digest not in approval.changes:
        return ""
    if approval.gate is not gate:
        return f"was approved for the gate {approval.gate}, and not for {gate}"
    if approval.identity != identity:
        return "was approved for another deployment"
    if any(entry.kind == "revocation" and entry.body.get("nonce") == approval.nonce for entry in entries):
        return "its approval was revoked"
    if now < moment(approval.not_before):
        return f"its approval counts from {approval.not_before}"
    if now >= moment(approval.expires):
        return f"its approval expired at {approval.expires}"
    if moment(approval.expires) - moment(approval.not_before) > LONGEST:
        return "its approval lasts longer than any may"
    signers = policy.signers(approval)
    if len(signers) < policy.needed(gate):
        return f"its approval has {len(signers)} of the {policy.needed(gate)} signatures that {gate} needs"
    done = {"nonce": approval.nonce, "change": digest, "state": "done"}
    if any(entry.kind == "receipt" and done.items() <= entry.body.items() for entry in entries):
        return "its approval was used already"
    return None
