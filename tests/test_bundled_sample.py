"""The bundled sample holds what makes real exports hard, and all of it can be read."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from mempersist.archive import graph
from mempersist.archive.model import SourceConversation
from mempersist.imports.chatgpt.content import KNOWN_TYPES
from mempersist.imports.chatgpt.conversation import UNTITLED, normalise
from mempersist.imports.layout import ExportLayout, asset_members, read_asset_names, read_layout
from mempersist.imports.media import sniff
from mempersist.imports.problems import ItemError
from mempersist.imports.scanner import ScannedItem, scan
from mempersist.imports.zipreader import inflate
from mempersist_ops.sample import DEMO_QUERY, build
from tests.rigs.sources import BytesSource, collect


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return build(tmp_path_factory.mktemp("sample") / "sample.zip").read_bytes()


async def layout_of(archive: bytes) -> ExportLayout:
    return await read_layout(BytesSource(archive), "sample.zip")


async def conversations_of(archive: bytes) -> tuple[dict[str, SourceConversation], Counter[str]]:
    source = BytesSource(archive)
    layout = await layout_of(archive)
    assert layout.directory is not None
    found: dict[str, SourceConversation] = {}
    problems: Counter[str] = Counter()
    for file in layout.conversations:
        assert file.member is not None
        data = b"".join(await collect(inflate(source, layout.directory, file.member)))
        for item in await collect(scan(BytesSource(data))):
            assert isinstance(item, ScannedItem)
            assert item.error is None
            try:
                conversation = normalise(item.value)
                found[conversation.title] = conversation
            except ItemError as error:
                problems[error.code] += 1
    return found, problems


def test_it_is_the_same_whenever_it_is_built(archive: bytes, tmp_path: Path) -> None:
    assert build(tmp_path / "again.zip").read_bytes() == archive


async def test_its_layout_is_that_of_a_recent_export(archive: bytes) -> None:
    layout = await layout_of(archive)
    assert [file.name for file in layout.conversations] == ["conversations-000.json", "conversations-001.json"]
    assert (layout.assets, layout.skipped) == (3, {"NOT_IMPORTED": 4})
    assert {finding.severity for finding in layout.findings} == {"skipped"}


async def test_everything_but_an_empty_shell_is_read(archive: bytes) -> None:
    found, problems = await conversations_of(archive)
    assert (len(found), problems) == (29, {"NO_MAPPING": 1})


@pytest.mark.parametrize(
    ("title", "words"),
    [
        ("Ten days in Slovenia by train", "Lake Bohinj"),
        ("Sourdough that does not spread", "sixty-five percent hydration"),
        ("Rust: cannot borrow as mutable", "the borrow checker refuses the push"),
        ("Can I deduct part of the heating?", "[attachment: utility bills 2025.pdf]"),
        ("Outline of a novel", "Ida inherits a lighthouse"),
        ("Hop yields in dry summers", "(Hop report of the growers' union)"),
        ("Opening hours of the tide museum", "The Museum of Tides opens Tuesday"),
        ("Opening hours of the tide museum", "at noon (Visit the Museum of Tides)."),
        ("Median of the waiting times", "statistics.median"),
        ("A fox for the birthday card", "[image: A fox crossing a frozen lake"),
        ("Sleeping after night shifts", "I bake on Sundays."),
        ("A type of content that nobody knows", "The sink stands under the window."),
        (UNTITLED, "teaspoons"),
        ("Fahrrad: die Kette springt über", "Kassette"),
        ("Resep rendang dari Ibu", "lengkuas"),
        ("बालकनी में टमाटर", "चेरी टमाटर"),
        ("味噌汁のだしの取り方", "鰹節"),
        ("阳台种番茄的问题", "樱桃番茄"),
    ],
)
async def test_its_texts_are_found_in_every_language(archive: bytes, title: str, words: str) -> None:
    found, _ = await conversations_of(archive)
    texts = [node.text for node in found[title].nodes if node.is_message]
    assert any(words in text for text in texts)
    assert not any("\ue200" in text for text in texts)


async def test_it_has_every_kind_of_trouble(archive: bytes) -> None:
    found, _ = await conversations_of(archive)
    troubles = set()
    branches = 0
    for conversation in found.values():
        parents = graph.parents_of(conversation.nodes)
        path = graph.active_path(parents, conversation.current_source_node_id)
        branches += bool(graph.alternate_branches(parents, path.node_ids))
        troubles |= {text.partition(":")[0] for text in (*path.anomalies, *conversation.anomalies)}
    assert troubles == {
        "absurd_time",
        "current_node_missing",
        "cycle",
        "dangling_parent",
        "no_text",
        "node_not_object",
        "unknown_content_type",
    }
    assert branches >= 4
    assert any("\ud83d" in conversation.title for conversation in found.values())


async def test_it_has_most_types_of_content(archive: bytes) -> None:
    found, _ = await conversations_of(archive)
    kinds = {node.kind for conversation in found.values() for node in conversation.nodes}
    assert kinds - {"none", "hologram"} == KNOWN_TYPES - {"computer_output", "citable_code_output"}


async def test_its_files_are_what_their_messages_point_to(archive: bytes) -> None:
    found, _ = await conversations_of(archive)
    source, layout = BytesSource(archive), await layout_of(archive)
    assert layout.directory is not None
    pointed = {ref.asset_id for conversation in found.values() for node in conversation.nodes for ref in node.assets}
    named = {}
    async for asset in asset_members(source, layout, await read_asset_names(source, layout)):
        head = b"".join(await collect(inflate(source, layout.directory, asset.member)))
        named[asset.filename] = sniff(head)
        assert asset.asset_id in pointed
    assert named == {"balcony in april.png": "image/png", "histogram.png": "image/png", "voice note.wav": "audio/wav"}


def test_both_forms_of_nodes_and_the_late_name_map_are_there(archive: bytes, tmp_path: Path) -> None:
    path = tmp_path / "sample.zip"
    path.write_bytes(archive)
    with zipfile.ZipFile(path) as opened:
        names = opened.namelist()
        classic, slim = (json.loads(opened.read(f"conversations-00{number}.json")) for number in (0, 1))
    assert names.index("conversation_asset_file_names.json") > max(
        names.index(name) for name in names if ".dat" in name
    )
    assert any("children" in node for node in classic[0]["mapping"].values())
    assert not any("children" in node for each in slim for node in each["mapping"].values())


async def test_the_demo_question_is_answered_by_it(archive: bytes) -> None:
    found, _ = await conversations_of(archive)
    words = DEMO_QUERY.split()
    text = " ".join(node.text for node in found["Rust: cannot borrow as mutable"].nodes).lower()
    assert all(word in text for word in words)
