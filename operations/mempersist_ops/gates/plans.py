"""What a run would change: written down while it is previewed, and compared with what it does."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mempersist_ops.gates.changes import KINDS, Change, Gate, GateError, Identity, digest_of, gate_of

FORMAT: Final = 1
_UNREADABLE: Final = "make a new one with: pulumi preview"


@dataclass(frozen=True, slots=True)
class Plan:
    """All changes of a run.

    :param checkpoint: digest of the state that it was made against; when that moves, the plan is stale.
    :param program: digest of what the program was made from: settings and the Worker's bundle.
    """

    identity: Identity
    checkpoint: str
    program: str
    changes: tuple[Change, ...]

    @property
    def digest(self) -> str:
        """SHA-256 hex over all of it; the order in which the engine came upon the changes says nothing."""
        return digest_of(
            [FORMAT, asdict(self.identity), self.checkpoint, self.program, sorted(self.digests().values())]
        )

    def digests(self) -> Mapping[tuple[str, str], str]:
        """The digest of each change, by target and operation."""
        return {(change.target, change.operation): change.digest(self.identity) for change in self.changes}

    def find(self, target: str, operation: str) -> Change | None:
        for change in self.changes:
            if (change.target, change.operation) == (target, operation):
                return change
        return None

    def by_gate(self) -> Mapping[Gate, tuple[Change, ...]]:
        """The changes of each gate that has any, gates in their order."""
        return {
            gate: found for gate in Gate if (found := tuple(change for change in self.changes if change.gate is gate))
        }


def plan_of(identity: Identity, checkpoint: str, program: str, changes: Iterable[Change]) -> Plan:
    """A plan with its changes in their order. :raises GateError: if one target has two changes of one kind."""
    ordered = sorted(changes, key=lambda change: (list(Gate).index(change.gate), change.target, change.operation))
    places = [(change.target, change.operation) for change in ordered]
    if len(set(places)) < len(places):
        raise GateError(f"the plan names the same operation twice; {_UNREADABLE}")
    return Plan(identity, checkpoint, program, tuple(ordered))


def save(plan: Plan, path: Path) -> None:
    """Write the plan, whole or not at all."""
    document = {"format": FORMAT, "digest": plan.digest, **asdict(plan)}
    write_whole(path, json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False) + "\n")


def load(path: Path) -> Plan:
    """:raises GateError: if there is none, or it is not what was written."""
    try:
        document = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        raise GateError(f"{path}: there is no plan; {_UNREADABLE}") from None
    except (OSError, ValueError):
        raise GateError(f"{path}: cannot be read as a plan; {_UNREADABLE}") from None
    try:
        if document["format"] != FORMAT:
            raise GateError(f"{path}: is of another version; {_UNREADABLE}")
        changes = [_change(each) for each in document["changes"]]
        plan = plan_of(Identity(**document["identity"]), document["checkpoint"], document["program"], changes)
        digest = document["digest"]
    except (KeyError, TypeError, ValueError, AttributeError):
        raise GateError(f"{path}: cannot be read as a plan; {_UNREADABLE}") from None
    if plan.digest != digest:
        raise GateError(f"{path}: was altered after it was made; {_UNREADABLE}")
    return plan


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            Path(name).unlink()
        raise


def _change(given: Mapping[str, Any]) -> Change:
    """:raises GateError: if the gate is not that of the type and operation."""
    change = Change(
        target=given["target"],
        type=given["type"],
        operation=given["operation"],
        gate=Gate(given["gate"]),
        natural_key=given["natural_key"],
        inputs=dict(given["inputs"]),
        before=dict(given["before"]),
    )
    if change.type in KINDS and change.gate is not gate_of(change.type, change.operation):
        raise GateError(f"{change.target}: stands under a gate that is not its own; {_UNREADABLE}")
    return change
