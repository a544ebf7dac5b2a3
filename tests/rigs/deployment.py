"""A deployment of the real program, by the real engine, to the emulator."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from mempersist_ops.gates import approvals, keys, ledger, plans
from mempersist_ops.gates.changes import Gate
from mempersist_ops.gates.places import Places
from mempersist_ops.gates.plans import Plan
from tests.emulator.app import ACCOUNT, REST, TOKEN, Emulator
from tests.emulator.server import served
from tests.engine.driver import Outcome, Pulumi, checkout

OWNER_TOKEN = "owner-token-" + "x" * 32
SETTINGS = {
    "mempersist:accountId": ACCOUNT,
    "mempersist:accountName": "Example",
    "mempersist:workersSubdomain": "example",
}
WRITES = ("POST", "PUT", "PATCH", "DELETE")


@dataclass
class Deployment:
    """One stack. ``secret_values`` must never be seen in what a run leaves behind."""

    emulator: Emulator
    url: str
    pulumi: Pulumi
    places: Places
    key: Ed25519PrivateKey
    secret_values: Mapping[str, str]

    def plan(self) -> Plan:
        """The plan of the last preview."""
        return plans.load(self.places.plan)

    def approve(
        self,
        *gates: Gate,
        key: Ed25519PrivateKey | None = None,
        begins: timedelta = timedelta(0),
        lasts: timedelta = approvals.USUAL,
    ) -> None:
        """Approve the plan's changes, at these gates or at all that it names."""
        plan, now = self.plan(), datetime.now(UTC) + begins
        for gate in gates or plan.by_gate():
            proposed = approvals.propose(plan, gate, now=now, nonce=secrets.token_hex(8), lasts=lasts)
            signed = replace(proposed, signatures=(keys.sign(key or self.key, proposed.message()),))
            ledger.append(self.places.ledger, "approval", approvals.body_of(signed), approvals.iso(datetime.now(UTC)))

    def up(self) -> Outcome:
        """Preview, approve all of it, and update."""
        self.pulumi.preview().expect()
        self.approve()
        return self.pulumi.up("--skip-preview").expect()

    def writes(self) -> int:
        """How many requests have asked the emulator to change anything."""
        return sum(count for call, count in self.emulator.calls.items() if call.startswith(WRITES))


@contextmanager
def deployment(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Deployment]:
    """A stack that is set up and holds nothing yet, with one approver for every gate."""
    values = {
        "API_TOKEN_SHA256": hashlib.sha256(OWNER_TOKEN.encode()).hexdigest(),
        "CURSOR_KEYS": f"k1:{secrets.token_hex(32)}",
    }
    emulator = Emulator(directory / "cloud")
    with served(emulator) as url:
        clone = checkout(directory / "clone")
        secrets_file = directory / "secrets.json"
        secrets_file.write_text(json.dumps(values))
        secrets_file.chmod(0o600)
        pulumi = Pulumi(
            clone,
            directory / "pulumi",
            env={
                "CLOUDFLARE_BASE_URL": f"{url}{REST}",
                "CLOUDFLARE_API_TOKEN": TOKEN.value,
                "MEMPERSIST_SECRETS_FILE": str(secrets_file),
            },
        )
        pulumi.init({**SETTINGS, **(settings or {})})
        places, key = Places(clone, pulumi.stack), keys.create(directory / "approver.pem")
        approver = approvals.Approver("operator", keys.public_text(key), frozenset(Gate))
        plans.write_whole(places.policy, approvals.policy_text(approvals.Policy((approver,), {})))
        yield Deployment(emulator, url, pulumi, places, key, values)
