"""What an upload holds: which files are conversations and in what order, which are assets, and what is left out.

A ZIP's files may come in any order and under any folder.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from mempersist import limits
from mempersist.errors import MempersistError
from mempersist.imports import manifest, roles, survey
from mempersist.imports.manifest import AssetName
from mempersist.imports.media import asset_id_of_member
from mempersist.imports.problems import Finding, ItemError, unreadable
from mempersist.imports.scanner import first_position
from mempersist.imports.source import ByteSource
from mempersist.imports.zipreader import Directory, Member, inflate, members, read_directory
from mempersist.text import printable

__all__ = [
    "AssetMember",
    "AssetName",
    "ConversationFile",
    "ExportLayout",
    "asset_members",
    "read_asset_names",
    "read_layout",
]

_HEAD_BYTES = 64 * limits.KIB
_FOREIGN_HEADS = (
    (b"\x1f\x8b", "a gzip archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!", "a RAR archive"),
    (b"%PDF-", "a PDF"),
    (b"<", "a web page or XML"),
)


@dataclass(frozen=True, slots=True)
class ConversationFile:
    """A file with conversations; ``member`` is None where the upload itself is that file."""

    name: str
    member: Member | None


@dataclass(frozen=True, slots=True)
class ExportLayout:
    """The plan of an import.

    :param conversations: in the order in which they are to be read.
    :param nested: ZIPs within the archive, given only where no conversations stand beside them.
    :param name_map: :param library: the files that say what assets are called.
    :param assets: how many members :func:`asset_members` yields; ``asset_bytes``: their size as the archive claims.
    :param skipped: how many members are left out, by the code of the reason.
    :param excluded: numbers of members that overlap another one or repeat its name.
    """

    kind: Literal["json", "zip"]
    directory: Directory | None = None
    conversations: tuple[ConversationFile, ...] = ()
    nested: tuple[Member, ...] = ()
    name_map: Member | None = None
    library: Member | None = None
    assets: int = 0
    asset_bytes: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    excluded: frozenset[int] = frozenset()

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "excluded": sorted(self.excluded)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ExportLayout:
        def member(raw: dict[str, Any] | None) -> Member | None:
            return Member(**raw) if raw else None

        return cls(
            kind=value["kind"],
            directory=Directory(**value["directory"]) if value["directory"] else None,
            conversations=tuple(ConversationFile(raw["name"], member(raw["member"])) for raw in value["conversations"]),
            nested=tuple(Member(**raw) for raw in value["nested"]),
            name_map=member(value["name_map"]),
            library=member(value["library"]),
            assets=value["assets"],
            asset_bytes=value["asset_bytes"],
            skipped=dict(value["skipped"]),
            findings=tuple(Finding(**raw) for raw in value["findings"]),
            excluded=frozenset(value["excluded"]),
        )


@dataclass(frozen=True, slots=True)
class AssetMember:
    """``filename`` is what a person knew the file as, where the export says so."""

    member: Member
    asset_id: str
    filename: str | None


async def read_layout(source: ByteSource, filename: str, *, nested: bool = False) -> ExportLayout:
    """Find out what an upload holds.

    :param filename: what the upload is called; only for saying better what is wrong with it.
    :param nested: ``source`` is a ZIP within a ZIP: it need not hold conversations, and is not searched for more ZIPs.
    :raises MempersistError: PERMANENT_PARSER with the reason CLAUDE_EXPORT, GROK_EXPORT, GEMINI_EXPORT,
        NO_CONVERSATIONS, NOT_AN_EXPORT, TOO_MANY_FILES, or one of the scanner's or the archive reader's.
    """
    head = await source.read(0, _HEAD_BYTES)
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    no_zip: MempersistError | None = None
    if start not in (b"{", b"["):
        try:
            directory = await read_directory(source)
        except MempersistError as error:
            if error.details["reason"] != "NOT_A_ZIP":
                raise
            no_zip = error
        else:
            return await _archive(source, directory, nested=nested)
    for magic, what in _FOREIGN_HEADS:
        if head.startswith(magic):
            message = f"the file is {what}; import the ZIP as ChatGPT made it, or the conversations.json in it"
            raise unreadable("NOT_AN_EXPORT", message)
    if no_zip is not None and head and filename.lower().endswith(".zip"):
        raise no_zip
    await first_position(source)
    _refuse_foreign(roles.vendor_of_json(head))
    if roles.role_of(filename) not in ("conversations", "unknown") and b'"mapping"' not in head:
        message = "this file of an export holds no conversations; import the whole ZIP, or the conversations.json in it"
        raise unreadable("NO_CONVERSATIONS", message)
    return ExportLayout("json", conversations=(ConversationFile(filename, None),))


async def read_asset_names(source: ByteSource, layout: ExportLayout) -> dict[str, AssetName]:
    """Names of assets by the name of their member and by their id; empty where the export has no such list."""
    names: dict[str, AssetName] = {}
    for member, parse in ((layout.library, manifest.names_from_library), (layout.name_map, manifest.names_from_map)):
        if member is None or layout.directory is None:
            continue
        with contextlib.suppress(ItemError):
            names.update(parse(await manifest.read_json(source, layout.directory, member)))
    return names


async def asset_members(
    source: ByteSource,
    layout: ExportLayout,
    names: Mapping[str, AssetName],
    *,
    start: int = 0,
    index: int = 0,
) -> AsyncGenerator[AssetMember]:
    """Yield the assets in the order of the directory, from byte ``start`` of it on, where entry ``index`` begins."""
    if layout.directory is None:
        return
    async with contextlib.aclosing(members(source, layout.directory, start=start, index=index)) as entries:
        async for member in entries:
            if survey.is_asset(member, layout.excluded):
                base = member.name.rpartition("/")[2]
                asset_id = asset_id_of_member(base) or base.rpartition(".")[0] or base
                known = names.get(base) or names.get(asset_id) or AssetName()
                yield AssetMember(member, asset_id, known.filename or _name_behind_id(base, asset_id))


def _name_behind_id(base: str, asset_id: str) -> str | None:
    """``photo of me.png`` of ``file-abc-photo of me.png``."""
    rest = base.removeprefix(asset_id)
    return printable(rest[1:])[: limits.MAX_FILENAME_CHARS] or None if rest[:1] in ("-", "_") else None


async def _archive(source: ByteSource, directory: Directory, *, nested: bool) -> ExportLayout:
    contents = await survey.survey(source, directory)
    conversations = tuple(ConversationFile(member.name, member) for member in contents.conversations)
    inner = () if nested or conversations else tuple(contents.archives)
    skipped = dict(contents.skipped)
    if len(contents.archives) > len(inner):
        skipped["UNKNOWN_FILE"] = skipped.get("UNKNOWN_FILE", 0) + len(contents.archives) - len(inner)
    findings = list(contents.findings)
    if conversations:
        _refuse_foreign(roles.vendor_of_json(await _head_of(source, directory, contents.conversations[0])))
    elif not inner:
        _refuse_foreign(contents.vendor)
        if not nested and not contents.assets:
            message = "the ZIP holds no conversations.json; import the export as ChatGPT made it"
            raise unreadable("NO_CONVERSATIONS", message)
        findings.append(Finding("NO_CONVERSATIONS", "the archive holds assets only", "note", "archive"))
    if unknown := skipped.get("UNKNOWN_FILE"):
        message = f"{unknown} files that are not known to be part of an export were left out"
        findings.append(Finding("UNKNOWN_FILE", message, "skipped", "archive"))
    return ExportLayout(
        kind="zip",
        directory=directory,
        conversations=conversations,
        nested=inner,
        name_map=contents.name_map,
        library=contents.library,
        assets=contents.assets,
        asset_bytes=contents.asset_bytes,
        skipped=skipped,
        findings=tuple(findings),
        excluded=contents.excluded,
    )


async def _head_of(source: ByteSource, directory: Directory, member: Member) -> bytes:
    """The first bytes of a member; none where it is damaged, which is for the import to report."""
    with contextlib.suppress(ItemError):
        async with contextlib.aclosing(inflate(source, directory, member, chunk_bytes=_HEAD_BYTES)) as pieces:
            async for piece in pieces:
                return piece
    return b""


def _refuse_foreign(vendor: roles.Vendor | None) -> None:
    if vendor is not None:
        raise unreadable(vendor.reason, vendor.message)
