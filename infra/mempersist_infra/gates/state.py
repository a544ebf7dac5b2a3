"""The stack's state as a run finds it: its digest, and whether each entry can be trusted."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from mempersist_infra.gates.names import HOOKS
from mempersist_ops.gates.changes import KINDS, GateError, digest_of

NO_ID: Final = frozenset({"", "{<nil>}"})
"""What stands in place of an id after an answer that held none."""
_CIPHERTEXT: Final = "ciphertext"
_TIMES: Final = frozenset({"created", "modified", "sourcePosition", "stackTrace"})
_PROVIDER: Final = "pulumi:providers:"
_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class State:
    """``pending`` are the URNs of operations that began and of which nobody knows how they ended."""

    digest: str
    entries: tuple[Mapping[str, Any], ...]
    pending: tuple[tuple[str, str], ...]


def read_state(stack: str) -> State:
    """The state, asked of the engine that runs this program. :raises GateError: if it cannot be had."""
    command = ["pulumi", "stack", "export", "--stack", stack]
    environment = {**os.environ, "PULUMI_SKIP_UPDATE_CHECK": "1"}
    try:
        done = subprocess.run(  # noqa: S603 - the engine's own command, with the stack's name as one argument
            command, capture_output=True, text=True, check=False, timeout=_SECONDS, env=environment, cwd=Path.cwd()
        )
        document = json.loads(done.stdout) if done.returncode == 0 else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        document = None
    if not isinstance(document, dict):
        raise GateError("the stack's state cannot be read; see what `pulumi stack export` says")
    return understand(document)


def understand(document: Mapping[str, Any]) -> State:
    """The state in what `pulumi stack export` prints."""
    deployment = document.get("deployment") or {}
    entries = tuple(deployment.get("resources") or ())
    pending = tuple(
        (str(each["type"]), str(each["resource"]["urn"])) for each in deployment.get("pending_operations") or ()
    )
    objects = [_lasting(entry) for entry in entries if _is_object(entry)]
    return State(digest_of([objects, sorted(pending)]), entries, pending)


def unsound(state: State) -> Iterator[str]:
    """What is wrong with entries, each with the way to mend it."""
    for entry in state.entries:
        if not _is_object(entry):
            continue
        urn, kind = entry["urn"], entry["type"]
        if kind not in KINDS:
            yield f"{urn}: is of a type that this program does not know; drop it with: pulumi state delete '{urn}'"
        elif entry.get("id", "") in NO_ID:
            yield (
                f"{urn}: has no real id, as Cloudflare's answer was garbled when it was made or refreshed;"
                f" drop the entry with: pulumi state delete '{urn}' and see what it left behind with: mempersist audit"
            )
        elif not _hooked(entry.get("resourceHooks") or {}):
            yield f"{urn}: {UNHOOKED}"


UNHOOKED: Final = (
    "its entry would let it be deleted without asking, as another program or `pulumi import` wrote it;"
    " let this program write it anew with: mempersist heal"
)


def _is_object(entry: Mapping[str, Any]) -> bool:
    """Whether an entry stands for something in Cloudflare: not for the stack itself, a component or a provider."""
    return bool(entry.get("custom")) and not entry["type"].startswith(_PROVIDER)


def _hooked(hooks: Mapping[str, Sequence[str]]) -> bool:
    return all(name in (hooks.get(event) or ()) for event, name in HOOKS.items())


def _lasting(value: Any) -> Any:
    """Without times, places in sources, and the ciphertexts of secrets, which differ each time they are written."""
    if isinstance(value, dict):
        return {key: _lasting(item) for key, item in value.items() if key not in _TIMES and key != _CIPHERTEXT}
    if isinstance(value, list):
        return [_lasting(item) for item in value]
    return value
