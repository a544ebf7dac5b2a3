"""Account logs: who an account is and which namespaces it owns, as canonical objects."""

from __future__ import annotations

import contextlib
from typing import Final

from mempersist import canonical, timestamps
from mempersist.archive import codec, keys
from mempersist.archive.model import OWNER, AccountEntry, AccountOperation, JsonObject
from mempersist.catalog import account_fold, intents
from mempersist.errors import Code, MempersistError
from mempersist.ports import AccountId, ObjectNotFound, ObjectStore, Ports, PreconditionFailed, StorageError

DEFAULT_NAMESPACE: Final = "personal"
_MAX_RACES = 20


async def log(objects: ObjectStore, account: AccountId, *, after: int = -1) -> list[tuple[AccountEntry, str]]:
    """The account's entries with ``seq > after``, in order, each with its hash. :raises UnreadableObject:"""
    entries: list[tuple[AccountEntry, str]] = []
    while True:
        try:
            data = await objects.get(keys.account_log(account, after + 1 + len(entries)))
        except ObjectNotFound:
            return entries
        entries.append((codec.decode_account_entry(data), canonical.sha256_hex(data)))


async def ensure_owner(ports: Ports) -> None:
    """The owner's account exists in its log and in the catalog. Safe to call at every start."""
    await ensure_format(ports.objects)
    rows = await ports.catalog.query("SELECT log_seq FROM accounts WHERE account_id = ?", (OWNER,))
    if not rows:
        values: JsonObject = {"defaultNamespace": DEFAULT_NAMESPACE}
        entry = AccountEntry(OWNER, 0, "create", values, timestamps.from_ms(ports.clock.now_ms()), None)
        # It may stand there already: then an earlier start wrote it, and the catalog is what was lost.
        with contextlib.suppress(PreconditionFailed):
            await ports.objects.put(keys.account_log(OWNER, 0), codec.encode_account_entry(entry), if_absent=True)
        await catch_up(ports, OWNER)


async def ensure_format(objects: ObjectStore) -> None:
    """The bucket says which format it holds. :raises UnreadableObject: if that is one this program does not know."""
    expected = canonical.dumps({"format": codec.BUCKET_FORMAT})
    try:
        await objects.put(keys.FORMAT_KEY, expected, if_absent=True)
    except PreconditionFailed:
        if await objects.get(keys.FORMAT_KEY) != expected:
            raise codec.UnreadableObject(
                f"{keys.FORMAT_KEY} names another format; use the program version that wrote this bucket"
            ) from None


async def catch_up(ports: Ports, account: AccountId) -> None:
    """Fold the account's log entries that the catalog has not seen."""
    rows = await ports.catalog.query("SELECT log_seq FROM accounts WHERE account_id = ?", (account,))
    for entry, entry_hash in await log(ports.objects, account, after=rows[0]["log_seq"] if rows else -1):
        await ports.catalog.batch(account_fold.statements(entry, entry_hash))


async def claim_namespace(ports: Ports, account: AccountId, namespace: str) -> None:
    """The account owns ``namespace`` from now on; owning it already is no error."""
    rows = await ports.catalog.query(
        "SELECT 1 FROM namespaces WHERE account_id = ? AND namespace = ?", (account, namespace)
    )
    if not rows:
        await append(ports, account, "namespace", {"namespace": namespace})


async def default_namespace(ports: Ports, account: AccountId) -> str:
    rows = await ports.catalog.query("SELECT default_namespace FROM accounts WHERE account_id = ?", (account,))
    if not rows:
        raise MempersistError(Code.AUTHENTICATION, "the account does not exist")
    return str(rows[0]["default_namespace"])


async def append(ports: Ports, account: AccountId, operation: AccountOperation, values: JsonObject) -> None:
    """Write the next log entry and fold it. :raises MempersistError: CANONICAL_STORAGE if it could not be written."""
    intent = ports.ids.token(16)
    await ports.catalog.batch([intents.begin(intent, account, (), timestamps.from_ms(ports.clock.now_ms()))])
    for _ in range(_MAX_RACES):
        await catch_up(ports, account)
        rows = await ports.catalog.query("SELECT log_seq, log_hash FROM accounts WHERE account_id = ?", (account,))
        if not rows:
            raise MempersistError(Code.AUTHENTICATION, "the account does not exist")
        seq = rows[0]["log_seq"] + 1
        now = timestamps.from_ms(ports.clock.now_ms())
        data = codec.encode_account_entry(AccountEntry(account, seq, operation, values, now, rows[0]["log_hash"]))
        try:
            await ports.objects.put(keys.account_log(account, seq), data, if_absent=True)
        except PreconditionFailed:
            continue  # another writer was first; fold what it wrote and try behind it
        except StorageError as error:
            raise MempersistError(Code.CANONICAL_STORAGE, "the account log could not be written; try again") from error
        await catch_up(ports, account)
        await ports.catalog.batch([intents.settled(intent)])
        return
    raise MempersistError(Code.RETRYABLE_INFRASTRUCTURE, "the account log is contended; try again")
