"""Whatever is wrong with an export, each bad item has a clear error and all others are read."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest

from mempersist import limits
from mempersist.archive.model import SourceConversation
from mempersist.imports.chatgpt.conversation import normalise
from mempersist.imports.layout import read_layout
from mempersist.imports.problems import Finding, ItemError
from mempersist.imports.scanner import scan
from mempersist.imports.source import ByteSource, SliceSource
from mempersist.imports.zipreader import data_offset
from tests.rigs.chatgpt import conversation, message
from tests.rigs.sources import BytesSource, PatternSource, collect, literal, repeated
from tests.rigs.zips import Entry, archive


@dataclass
class Outcome:
    conversations: dict[str, SourceConversation] = field(default_factory=dict)
    problems: Counter[str] = field(default_factory=Counter)
    items: int = 0


async def read(source: ByteSource, outcome: Outcome | None = None) -> Outcome:
    """All conversations of a JSON source, the way an import reads them."""
    outcome = outcome or Outcome()
    async with contextlib.aclosing(scan(source)) as items:
        async for item in items:
            if isinstance(item, Finding):
                outcome.problems[item.code] += 1
                continue
            outcome.items += 1
            try:
                if item.error:
                    raise item.error
                found = normalise(item.value)
                outcome.conversations[found.source_key] = found
            except ItemError as error:
                outcome.problems[error.code] += 1
    return outcome


def chat(name: str, text: str = "hello", **fields: Any) -> str:
    return json.dumps({"title": name, "create_time": 1.7e9, **conversation(message(text), id=name, **fields)})


async def test_one_file_with_everything_wrong_in_it() -> None:
    items = [
        chat("first"),
        json.dumps({"title": "shell", "id": "shell"}),
        "null",
        "{" + '"deep":{' * 10_000 + "}" * 10_001,
        '{"title": "broken", "create_time": }',
        chat("surrogate", "half \ud83d"),
        '{"n": ' + "7" * 5000 + "}",
        json.dumps({"id": "cycle", "mapping": {"a": {"parent": "b"}, "b": {"parent": "a"}}}),
        json.dumps({"id": "dangling", "mapping": {"a": {"parent": "gone", "message": message("x")}}}),
        chat("bytes").replace("hello", "h\x00llo"),
        '{"title": "t", "create_time": NaN, "mapping": {"a": {"message": null, "parent": Infinity}}, "id": "nan"}',
        chat("last"),
    ]
    outcome = await read(BytesSource(("[" + ",\n".join(items) + "]").encode()))
    assert set(outcome.conversations) == {"first", "surrogate", "cycle", "dangling", "bytes", "nan", "last"}
    assert outcome.problems == {
        "NO_MAPPING": 1,
        "NOT_AN_OBJECT": 1,
        "TOO_DEEP": 1,
        "MALFORMED_JSON": 1,
        "NUMBER_TOO_LONG": 1,
    }
    assert outcome.items == len(items)


async def test_a_forty_megabyte_conversation_costs_only_itself() -> None:
    before, after = (chat(name).encode() for name in ("before", "after"))
    opening = b', {"title": "huge", "create_time": 1, "id": "huge", "mapping": {"a": {"message": {"content": "'
    source = PatternSource(
        [literal(b"[" + before + opening), repeated(b"x", 40 * limits.MIB), literal(b'"}}}}, ' + after + b"]")]
    )
    outcome = await read(source)
    assert (set(outcome.conversations), outcome.problems) == ({"before", "after"}, {"TOO_LARGE": 1})
    assert source.longest <= limits.MAX_CONVERSATION_BYTES + 8


async def test_a_conversation_just_within_the_limit_is_imported() -> None:
    text = "y" * (limits.MAX_CONVERSATION_BYTES - 1000)
    outcome = await read(BytesSource(f"[{chat('large', text)}]".encode()))
    assert outcome.conversations["large"].nodes[0].text == text


@pytest.mark.parametrize("method", [0, 8])
async def test_a_hostile_archive_around_honest_conversations(method: int) -> None:
    shards = [f"[{chat(name)}]".encode() for name in ("one", "two")]
    entries = [
        Entry(b"conversations-000.json", shards[0], method=0),
        Entry(b"conversations-001.json", shards[1], method=0),
        Entry(b"../conversations-002.json", shards[0], method=method),
        Entry(b"conversations-003.json", b"/etc/passwd", attributes=0o120777 << 16, method=method),
        Entry(b"conversations-004.json", shards[0], flags=1, method=method),
        Entry(b"conversations-001.json", shards[0], method=method),
        Entry(b"file-bomb.dat", b"\0" * 4 * limits.MIB),
    ]
    source = BytesSource(archive(entries))
    layout = await read_layout(source, "export.zip")
    assert layout.directory is not None
    outcome = Outcome()
    for file in layout.conversations:
        assert file.member is not None
        begin = await data_offset(source, layout.directory, file.member)
        await read(SliceSource(source, begin, file.member.size), outcome)
    assert set(outcome.conversations) == {"one", "two"}
    assert layout.skipped == {"UNSAFE_NAME": 1, "SYMLINK": 1, "ENCRYPTED": 1, "DUPLICATE_NAME": 1}
    assert Counter(finding.severity for finding in layout.findings)["failed"] >= 4


async def test_a_latin_1_export_is_readable_and_noted() -> None:
    data = f"[{chat('Größe', 'Übermäßig süß', marker='x')}]".encode().decode("unicode_escape").encode("latin-1")
    (item,) = await collect(scan(BytesSource(data)))
    assert not isinstance(item, Finding)
    assert normalise(item.value).nodes[0].text == "Übermäßig süß"
    assert [note.code for note in item.notes] == ["BAD_ENCODING"]


async def test_findings_and_errors_hold_no_text_of_the_person() -> None:
    secret = "sesame"
    items = [f'{{"title": "{secret}", }}', json.dumps({"title": secret}), json.dumps([secret])]
    for each in await collect(scan(BytesSource(("[" + ",".join(items) + "] " + secret).encode()))):
        if isinstance(each, Finding):
            assert secret not in each.message
        elif each.error:
            assert secret not in each.error.message
        else:
            with pytest.raises(ItemError) as caught:
                normalise(each.value)
            assert secret not in caught.value.message
