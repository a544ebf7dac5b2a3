"""The walk over the whole archive, in the order of its keys, holding one conversation at a time."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from functools import partial

from mempersist import canonical
from mempersist.archive import codec, keys
from mempersist.archive.model import AccountEntry
from mempersist.imports.bodies import object_sha256
from mempersist.imports.records import decode_receipt, decode_record
from mempersist.ports import ObjectInfo, ObjectNotFound, Ports
from mempersist.recovery.verify import conversations, projections
from mempersist.recovery.verify.chains import check_chain
from mempersist.recovery.verify.findings import Slice, Verification


async def verify(
    ports: Ports, *, part: Slice | None = None, progress: Callable[[int], None] | None = None
) -> Verification:
    """Read everything and change nothing. What is written meanwhile may show as not committed or not indexed yet.

    :param part: hash the bodies of this slice only. Logs, references and the catalog are always looked at whole.
    :param progress: is told the number of objects looked at.
    :raises StorageError: / :raises CatalogError: / :raises IndexUnavailable: when a store is out of reach.
    """
    part = part or Slice()
    report = Verification()
    await _format(ports, report)
    await _accounts(ports, report)
    previous = ""
    async for name, objects in _groups(ports, keys.CONVERSATIONS, report, progress):
        found = await conversations.check(ports, name, objects, part, report)
        await projections.check(ports, found, report)
        await projections.check_strangers(ports, previous, name, report)
        previous = name
    await projections.check_strangers(ports, previous, None, report)
    await _assets(ports, part, report, progress)
    await _imports(ports, part, report, progress)
    return report


async def _format(ports: Ports, report: Verification) -> None:
    expected = canonical.dumps({"format": codec.BUCKET_FORMAT})
    try:
        if await ports.objects.get(keys.FORMAT_KEY) == expected:
            return
    except ObjectNotFound:
        pass
    report.found("FORMAT", keys.FORMAT_KEY)


async def _accounts(ports: Ports, report: Verification) -> None:
    async for name, objects in _groups(ports, keys.ACCOUNTS, report, None):
        logs = [info for info in objects if info.key.startswith(keys.account_log_prefix(name))]
        await check_chain(ports, logs, codec.decode_account_entry, partial(_is_of, name), report)
        for info in objects:
            if info not in logs:
                report.found("STRANGER", info.key)


def _is_of(account: str, entry: AccountEntry) -> bool:
    return entry.account_id == account


async def _assets(ports: Ports, part: Slice, report: Verification, progress: Callable[[int], None] | None) -> None:
    async for _, objects in _groups(ports, keys.ASSETS, report, progress):
        present = {info.key: info for info in objects}
        for info in objects:
            if info.key.endswith(".bin"):
                if info.key.removesuffix(".bin") + ".json" not in present:
                    report.found("UNCOMMITTED", info.key)
                continue
            await _asset(ports, info.key, present, part, report)


async def _asset(ports: Ports, key: str, present: dict[str, ObjectInfo], part: Slice, report: Verification) -> None:
    try:
        record = codec.decode_asset_record(await ports.objects.get(key))
    except (codec.UnreadableObject, ObjectNotFound):
        report.found("RECORD_UNREADABLE", key)
        return
    body = keys.asset(record.account_id, record.asset_id, record.sha256)
    if body not in present:
        report.found("ASSET_MISSING", body)
    elif present[body].size != record.size_bytes:
        report.found("ASSET_DAMAGED", body)
    elif part.holds(body):
        await _hash(ports, body, record.size_bytes, record.sha256, "ASSET_DAMAGED", report)


async def _imports(ports: Ports, part: Slice, report: Verification, progress: Callable[[int], None] | None) -> None:
    async for name, objects in _groups(ports, keys.IMPORTS, report, progress):
        present = {info.key: info for info in objects}
        if keys.import_record(name) not in present:
            for key in present:
                report.found("UNCOMMITTED", key)
            continue
        try:
            record = decode_record(await ports.objects.get(keys.import_record(name)))
            source, size, sha256 = record.object_key, record.size_bytes, record.sha256
            if keys.import_receipt(name) in present:
                sha256 = decode_receipt(await ports.objects.get(keys.import_receipt(name))).sha256
            else:
                report.found("IMPORT_OPEN", name)
        except (ValueError, ObjectNotFound):
            report.found("RECORD_UNREADABLE", keys.import_record(name))
            continue
        if source not in present:
            report.found("UPLOAD_MISSING", source)
        elif present[source].size != size:
            report.found("UPLOAD_DAMAGED", source)
        elif sha256 is not None and part.holds(source):
            await _hash(ports, source, size, sha256, "UPLOAD_DAMAGED", report)
        for key in present.keys() - {source, keys.import_record(name), keys.import_receipt(name)}:
            report.found("STRANGER", key)


async def _hash(ports: Ports, key: str, size: int, expected: str, code: str, report: Verification) -> None:
    try:
        if await object_sha256(ports.objects, key, size) != expected:
            report.found(code, key)
    except ObjectNotFound:
        report.found(code.replace("DAMAGED", "MISSING"), key)
    report.hashed += size


async def _groups(
    ports: Ports, prefix: str, report: Verification, progress: Callable[[int], None] | None
) -> AsyncIterator[tuple[str, list[ObjectInfo]]]:
    """The objects below ``prefix`` by the folder they are in, in the order of their keys."""
    cursor: str | None = None
    name, held = "", list[ObjectInfo]()
    while True:
        page = await ports.objects.list(prefix, cursor=cursor)
        for info in page.objects:
            report.objects += 1
            folder = info.key.removeprefix(prefix).partition("/")[0]
            if folder != name and held:
                yield name, held
                held = []
            name = folder
            held.append(info)
        if progress is not None:
            progress(report.objects)
        cursor = page.cursor
        if cursor is None:
            break
    if held:
        yield name, held
