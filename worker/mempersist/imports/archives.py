"""The archives of an upload: the uploaded file itself, number 0, and ZIPs inside it, from number 1 on.

Everything here can be found out again from the upload, so what is kept of it are scratch objects.
"""

from __future__ import annotations

from mempersist import canonical
from mempersist.archive import keys
from mempersist.errors import MempersistError
from mempersist.imports import staging
from mempersist.imports.layout import AssetName, ConversationFile, ExportLayout, read_asset_names, read_layout
from mempersist.imports.problems import ItemError
from mempersist.imports.runs import Run
from mempersist.imports.source import ByteSource, ObjectSource, SliceSource
from mempersist.imports.zipreader import Directory, Member, data_offset
from mempersist.jobs import Job
from mempersist.ports import ObjectNotFound, Ports


class MoreToStage(Exception):
    """The turn was spent on inflating a member; another turn goes on with it."""


async def open_archive(ports: Ports, job: Job, run: Run, archive: int) -> ByteSource:
    """:raises ItemError: an inner archive is damaged. :raises MoreToStage:"""
    upload = ObjectSource(ports.objects, run.object_key, run.size_bytes)
    if archive == 0:
        return upload
    outer = await layout_of(ports, job, run, 0)
    if outer is None or outer.directory is None:
        raise ItemError("BAD_ARCHIVE", "the outer archive cannot be read any more")
    return await _open_member(
        ports, job, upload, outer.directory, outer.nested[archive - 1], _scratch(run, f"archive-{archive}/")
    )


async def open_file(ports: Ports, job: Job, run: Run, archive: int, layout: ExportLayout, number: int) -> ByteSource:
    """The bytes of the archive's conversation file ``number``. :raises ItemError: / :raises MoreToStage:"""
    source = await open_archive(ports, job, run, archive)
    member = layout.conversations[number].member
    if member is None or layout.directory is None:
        return source
    return await _open_member(ports, job, source, layout.directory, member, file_prefix(run, archive, number))


def file_prefix(run: Run, archive: int, number: int) -> str:
    """Where the pieces of a conversation file are kept while it is read."""
    return _scratch(run, f"file-{archive}-{number}/")


async def survey(ports: Ports, job: Job, run: Run, archive: int) -> ExportLayout:
    """Find out what an archive holds, and keep it.

    :raises MempersistError: PERMANENT_PARSER: it is not an export that can be imported.
    :raises ItemError: / :raises MoreToStage:
    """
    source = await open_archive(ports, job, run, archive)
    layout = await read_layout(source, run.filename, nested=archive > 0)
    await ports.objects.put(_layout_key(run, archive), canonical.dumps(layout.as_json()))
    return layout


async def layout_of(ports: Ports, job: Job, run: Run, archive: int) -> ExportLayout | None:
    """What :func:`survey` found; None for an inner archive that cannot be read. :raises MoreToStage:"""
    try:
        kept = canonical.loads(await ports.objects.get(_layout_key(run, archive)))
    except ObjectNotFound:
        try:
            return await survey(ports, job, run, archive)
        except (MempersistError, ItemError):
            return None
    return ExportLayout.from_json(kept)


async def asset_names(ports: Ports, job: Job, run: Run) -> dict[str, AssetName]:
    """Names of assets from the maps of all archives, as an asset may lie in another archive than its map.

    :raises MoreToStage:
    """
    key = _scratch(run, "names.json")
    try:
        kept = canonical.loads(await ports.objects.get(key))
        return {asset: AssetName(filename, media_type) for asset, (filename, media_type) in kept.items()}
    except ObjectNotFound:
        pass
    names: dict[str, AssetName] = {}
    for archive in range(run.state.archives):
        layout = await layout_of(ports, job, run, archive)
        if layout is not None:
            names.update(await read_asset_names(await open_archive(ports, job, run, archive), layout))
    await ports.objects.put(
        key, canonical.dumps({asset: [name.filename, name.media_type] for asset, name in names.items()})
    )
    return names


def label(run: Run, archive: int, file: ConversationFile) -> str:
    """What positions call a conversation file."""
    name = run.filename if file.member is None else file.name
    return name if archive == 0 else f"{archive}/{name}"


async def _open_member(
    ports: Ports, job: Job, source: ByteSource, directory: Directory, member: Member, prefix: str
) -> ByteSource:
    """A stored member is read where it lies, a packed one from its pieces."""
    if member.stored:
        return SliceSource(source, await data_offset(source, directory, member), member.size)
    if not await staging.is_staged(ports.objects, prefix, member) and not await staging.stage(
        ports, job, source, directory, member, prefix
    ):
        raise MoreToStage
    return staging.PieceSource(ports.objects, prefix, member.size)


def _layout_key(run: Run, archive: int) -> str:
    return _scratch(run, f"layout-{archive}.json")


def _scratch(run: Run, name: str) -> str:
    return keys.import_work(run.import_id) + name
