"""Turns that store the assets of an export: images, audio and files that its messages point to."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Literal

from mempersist.archive import codec, keys
from mempersist.archive.model import AssetRecord
from mempersist.imports import archives
from mempersist.imports.counts import Counts, Fate, tally
from mempersist.imports.layout import AssetMember, ExportLayout, asset_members
from mempersist.imports.media import sniff
from mempersist.imports.problems import ItemError
from mempersist.imports.projection import asset_statements
from mempersist.imports.records import FindingRow
from mempersist.imports.runs import Run, Step, keep_lease
from mempersist.imports.source import ByteSource
from mempersist.imports.state import State
from mempersist.imports.zipreader import inflate
from mempersist.jobs import Job
from mempersist.limits import KIB, MAX_ASSET_BYTES, MAX_TURN_ASSET_BYTES, MAX_TURN_ASSETS, MIB
from mempersist.ports import Ports, PreconditionFailed, Statement

_WHOLE_BYTES = 8 * MIB
"""A smaller asset is inflated once and held; a larger one is inflated twice, first for its hash, then for the store."""
_HEAD_BYTES = 4 * KIB


async def step(ports: Ports, job: Job, run: Run) -> Step:
    """:raises MoreToStage: / :raises PiecesLost: / :raises LeaseLost:"""
    state, layout = await _locate(ports, job, run)
    if layout is None:
        return Step(state)
    source = await archives.open_archive(ports, job, run, state.archive)
    names = await archives.asset_names(ports, job, run)
    findings: list[FindingRow] = []
    statements: list[Statement] = []
    counts = Counts()
    stored = size = 0
    start, index = state.asset_at
    async with contextlib.aclosing(asset_members(source, layout, names, start=start, index=index)) as members:
        async for asset in members:
            member = asset.member
            state = replace(
                state,
                asset_at=(member.next_entry, member.index + 1),
                bytes_done=state.bytes_done + member.size,
            )
            try:
                record, fate = await _store(ports, run, source, layout, asset)
            except ItemError as error:
                lost: Literal["skipped", "failed"] = (
                    "skipped" if error.skipped or error.code == "TOO_LARGE" else "failed"
                )
                findings.append(FindingRow(_position(state.archive, asset), lost, error.code, error.message))
                counts += Counts(assets=tally(lost))
            else:
                statements += asset_statements(record)
                counts += Counts(assets=tally(fate), asset_bytes=record.size_bytes if fate == "imported" else 0)
            stored, size = stored + 1, size + member.size
            if stored >= MAX_TURN_ASSETS or size >= MAX_TURN_ASSET_BYTES:
                return Step(state, findings, counts, statements)
            if member.size > _WHOLE_BYTES:
                await keep_lease(ports, job)
    return Step(_next_archive(state), findings, counts, statements)


async def _locate(ports: Ports, job: Job, run: Run) -> tuple[State, ExportLayout | None]:
    """The state at the next archive with assets, with its layout; or at the finish, with None."""
    state = run.state
    while state.archive < state.archives:
        layout = await archives.layout_of(ports, job, run, state.archive)
        if layout is not None and layout.assets:
            return state, layout
        state = _next_archive(state)
    return replace(state, phase="finish"), None


def _next_archive(state: State) -> State:
    return replace(state, archive=state.archive + 1, asset_at=(0, 0))


async def _store(
    ports: Ports, run: Run, source: ByteSource, layout: ExportLayout, asset: AssetMember
) -> tuple[AssetRecord, Fate]:
    """Store the bytes under their hash, then the record that makes them an asset.

    :raises ItemError: the member is damaged or too large.
    """
    digest = hashlib.sha256()
    held: list[bytes] = []
    head = b""
    size = 0
    async for chunk in _bytes_of(source, layout, asset):
        digest.update(chunk)
        size += len(chunk)
        if len(head) < _HEAD_BYTES:
            head += chunk[: _HEAD_BYTES - len(head)]
        if asset.member.size <= _WHOLE_BYTES:
            held.append(chunk)
    sha256 = digest.hexdigest()
    key = keys.asset(run.account, asset.asset_id, sha256)
    if await ports.objects.head(key) is None:
        body = b"".join(held) if asset.member.size <= _WHOLE_BYTES else _bytes_of(source, layout, asset)
        await ports.objects.put(key, body)
    record = AssetRecord(run.account, asset.asset_id, sha256, size, sniff(head), asset.filename, run.import_id)
    record_key = keys.asset_record(run.account, asset.asset_id, sha256)
    try:
        await ports.objects.put(record_key, codec.encode_asset_record(record), if_absent=True)
    except PreconditionFailed:
        record = codec.decode_asset_record(await ports.objects.get(record_key))
    return record, "imported" if record.import_id == run.import_id else "unchanged"


def _bytes_of(source: ByteSource, layout: ExportLayout, asset: AssetMember) -> AsyncIterator[bytes]:
    if layout.directory is None:
        raise ItemError("BAD_ARCHIVE", "an asset without an archive")
    return inflate(source, layout.directory, asset.member, max_bytes=MAX_ASSET_BYTES)


def _position(archive: int, asset: AssetMember) -> str:
    return asset.member.name if archive == 0 else f"{archive}/{asset.member.name}"
