"""Every layout that exports have had is told apart by its file names, in any order and under any folder."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mempersist import limits
from mempersist.errors import Code, MempersistError
from mempersist.imports.layout import ExportLayout, asset_members, read_asset_names, read_layout
from tests.rigs.sources import BytesSource, collect
from tests.rigs.zips import Entry, archive, plain

CONVERSATIONS = json.dumps([{"title": "t", "mapping": {}}])
PNG = b"\x89PNG\r\n\x1a\n"

CLASSIC: dict[str, str | bytes] = {
    "chat.html": "<html>",
    "conversations.json": CONVERSATIONS,
    "message_feedback.json": "[]",
    "model_comparisons.json": "[]",
    "shared_conversations.json": "[]",
    "user.json": "{}",
    "file-AbC123def456-photo of me.png": PNG,
    "dalle-generations/file-Xyz789-11111111-2222.webp": b"RIFF",
    "user-AAAA/file_00000000aa11-33333333.png": PNG,
    "0af1/audio/file_00000000bb22-44444444.wav": b"RIFF",
}
SHARDED = {
    "conversations-001.json": CONVERSATIONS,
    "conversations-000.json": CONVERSATIONS,
    "conversations-010.json": CONVERSATIONS,
    **{f"conversations-{number:03d}.json": CONVERSATIONS for number in range(2, 10)},
    "users.json": "[]",
}
MANIFEST = {
    "version": 1,
    "logical_files": {
        "conversations.json": {"files": ["conversations-000.json", "conversations-001.json"], "sharded": True},
        "users.json": {"files": ["users.json"], "sharded": False},
    },
    "export_files": [
        {"path": "conversations-000.json", "size_bytes": 2},
        {"path": "conversations-001.json", "size_bytes": 2},
        {"path": "file-Dat1.dat", "size_bytes": 3},
    ],
}
NEWEST: dict[str, str | bytes] = {
    "file-Dat1.dat": PNG,
    "0f1e2d.dat": b"%PDF-1.7",
    "conversations-000.json": CONVERSATIONS,
    "conversations-001.json": CONVERSATIONS,
    "conversation_asset_file_names.json": json.dumps(
        {"file-Dat1.dat": "holiday.png", "0f1e2d.dat": "../tax\x00 2025.pdf"}
    ),
    "export_manifest.json": json.dumps(MANIFEST),
    "group_chats.json": "[]",
    "library_files.json": json.dumps([{"file_id": "file-Dat1", "name": "other.png", "mime_type": "image/png"}]),
    "sites/export_manifest.json": "{}",
    "sites/page/index.html": "<p>",
    "sora.json": "[]",
    "user_settings.json": "{}",
}


async def layout_of(files: dict[str, Any], filename: str = "export") -> ExportLayout:
    return await read_layout(BytesSource(plain(files)), filename)


def names(layout: ExportLayout) -> list[str]:
    return [file.name for file in layout.conversations]


def codes(layout: ExportLayout) -> dict[str, str]:
    return {finding.code: finding.severity for finding in layout.findings}


async def refused(data: bytes, filename: str = "export") -> str:
    with pytest.raises(MempersistError) as caught:
        await read_layout(BytesSource(data), filename)
    assert caught.value.code is Code.PERMANENT_PARSER
    assert len(caught.value.message) < 300
    return str(caught.value.details["reason"])


async def test_the_classic_layout() -> None:
    layout = await layout_of(CLASSIC)
    assert names(layout) == ["conversations.json"]
    assert (layout.assets, layout.asset_bytes) == (4, 2 * len(PNG) + 8)
    assert layout.skipped == {"NOT_IMPORTED": 5}
    left_out = [finding.position for finding in layout.findings]
    assert left_out == [
        "chat.html",
        "message_feedback.json",
        "model_comparisons.json",
        "shared_conversations.json",
        "user.json",
    ]
    assert {finding.severity for finding in layout.findings} == {"skipped"}


async def test_shards_are_read_in_the_order_of_their_numbers() -> None:
    assert names(await layout_of(SHARDED)) == [f"conversations-{number:03d}.json" for number in range(11)]


async def test_the_layout_with_a_manifest_and_dat_files() -> None:
    layout = await layout_of(NEWEST)
    assert names(layout) == ["conversations-000.json", "conversations-001.json"]
    assert layout.assets == 2
    assert layout.skipped == {"NOT_IMPORTED": 5}
    assert set(codes(layout)) == {"NOT_IMPORTED"}


async def test_a_shard_that_the_manifest_promises_and_the_archive_lacks_is_reported() -> None:
    files = {name: data for name, data in NEWEST.items() if name not in ("conversations-001.json", "file-Dat1.dat")}
    layout = await layout_of(files)
    assert codes(layout)["MISSING_SHARD"] == "failed"
    assert codes(layout)["MISSING_FILES"] == "note"
    assert names(layout) == ["conversations-000.json"]


async def test_a_hole_in_the_numbering_is_reported_without_a_manifest() -> None:
    files = {name: data for name, data in SHARDED.items() if name != "conversations-004.json"}
    (finding,) = [finding for finding in (await layout_of(files)).findings if finding.code == "MISSING_SHARD"]
    assert "conversations-004.json" in finding.message


async def test_shards_numbered_from_one_have_no_hole() -> None:
    layout = await layout_of({f"conversations-{number}.json": CONVERSATIONS for number in (1, 2, 3)})
    assert layout.findings == ()


async def test_the_manifest_may_give_shards_any_name() -> None:
    manifest = {"logical_files": {"conversations.json": {"files": ["part/b.json", "part/a.json"], "sharded": True}}}
    layout = await layout_of(
        {"part/a.json": CONVERSATIONS, "part/b.json": CONVERSATIONS, "export_manifest.json": json.dumps(manifest)}
    )
    assert names(layout) == ["part/a.json", "part/b.json"]
    assert layout.findings == ()


@pytest.mark.parametrize(
    "manifest",
    [
        "[1]",
        "{",
        '{"logical_files": [], "export_files": {"a": 1}}',
        "[" * 5000,
        '{"logical_files": {"conversations.json": {"files": "x"}}}',
    ],
)
async def test_an_odd_manifest_does_no_harm(manifest: str) -> None:
    assert names(await layout_of({**SHARDED, "export_manifest.json": manifest})) == sorted(
        name for name in SHARDED if name != "users.json"
    )


@settings(max_examples=20)
@given(st.permutations(sorted(NEWEST)), st.sampled_from(["", "chatgpt export/", "a/b/ü/"]))
async def test_neither_the_order_nor_a_folder_around_them_matters(order: list[str], folder: str) -> None:
    layout = await layout_of({folder + name: NEWEST[name] for name in order})
    assert names(layout) == [folder + "conversations-000.json", folder + "conversations-001.json"]
    assert (layout.assets, layout.skipped, set(codes(layout))) == (2, {"NOT_IMPORTED": 5}, {"NOT_IMPORTED"})
    source = BytesSource(plain({folder + name: NEWEST[name] for name in order}))
    assets = await collect(asset_members(source, layout, await read_asset_names(source, layout)))
    assert {(asset.asset_id, asset.filename) for asset in assets} == {
        ("file-Dat1", "holiday.png"),
        ("0f1e2d", "tax 2025.pdf"),
    }


async def test_asset_ids_and_names_come_from_member_names_too() -> None:
    source = BytesSource(plain(CLASSIC))
    layout = await read_layout(source, "export.zip")
    assets = await collect(asset_members(source, layout, {}))
    assert {(asset.asset_id, asset.filename) for asset in assets} == {
        ("file-AbC123def456", "photo of me.png"),
        ("file-Xyz789", "11111111-2222.webp"),
        ("file_00000000aa11", "33333333.png"),
        ("file_00000000bb22", "44444444.wav"),
    }


async def test_assets_can_be_resumed_after_any_of_them() -> None:
    source = BytesSource(plain(CLASSIC))
    layout = await read_layout(source, "export.zip")
    assets = await collect(asset_members(source, layout, {}))
    for place, asset in enumerate(assets):
        at, index = asset.member.next_entry, asset.member.index + 1
        assert await collect(asset_members(source, layout, {}, start=at, index=index)) == assets[place + 1 :]


async def test_a_library_names_an_asset_that_the_map_does_not() -> None:
    files = {name: data for name, data in NEWEST.items() if name != "conversation_asset_file_names.json"}
    source = BytesSource(plain(files))
    layout = await read_layout(source, "export.zip")
    found = await read_asset_names(source, layout)
    assert (found["file-Dat1"].filename, found["file-Dat1"].media_type) == ("other.png", "image/png")


@pytest.mark.parametrize("content", ["[", "[1, null]", '{"file-Dat1.dat": 5}', "[" * 5000])
async def test_damaged_name_lists_do_no_harm(content: str) -> None:
    files = {**NEWEST, "conversation_asset_file_names.json": content, "library_files.json": content}
    source = BytesSource(plain(files))
    layout = await read_layout(source, "export.zip")
    assert await read_asset_names(source, layout) == {}


async def test_archives_within_the_archive_are_named_when_no_conversations_stand_beside_them() -> None:
    files: dict[str, Any] = {"part1of2.zip": plain(CLASSIC), "part2of2.zip": plain(SHARDED), "readme.txt": "x"}
    layout = await layout_of(files)
    assert [member.name for member in layout.nested] == ["part1of2.zip", "part2of2.zip"]
    assert layout.skipped == {"UNKNOWN_FILE": 1}
    beside = await layout_of({**files, "conversations.json": CONVERSATIONS})
    assert (beside.nested, beside.skipped) == ((), {"UNKNOWN_FILE": 3})


async def test_an_inner_archive_may_hold_assets_only_but_no_further_archive() -> None:
    inner = plain({"file-Part2.dat": PNG, "more.zip": plain(CLASSIC)})
    layout = await read_layout(BytesSource(inner), "export.zip", nested=True)
    assert (layout.assets, layout.nested, layout.conversations) == (1, (), ())


async def test_litter_of_operating_systems_is_counted_and_not_imported() -> None:
    files = {**CLASSIC, "__MACOSX/._conversations.json": "x", ".DS_Store": "x", "a/Thumbs.db": "x"}
    layout = await layout_of(files)
    assert names(layout) == ["conversations.json"]
    assert layout.skipped == {"NOT_IMPORTED": 5, "SYSTEM_FILE": 3}


async def test_unknown_files_are_counted() -> None:
    layout = await layout_of({"conversations.json": CONVERSATIONS, "what.bin": "x", "textdocs/canvas.md": "x"})
    assert layout.skipped == {"UNKNOWN_FILE": 2}
    assert codes(layout) == {"UNKNOWN_FILE": "skipped"}


async def test_an_encrypted_conversations_file_is_a_failure_and_an_encrypted_asset_is_skipped() -> None:
    entries = [
        Entry(b"conversations-000.json", b"[]"),
        Entry(b"conversations-001.json", b"[]", flags=1),
        Entry(b"file-a.dat", b"x", flags=1),
    ]
    layout = await read_layout(BytesSource(archive(entries)), "export.zip")
    assert names(layout) == ["conversations-000.json"]
    assert {finding.position: finding.severity for finding in layout.findings} == {
        "member 1": "failed",
        "member 2": "skipped",
    }


async def test_a_single_json_file_is_a_layout_of_its_own() -> None:
    for data in (CONVERSATIONS, "\ufeff" + CONVERSATIONS, '{"mapping": {}}'):
        layout = await read_layout(BytesSource(data.encode()), "my chats.json")
        assert (layout.kind, names(layout), layout.conversations[0].member) == ("json", ["my chats.json"], None)


CLAUDE = [
    {"uuid": "u", "name": "n", "created_at": "2026", "account": {"uuid": "a"}, "chat_messages": [{"text": "mapping"}]}
]
GROK = {"conversations": [{"conversation": {"id": "c"}, "responses": [{"response": {"message": "hi"}}]}]}
GEMINI = [{"header": "Gemini Apps", "title": "Prompted x", "titleUrl": "https://g", "products": ["Gemini Apps"]}]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (json.dumps(CLAUDE).encode(), "CLAUDE_EXPORT"),
        (plain({"conversations.json": json.dumps(CLAUDE), "projects.json": "[]"}), "CLAUDE_EXPORT"),
        (json.dumps({"files": [{"name": "conversations-000.zip"}]}).encode(), "CLAUDE_EXPORT"),
        (json.dumps(GROK).encode(), "GROK_EXPORT"),
        (plain({"ttl/30d/export_data/0af1/prod-grok-backend.json": json.dumps(GROK)}), "GROK_EXPORT"),
        (json.dumps(GEMINI).encode(), "GEMINI_EXPORT"),
        (plain({"Takeout/My Activity/Gemini Apps/MyActivity.html": "<p>"}), "GEMINI_EXPORT"),
        (plain({"holiday.jpg": b"\xff\xd8\xff"}), "NO_CONVERSATIONS"),
        (b"\x1f\x8b\x08", "NOT_AN_EXPORT"),
        (b"<!DOCTYPE html><html>", "NOT_AN_EXPORT"),
        (b"%PDF-1.7", "NOT_AN_EXPORT"),
        (b"Dear diary", "NOT_JSON"),
        (b"", "EMPTY_FILE"),
        ("[]".encode("utf-16"), "UNSUPPORTED_ENCODING"),
        (plain({"a": b"x" * 999})[:-30], "TRUNCATED_ARCHIVE"),
    ],
)
async def test_what_cannot_be_imported_is_called_by_its_name(data: bytes, reason: str) -> None:
    assert await refused(data) == reason


async def test_a_damaged_download_is_called_no_zip_and_not_bad_json() -> None:
    assert await refused(b"\x8f\x02 garbage", "export.ZIP") == "NOT_A_ZIP"


async def test_a_file_taken_out_of_an_export_that_holds_no_conversations_is_refused() -> None:
    assert await refused(b'[{"id": "user-1", "email": "a@b.c"}]', "users.json") == "NO_CONVERSATIONS"
    renamed = await read_layout(BytesSource(CONVERSATIONS.encode()), "users.json")
    assert names(renamed) == ["users.json"]


async def test_a_chatgpt_conversation_about_claude_is_not_taken_for_claudes() -> None:
    text = 'my "chat_messages": and conversations-000.zip'
    conversation = {"title": text, "mapping": {"a": {"message": {"content": {"parts": [text]}}}}}
    assert names(await layout_of({"conversations.json": json.dumps([conversation])})) == ["conversations.json"]


async def test_too_many_files_of_conversations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MAX_CONVERSATION_FILES", 10)
    assert await refused(plain(SHARDED)) == "TOO_MANY_FILES"


@pytest.mark.parametrize("files", [CLASSIC, SHARDED, NEWEST, {"part1of2.zip": plain(CLASSIC)}])
async def test_a_layout_survives_being_kept_as_json(files: dict[str, Any]) -> None:
    layout = await layout_of(files)
    assert ExportLayout.from_json(json.loads(json.dumps(layout.as_json()))) == layout
