"""Every type of content that exports hold becomes the text a person would search for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mempersist import canonical
from mempersist.imports.chatgpt.conversation import normalise
from tests.rigs.chatgpt import conversation, message, node_of

PRIVATE_USE = [chr(code) for code in range(0xE200, 0xE207)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content_type": "text", "parts": ["one", "two"]}, "one\ntwo"),
        ({"content_type": "text", "parts": ["", "two", None, 5]}, "two"),
        ({"content_type": "text", "parts": []}, ""),
        ({"content_type": "text", "text": "no parts"}, "no parts"),
        ({"content_type": "text"}, ""),
        (
            {"content_type": "multimodal_text", "parts": ["a", {"content_type": "text", "text": "b"}, {"text": "c"}]},
            "a\nb\nc",
        ),
        ({"content_type": "code", "language": "python", "text": "print('hi')"}, "print('hi')"),
        ({"content_type": "execution_output", "text": "hi\n42"}, "hi\n42"),
        ({"content_type": "citable_code_output", "output_str": "rows: 7"}, "rows: 7"),
        (
            {
                "content_type": "thoughts",
                "thoughts": [{"summary": "Weighing", "content": "two kinds of flour"}, {"content": "rye"}],
            },
            "Weighing\ntwo kinds of flour\nrye",
        ),
        ({"content_type": "reasoning_recap", "content": "Thought for 12 seconds"}, "Thought for 12 seconds"),
        (
            {"content_type": "tether_quote", "title": "Bread", "domain": "b.org", "text": "Let it rest."},
            "Bread\nLet it rest.",
        ),
        ({"content_type": "tether_quote", "domain": "file.pdf", "text": "Let it rest."}, "file.pdf\nLet it rest."),
        ({"content_type": "tether_browsing_display", "result": "L0: page", "summary": ""}, "L0: page"),
        (
            {"content_type": "sonic_webpage", "title": "Rye", "text": "Rye is dark.", "snippet": "Rye"},
            "Rye\nRye is dark.",
        ),
        ({"content_type": "sonic_webpage", "title": "Rye", "text": "", "snippet": "short"}, "Rye\nshort"),
        (
            {"content_type": "system_error", "name": "ToolTimeout", "text": "it took too long"},
            "ToolTimeout\nit took too long",
        ),
        (
            {"content_type": "user_editable_context", "user_profile": "I bake.", "user_instructions": "Be brief."},
            "I bake.\nBe brief.",
        ),
        ({"content_type": "model_editable_context", "model_set_context": "1. Bakes bread."}, "1. Bakes bread."),
        ("a bare string", "a bare string"),
        (["a", "bare list"], "a\nbare list"),
        ({"parts": ["without a type"]}, "without a type"),
        (7, ""),
    ],
)
def test_text_of_each_content_type(content: Any, text: str) -> None:
    (node,) = normalise(conversation({**message("", "assistant"), "content": content})).nodes
    assert node.text == text
    assert node.raw is not None
    assert node.raw["message"]["content"] == content
    expected = content.get("content_type", "text") if isinstance(content, dict) else "text"
    assert node.kind == expected


def test_a_message_with_text_but_no_content_is_read() -> None:
    (node,) = normalise(conversation({"author": {"role": "user"}, "content": None, "text": "old form"})).nodes
    assert (node.text, node.role, node.kind) == ("old form", "user", "text")


def test_a_voice_message_has_its_transcript_and_its_recordings() -> None:
    parts = [
        {"content_type": "audio_transcription", "text": "Wie lange muss der Teig ruhen?", "direction": "in"},
        {
            "content_type": "real_time_user_audio_video_asset_pointer",
            "expiry_datetime": "2026-01-01T00:00:00Z",
            "audio_asset_pointer": {
                "content_type": "audio_asset_pointer",
                "asset_pointer": "sediment://file_0a",
                "format": "wav",
            },
            "video_container_asset_pointer": {
                "content_type": "video_container_asset_pointer",
                "asset_pointer": "sediment://file_0b",
            },
            "frames_asset_pointers": [
                "sediment://file_0c",
                {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_0d"},
            ],
        },
    ]
    node = node_of({"content_type": "multimodal_text", "parts": parts}, "user")
    assert node.text == "Wie lange muss der Teig ruhen?"
    assert {(asset.asset_id, asset.kind) for asset in node.assets} == {
        ("file_0a", "audio"),
        ("file_0b", "video"),
        ("file_0c", "image"),
        ("file_0d", "image"),
    }


def test_a_message_that_is_only_an_image_is_shown_without_text() -> None:
    part = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-AbC",
        "width": 3,
        "metadata": None,
    }
    node = node_of({"content_type": "multimodal_text", "parts": [part]}, "user")
    assert (node.text, node.is_message, node.assets[0].pointer) == ("", True, "file-service://file-AbC")
    assert [(asset.asset_id, asset.kind) for asset in node.assets] == [("file-AbC", "image")]


def test_a_generated_image_is_found_by_its_prompt() -> None:
    part = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "sediment://file_1",
        "metadata": {"dalle": {"prompt": "a fox in snow"}},
    }
    assert node_of({"content_type": "multimodal_text", "parts": [part]}, "tool").text == "[image: a fox in snow]"


def test_the_prompt_of_an_image_that_the_export_lacks_is_kept() -> None:
    call = json.dumps({"prompt": "a fox in snow", "size": "1024x1024"})
    for recipient in ("dalle.text2im", "t2uay3k.sj1i4kz", "image_gen.text2im"):
        assert node_of({"content_type": "code", "text": call}, recipient=recipient).text == "[image: a fox in snow]"


def test_a_picture_drawn_by_code_is_an_asset() -> None:
    result = {
        "messages": [{"message_type": "image", "image_url": "file-service://file-Plot1"}, {"message_type": "stream"}]
    }
    node = node_of({"content_type": "execution_output", "text": ""}, "tool", metadata={"aggregate_result": result})
    assert [(asset.asset_id, asset.kind) for asset in node.assets] == [("file-Plot1", "image")]
    assert node.is_message


def test_attachments_are_found_by_name_and_joined_with_the_image_they_name() -> None:
    part = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://file-Img1"}
    attached = [
        {"id": "file-Img1", "name": "garden.jpg", "mime_type": "image/jpeg", "size": 5},
        {"id": "file-Doc1", "name": "Steuer 2025.pdf", "mimeType": "application/pdf"},
        {"name": "only a name.txt"},
        "odd",
        {"size": 3},
    ]
    content = {"content_type": "multimodal_text", "parts": [part, "Look at this."]}
    node = node_of(content, "user", metadata={"attachments": attached})
    assert node.text == (
        "Look at this.\n[attachment: garden.jpg]\n[attachment: Steuer 2025.pdf]\n[attachment: only a name.txt]"
    )
    assert [(asset.asset_id, asset.kind, asset.name, asset.media_type) for asset in node.assets] == [
        ("file-Img1", "image", "garden.jpg", "image/jpeg"),
        ("file-Doc1", "file", "Steuer 2025.pdf", "application/pdf"),
        ("only a name.txt", "file", "only a name.txt", None),
    ]


def test_a_file_in_the_sandbox_is_a_reference_that_never_has_bytes() -> None:
    node = node_of("Here: [table](sandbox:/mnt/data/sales%202025.csv) and (sandbox:/mnt/data/plot.png).")
    assert [(asset.asset_id, asset.name) for asset in node.assets] == [
        ("sandbox:/mnt/data/sales%202025.csv", "sales%202025.csv"),
        ("sandbox:/mnt/data/plot.png", "plot.png"),
    ]


@pytest.mark.parametrize(
    ("recipient", "call", "text"),
    [
        (
            "canmore.create_textdoc",
            {"name": "Letter", "type": "document", "content": "Dear neighbour,\nthe hedge"},
            "Letter\nDear neighbour,\nthe hedge",
        ),
        (
            "canmore.update_textdoc",
            {"updates": [{"pattern": ".*", "multiple": True, "replacement": "Dear all,"}, {"replacement": "Bye"}]},
            "Dear all,\nBye",
        ),
        (
            "canmore.comment_textdoc",
            {"comments": [{"pattern": "hedge", "comment": "Say which hedge."}]},
            "Say which hedge.",
        ),
    ],
)
def test_the_canvas_is_read_as_its_text(recipient: str, call: Any, text: str) -> None:
    for content in ({"content_type": "code", "text": json.dumps(call)}, json.dumps(call)):
        assert node_of(content, recipient=recipient).text == text


@pytest.mark.parametrize(
    "text", ['{"name": "Letter", "content": "Dear neigh', "[1]", "{}", '{"a":' * 20_000, "plain words"]
)
def test_a_canvas_call_that_is_no_document_keeps_its_own_text(text: str) -> None:
    assert node_of({"content_type": "code", "text": text}, recipient="canmore.create_textdoc").text == text


def test_what_is_written_to_memory_is_kept() -> None:
    assert node_of("Is allergic to walnuts.", recipient="bio").text == "Is allergic to walnuts."
    assert node_of("Model set context updated.", "tool", author={"role": "tool", "name": "bio"}).is_message


REPORT = {
    "content": {"content_type": "text", "parts": ["# Hop farming\nYields rose \ue200cite\ue202turn0search1\ue201."]},
    "metadata": {
        "content_references": [
            {"matched_text": "\ue200cite\ue202turn0search1\ue201", "items": [{"title": "Hops 2025"}]}
        ]
    },
}
REPORT_TEXT = "# Hop farming\nYields rose (Hops 2025)."


@pytest.mark.parametrize(
    ("role", "content", "metadata", "text"),
    [
        ("assistant", "", {"chatgpt_sdk": {"widget_state": json.dumps({"report_message": REPORT})}}, REPORT_TEXT),
        ("assistant", "", {"chatgpt_sdk": {"widget_state": {"report_message": REPORT}}}, REPORT_TEXT),
        (
            "assistant",
            "I looked into it.",
            {"chatgpt_sdk": {"tool_response_metadata": {"venus_widget_state": {"report_message": REPORT}}}},
            "I looked into it.\n" + REPORT_TEXT,
        ),
        ("tool", "", {"venus_widget_state": json.dumps({"report_message": REPORT})}, REPORT_TEXT),
        ("tool", "The latest state of the widget is: " + json.dumps({"report_message": REPORT}), {}, REPORT_TEXT),
        ("assistant", "Waiting.", {"chatgpt_sdk": {"widget_state": '{"status": "running"}'}}, "Waiting."),
        ("assistant", "Waiting.", {"chatgpt_sdk": {"widget_state": "{broken"}}, "Waiting."),
        ("assistant", "Waiting.", {"chatgpt_sdk": {"widget_state": '{"a":' * 20_000}}, "Waiting."),
    ],
)
def test_a_deep_research_report_is_read_from_where_it_hides(role: str, content: str, metadata: Any, text: str) -> None:
    hidden = {**metadata, "is_visually_hidden_from_conversation": True}
    node = node_of(content, role, metadata=hidden)
    assert node.text == text
    assert node.is_message


def test_custom_instructions_are_kept_visible_in_the_persons_own_words() -> None:
    wrapped = {
        "content_type": "user_editable_context",
        "user_profile": "The user provided the following: ```I bake.```",
        "user_instructions": "Answer like this: ```Be brief.```",
    }
    data = {"about_user_message": "I bake.", "about_model_message": "Be brief."}
    metadata = {"is_visually_hidden_from_conversation": True, "user_context_message_data": data}
    node = node_of(wrapped, "user", metadata=metadata)
    assert (node.text, node.role, node.kind, node.hidden) == (
        "I bake.\nBe brief.",
        "user",
        "user_editable_context",
        False,
    )
    older = node_of("", "system", metadata=metadata)
    assert (older.text, older.role, older.hidden) == ("I bake.\nBe brief.", "system", False)


@pytest.mark.parametrize(
    ("role", "content", "fields", "hidden"),
    [
        ("system", "", {}, True),
        ("tool", "", {}, True),
        ("assistant", "", {}, True),
        ("assistant", " \n", {"recipient": "browser"}, True),
        ("user", "", {}, False),
        ("user", "", {"metadata": {"is_visually_hidden_from_conversation": True}}, True),
        ("system", "You are a helpful gardener.", {}, False),
        (
            "system",
            "Original custom instructions no longer available",
            {"metadata": {"is_visually_hidden_from_conversation": True}},
            True,
        ),
        ("system", "boilerplate", {"weight": 0.0}, True),
        ("tool", "found 3 pages", {"metadata": {"is_visually_hidden_from_conversation": True}}, False),
        ("assistant", "a draft", {"weight": 0}, False),
        ("user", "typed", {"metadata": {"is_visually_hidden_from_conversation": True}}, False),
    ],
)
def test_only_what_nobody_would_look_for_is_hidden(role: str, content: str, fields: Any, hidden: bool) -> None:
    node = node_of(content, role, **fields)
    assert (node.hidden, node.is_message) == (hidden, not hidden)


def test_an_unknown_content_type_is_read_as_far_as_possible_and_reported() -> None:
    content = {
        "content_type": "hologram",
        "depth": 3,
        "layers": [{"text": "a red vase"}, {"title": "Vase", "parts": ["second", {"content": "third"}]}],
        "secret_id": "not text",
        "image": {"asset_pointer": "sediment://file_9", "content_type": "image_asset_pointer"},
    }
    result = normalise(conversation(message(content)))
    (node,) = result.nodes
    assert (node.text, node.kind) == ("a red vase\nsecond\nthird\nVase", "hologram")
    assert [(asset.asset_id, asset.kind) for asset in node.assets] == [("file_9", "image")]
    assert result.anomalies == ("unknown_content_type:hologram",)


def test_an_unknown_part_is_read_as_far_as_possible_and_reported() -> None:
    parts = ["before", {"content_type": "smell", "text": "cinnamon"}, {"odd": 1}]
    result = normalise(conversation(message({"content_type": "multimodal_text", "parts": parts})))
    assert result.nodes[0].text == "before\ncinnamon"
    assert result.anomalies == ("unknown_content_type:smell", "unknown_content_type:untyped_part")


def test_names_of_types_and_roles_from_the_source_are_made_plain() -> None:
    result = normalise(
        conversation(message({"content_type": "x" * 500}, "r\n"), message({"content_type": "none", "text": "t"}))
    )
    assert [(node.kind, node.role) for node in result.nodes] == [("other", "unknown"), ("other", "assistant")]
    assert result.anomalies == ("role_missing", "unknown_content_type:other")


def test_lone_surrogates_stay_in_the_text() -> None:
    node = node_of("half \ud83d of an emoji", "user")
    assert node.text == "half \ud83d of an emoji"
    assert rb"\ud83d" in canonical.dumps(node.raw)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["text", "parts", "content", "content_type", "asset_pointer", "metadata", "x", "thoughts", "updates"]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=15,
)


@given(
    json_values,
    st.dictionaries(
        st.sampled_from(
            [
                "attachments",
                "content_references",
                "citations",
                "chatgpt_sdk",
                "aggregate_result",
                "search_result_groups",
                "user_context_message_data",
                "model_slug",
                "dalle",
            ]
        ),
        json_values,
    ),
    st.sampled_from(["all", "canmore.create_textdoc", "dalle.text2im", None, 5]),
    st.sampled_from(["user", "assistant", "tool", "system", None, {}]),
)
def test_no_content_whatever_breaks_the_parser(content: Any, metadata: Any, recipient: Any, role: Any) -> None:
    raw = conversation({"author": {"role": role}, "content": content, "metadata": metadata, "recipient": recipient})
    (node,) = normalise(raw).nodes
    assert isinstance(node.text, str)
    assert node.raw is raw["mapping"]["n0"]


@pytest.mark.parametrize(
    "content_type", ["text", "multimodal_text", "code", "thoughts", "hologram", "execution_output"]
)
def test_deeply_nested_content_is_read_without_recursion(content_type: str) -> None:
    deep: Any = "bottom"
    for _ in range(500):
        deep = {"content": [deep]}
    node = node_of({"content_type": content_type, "parts": [deep], "thoughts": [deep], "text": deep})
    assert set(node.text.split()) <= {"bottom"}
