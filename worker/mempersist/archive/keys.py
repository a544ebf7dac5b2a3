"""Object keys of the archive. Ids are hex or UUIDs; names given by people are made safe here."""

from __future__ import annotations

import re
from hashlib import sha256

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]")
SEQUENCE_DIGITS = 10

FORMAT_KEY = "canonical/format.json"
CONVERSATIONS = "canonical/conversations/"
ACCOUNTS = "canonical/accounts/"
ASSETS = "canonical/assets/"
IMPORTS = "raw/imports/"
WORK = "work/imports/"
REQUESTS = "work/requests/"


def safe_name(name: str) -> str:
    """``name`` with everything outside ``A-Za-z0-9._-`` replaced by ``_``, at most 180 characters, never a dot name."""
    safe = _UNSAFE.sub("_", name)[:180]
    return safe if safe.strip(".") else "_" + safe


def _sequence(seq: int) -> str:
    return f"{seq:0{SEQUENCE_DIGITS}d}.json"


def conversation(conversation_id: str) -> str:
    return f"{CONVERSATIONS}{conversation_id}/"


def segment(conversation_id: str, sha256: str) -> str:
    return f"{CONVERSATIONS}{conversation_id}/segments/{sha256}.jsonl"


def manifest(conversation_id: str, revision_id: str, compaction: int = 0) -> str:
    """``compaction`` counts rewrites of the same revision into fewer segments; 0 is the manifest first written."""
    suffix = f".{compaction}" if compaction else ""
    return f"{CONVERSATIONS}{conversation_id}/revisions/{revision_id}{suffix}.json"


def head(conversation_id: str, seq: int) -> str:
    return f"{CONVERSATIONS}{conversation_id}/head/{_sequence(seq)}"


def head_prefix(conversation_id: str) -> str:
    return f"{CONVERSATIONS}{conversation_id}/head/"


def account_log(account_id: str, seq: int) -> str:
    return f"{ACCOUNTS}{account_id}/log/{_sequence(seq)}"


def account_log_prefix(account_id: str) -> str:
    return f"{ACCOUNTS}{account_id}/log/"


def asset(account_id: str, asset_id: str, sha256: str) -> str:
    return f"{ASSETS}{account_id}/{safe_name(asset_id)}/{sha256}.bin"


def asset_record(account_id: str, asset_id: str, sha256: str) -> str:
    return f"{ASSETS}{account_id}/{safe_name(asset_id)}/{sha256}.json"


def import_source(import_id: str, filename: str) -> str:
    return f"{IMPORTS}{import_id}/source/{safe_name(filename)}"


def import_record(import_id: str) -> str:
    """Written when an upload is accepted: whose it is and where it goes."""
    return f"{IMPORTS}{import_id}/import.json"


def import_receipt(import_id: str) -> str:
    """Written when an import ends: hash, counts, every skipped item and why."""
    return f"{IMPORTS}{import_id}/receipt.json"


def import_work(import_id: str) -> str:
    """Prefix of an import's scratch objects; they may vanish at any time."""
    return f"{WORK}{import_id}/"


def request_record(account_id: str, idempotency_key: str) -> str:
    """What a request over many conversations found when it came first; without it, a repeated call looks again."""
    return f"{REQUESTS}{account_id}/{sha256(idempotency_key.encode()).hexdigest()}.json"
