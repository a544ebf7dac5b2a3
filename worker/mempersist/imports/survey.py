"""One look at every entry of an archive's directory, in memory that does not grow with what the entries say."""

from __future__ import annotations

import contextlib
import hashlib
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from mempersist import limits
from mempersist.imports import roles
from mempersist.imports.manifest import Manifest, parse_manifest, read_json
from mempersist.imports.problems import Finding, ItemError, Severity, unreadable
from mempersist.imports.source import ByteSource
from mempersist.imports.zipreader import LOCAL_HEADER_BYTES, Directory, Member, member_error, members

_MAX_EXCLUDED = 1000
_MAX_MISSING = 100
_MAX_FINDINGS = 1000
"""Of more problems than these only the number is kept."""


@dataclass(slots=True)
class Contents:
    """What an archive holds. See ``layout.ExportLayout`` for the fields that it shares."""

    conversations: list[Member] = field(default_factory=list)
    archives: list[Member] = field(default_factory=list)
    name_map: Member | None = None
    library: Member | None = None
    assets: int = 0
    asset_bytes: int = 0
    vendor: roles.Vendor | None = None
    skipped: Counter[str] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)
    excluded: frozenset[int] = frozenset()


def is_asset(member: Member, excluded: frozenset[int]) -> bool:
    """Whether the member is an asset whose bytes can be had."""
    if member.is_directory or member.problem or member.index in excluded:
        return False
    return roles.role_of(member.name) == "asset"


async def survey(source: ByteSource, directory: Directory) -> Contents:
    """:raises MempersistError: BAD_ARCHIVE, TOO_MANY_MEMBERS, TOO_MANY_FILES."""
    first = _FirstLook()
    async for member in members(source, directory):
        first.take(member)
    excluded = first.excluded()
    contents = Contents(excluded=frozenset(excluded))
    promised = await _read_manifest(source, directory, first.manifest, contents)
    folder = first.manifest.name.rpartition("/")[0] + "/" if first.manifest and "/" in first.manifest.name else ""
    shards = [folder + name for name in promised.shards]
    known: Counter[str] = Counter()
    async with contextlib.aclosing(members(source, directory)) as entries:
        async for member in entries:
            _sort(member, excluded.get(member.index), shards, known, contents)
    contents.conversations.sort(key=_order)
    for name in sorted(known):
        count, reason = known[name], roles.KNOWN_FILES.get(name, "pages made with ChatGPT are not conversations")
        message = f"{name} was left out: {reason}" + (f" ({count} files)" if count > 1 else "")
        contents.findings.append(Finding("NOT_IMPORTED", message, "skipped", name))
    contents.findings += _missing(promised, folder, shards, first, contents.conversations)
    return contents


class _FirstLook:
    """What can only be known when all entries were seen: repeated names, overlaps, the manifest."""

    __slots__ = ("_ends", "_names", "_repeated", "_starts", "manifest")

    def __init__(self) -> None:
        self._starts = array("Q")
        self._ends = array("Q")
        self._names: set[bytes] = set()
        self._repeated: list[int] = []
        self.manifest: Member | None = None

    def take(self, member: Member) -> None:
        name = _fingerprint(member.name)
        if name in self._names and not member.is_directory:
            self._repeated.append(member.index)
        self._names.add(name)
        self._starts.append(member.header_offset)
        self._ends.append(member.header_offset + LOCAL_HEADER_BYTES + member.packed_size)
        usable = member.problem is None and roles.role_of(member.name) == "manifest"
        if usable and (self.manifest is None or member.name.count("/") < self.manifest.name.count("/")):
            self.manifest = member

    def holds(self, name: str) -> bool:
        return _fingerprint(name) in self._names

    def excluded(self) -> dict[int, str]:
        """Numbers of the entries to leave out, each with the reason.

        :raises MempersistError: BAD_ARCHIVE where they are so many that the archive is made to do harm.
        """
        found = dict.fromkeys(self._repeated, "DUPLICATE_NAME")
        holder = None
        for index in sorted(range(len(self._starts)), key=self._starts.__getitem__):
            if holder is not None and self._starts[index] < self._ends[holder]:
                found[index] = found[holder] = "OVERLAP"
            if holder is None or self._ends[index] > self._ends[holder]:
                holder = index
        if len(found) > _MAX_EXCLUDED:
            message = (
                f"more than {_MAX_EXCLUDED} files of the ZIP overlap or repeat a name: it is damaged or made to harm"
            )
            raise unreadable("BAD_ARCHIVE", message)
        return found


def _fingerprint(name: str) -> bytes:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()[:12]


async def _read_manifest(
    source: ByteSource, directory: Directory, member: Member | None, contents: Contents
) -> Manifest:
    if member is None:
        return Manifest()
    try:
        return parse_manifest(await read_json(source, directory, member))
    except ItemError as error:
        contents.findings.append(Finding("BAD_MANIFEST", error.message, "note", "export_manifest.json"))
        return Manifest()


def _sort(
    member: Member, exclusion: str | None, shards: Sequence[str], known: Counter[str], contents: Contents
) -> None:
    """Put an entry where it belongs."""
    if member.is_directory:
        return
    role = "conversations" if member.name in shards else roles.role_of(member.name)
    contents.vendor = contents.vendor or roles.vendor_of_name(member.name)
    problem = member.problem or exclusion
    if role == "litter":
        contents.skipped["SYSTEM_FILE"] += 1
    elif problem:
        contents.skipped[problem] += 1
        severity: Severity = "failed" if role == "conversations" else "skipped"
        if len(contents.findings) < _MAX_FINDINGS:
            message = member_error(problem).message
            contents.findings.append(Finding(problem, message, severity, f"member {member.index}"))
    elif role == "conversations":
        contents.conversations.append(member)
    elif role == "archive":
        contents.archives.append(member)
    elif role == "name_map":
        contents.name_map = contents.name_map or member
    elif role == "library":
        contents.library = contents.library or member
    elif role == "asset":
        contents.assets += 1
        contents.asset_bytes += member.size
    elif role == "known":
        base = member.name.rpartition("/")[2].lower()
        known[base if base in roles.KNOWN_FILES else "sites"] += 1
        contents.skipped["NOT_IMPORTED"] += 1
    elif role == "unknown":
        contents.skipped["UNKNOWN_FILE"] += 1
    if len(contents.conversations) + len(contents.archives) > limits.MAX_CONVERSATION_FILES:
        message = f"the ZIP holds more than {limits.MAX_CONVERSATION_FILES} files of conversations; import it in parts"
        raise unreadable("TOO_MANY_FILES", message)


def _order(member: Member) -> tuple[str, int, str]:
    folder, _, base = member.name.rpartition("/")
    numbered = roles.CONVERSATIONS.fullmatch(base)
    return folder, int(numbered[1]) if numbered and numbered[1] else -1, base


def _missing(
    promised: Manifest, folder: str, shards: Sequence[str], first: _FirstLook, found: Sequence[Member]
) -> list[Finding]:
    """Files that the manifest promises, or the numbering lets expect, and that are not there."""
    out = []
    missing = [place for place, name in enumerate(shards) if not first.holds(name)]
    for place in missing[:_MAX_MISSING]:
        message = f"file {place + 1} of {len(shards)} with conversations is missing: download the export again"
        out.append(Finding("MISSING_SHARD", message, "failed", f"shard {place + 1}"))
    others = sum(not first.holds(folder + name) for name in promised.files if folder + name not in shards)
    if others:
        message = f"{others} files that the manifest names are not in the archive"
        out.append(Finding("MISSING_FILES", message, "note", "export_manifest.json"))
    if not shards:
        out += _gaps(found)
    return out


def _gaps(found: Sequence[Member]) -> list[Finding]:
    """Holes in the numbers of ``conversations-000.json`` and so on, which begin with 0 or 1."""
    numbers: dict[str, set[int]] = {}
    for member in found:
        folder, number, _ = _order(member)
        if number >= 0:
            numbers.setdefault(folder, set()).add(number)
    out = []
    for place, folder in enumerate(sorted(numbers)):
        expected = range(1 if 0 not in numbers[folder] else 0, min(max(numbers[folder]), limits.MAX_CONVERSATION_FILES))
        lost = [number for number in expected if number not in numbers[folder]]
        for number in lost[:_MAX_MISSING]:
            message = f"conversations-{number:03d}.json is missing: download the export again"
            out.append(Finding("MISSING_SHARD", message, "failed", f"folder {place}, shard {number}"))
    return out
