"""Approvers' keys: Ed25519, the private one in a file that its owner alone can read."""

from __future__ import annotations

import base64
import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from mempersist_ops.gates.changes import GateError

_ID_CHARS: Final = 16
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Signature:
    """``key`` is the id of the key that signed; ``value`` is in base64."""

    key: str
    value: str


def public_text(key: Ed25519PrivateKey) -> str:
    """The public half as one word of base64."""
    raw = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return base64.b64encode(raw).decode()


def key_id(public: str) -> str:
    """The short name of a public key: the start of its SHA-256."""
    return sha256(public.encode()).hexdigest()[:_ID_CHARS]


def create(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """A new key, written to ``path``. :raises GateError: if something lies there."""
    key = Ed25519PrivateKey.generate()
    protection = BestAvailableEncryption(passphrase) if passphrase else NoEncryption()
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, protection)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise GateError(f"{path}: there is a key already; name another file, or use that one") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    return key


def load(path: Path, passphrase: bytes | None = None) -> Ed25519PrivateKey:
    """:raises GateError: if there is no such key, others can read it, or the passphrase is wrong."""
    try:
        mode = path.stat().st_mode
        text = path.read_bytes()
    except FileNotFoundError:
        raise GateError(f"{path}: there is no key; make one with: mempersist approver new") from None
    except OSError as error:
        raise GateError(f"{path}: {error.strerror}") from None
    if mode & _OTHERS:
        raise GateError(f"{path}: others can read this key; mend that with: chmod 600 {path}")
    try:
        key = load_pem_private_key(text, passphrase)
    except TypeError:
        needed = "needs a passphrase" if passphrase is None else "has no passphrase"
        raise GateError(f"{path}: the key {needed}") from None
    except ValueError:
        raise GateError(f"{path}: is no Ed25519 key, or the passphrase is wrong") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise GateError(f"{path}: is no Ed25519 key")
    return key


def sign(key: Ed25519PrivateKey, message: bytes) -> Signature:
    return Signature(key_id(public_text(key)), base64.b64encode(key.sign(message)).decode())


def signed_by(message: bytes, signatures: Sequence[Signature], publics: Sequence[str]) -> frozenset[str]:
    """Ids of the keys among ``publics`` that have signed ``message``."""
    known = {key_id(public): public for public in publics}
    return frozenset(each.key for each in signatures if each.key in known and _holds(message, each, known[each.key]))


def _holds(message: bytes, signature: Signature, public: str) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(base64.b64decode(public, validate=True))
        key.verify(base64.b64decode(signature.value, validate=True), message)
    except (InvalidSignature, ValueError):
        return False
    return True
