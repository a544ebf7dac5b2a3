"""Conversations in which tools take part: research, browsing, code, pictures, memory."""

from __future__ import annotations

import json

from mempersist_ops.sample.assets import PLOT
from mempersist_ops.sample.builder import Raw, assistant, conversation, message, tool, user

_HIDDEN = {"is_visually_hidden_from_conversation": True}


def conversations() -> list[Raw]:
    return [_research(), _browsing(), _interpreter(), _fox(), _instructions()]


def _research() -> Raw:
    cite = "\ue200cite\ue202turn3search1\ue201"
    report = (
        "# Hop yields in the Hallertau\n\n"
        f"Yields of the variety Perle fell in four of six dry summers, most of all on sandy plots {cite}. "
        "Drip irrigation halves the loss and pays for itself after about five years.\n\n"
        "## What growers do\n\nThey plant later varieties, widen the rows and share wells."
    )
    references = [
        {"matched_text": cite, "items": [{"title": "Hop report of the growers' union", "url": "https://hops.example"}]}
    ]
    state = {
        "status": "completed",
        "report_message": {
            "content": {"content_type": "text", "parts": [report]},
            "metadata": {"content_references": references},
        },
    }
    return conversation(
        "hops",
        "Hop yields in dry summers",
        101,
        [
            user("Research how dry summers change hop yields in the Hallertau, and what growers do about it."),
            assistant("", metadata={"chatgpt_sdk": {"widget_state": json.dumps(state)}}),
            tool("api_tool.call_tool", "", metadata=_HIDDEN),
            assistant("The report is ready. Shall I shorten it to one page?"),
        ],
    )


def _browsing() -> Raw:
    entity = '\ue200entity\ue202["museum","Museum of Tides","natural history"]\ue201'
    groups = [
        {
            "type": "search_result_group",
            "domain": "tides.example",
            "entries": [
                {
                    "title": "Visit the Museum of Tides",
                    "ref_id": {"turn_index": 0, "ref_type": "search", "ref_index": 0},
                }
            ],
        }
    ]
    return conversation(
        "museum",
        "Opening hours of the tide museum",
        106,
        [
            user("When is the museum of tides open, and is the mechanical tide table on show?"),
            tool(
                "browser",
                {
                    "content_type": "tether_browsing_display",
                    "result": "# Museum of Tides\nOpen Tuesday to Sunday, ten to five.",
                    "summary": "",
                    "assets": None,
                },
            ),
            tool(
                "browser",
                {
                    "content_type": "tether_quote",
                    "url": "https://tides.example",
                    "domain": "tides.example",
                    "title": "The tide machine",
                    "text": "The brass tide machine of 1881 is started every day at noon.",
                },
            ),
            tool(
                "web.run",
                {
                    "content_type": "sonic_webpage",
                    "url": "https://tides.example/tickets",
                    "title": "Tickets",
                    "text": "Children under twelve enter free.",
                    "snippet": "",
                },
            ),
            tool(
                "web.run",
                {
                    "content_type": "system_error",
                    "name": "ClientResponseError",
                    "text": "The page took too long to answer.",
                },
            ),
            assistant(
                f"The {entity} opens Tuesday to Sunday from ten to five, and the brass tide machine runs at "
                "noon \ue200cite\ue202turn0search0\ue201.",
                metadata={"citations": [], "search_result_groups": groups},
            ),
        ],
    )


def _interpreter() -> Raw:
    code = "import statistics\nwaits = [3, 5, 5, 8, 13, 40]\nprint(statistics.median(waits), statistics.mean(waits))"
    drawn = {
        "messages": [
            {"message_type": "image", "image_url": f"file-service://{PLOT.asset_id}", "width": 24, "height": 24}
        ]
    }
    return conversation(
        "waiting-times",
        "Median of the waiting times",
        110,
        [
            user("Here are six waiting times in minutes: 3, 5, 5, 8, 13, 40. Should I report the mean or the median?"),
            assistant({"content_type": "code", "language": "python", "text": code}, recipient="python"),
            tool(
                "python",
                {"content_type": "execution_output", "text": "6.5 12.333333333333334"},
                metadata={"aggregate_result": drawn},
            ),
            assistant(
                "The median, 6.5 minutes: one patient waited 40 and pulls the mean up to 12.3. The numbers "
                "are in [waits.csv](sandbox:/mnt/data/waits.csv)."
            ),
        ],
    )


def _fox() -> Raw:
    call = {"prompt": "A fox crossing a frozen lake at dawn, woodcut, two colours", "size": "1024x1024", "n": 1}
    return conversation(
        "fox",
        "A fox for the birthday card",
        114,
        [
            user("Draw a fox on a frozen lake for a birthday card, as a woodcut in two colours."),
            assistant(
                {"content_type": "code", "language": "json", "text": json.dumps(call)}, recipient="dalle.text2im"
            ),
            tool(
                "dalle.text2im",
                {
                    "content_type": "multimodal_text",
                    "parts": [
                        {
                            "content_type": "image_asset_pointer",
                            "asset_pointer": "sediment://file_00000000f0f0",
                            "width": 1024,
                            "height": 1024,
                            "metadata": {"dalle": {"prompt": call["prompt"], "gen_id": "sample"}},
                        }
                    ],
                },
            ),
            assistant("Here is the woodcut. The picture itself is not part of the export."),
        ],
    )


def _instructions() -> Raw:
    about = {
        "about_user_message": "I am a nurse on night shifts and I bake on Sundays.",
        "about_model_message": "Answer briefly and in metric units.",
    }
    context = {
        "content_type": "user_editable_context",
        "user_profile": "The user provided the following information about themselves: ```"
        + about["about_user_message"]
        + "```",
        "user_instructions": "The user provided these instructions: ```" + about["about_model_message"] + "```",
    }
    return conversation(
        "night-shifts",
        "Sleeping after night shifts",
        119,
        [
            user(context, metadata={**_HIDDEN, "user_context_message_data": about}),
            message(
                "system",
                {
                    "content_type": "model_editable_context",
                    "model_set_context": "1. [2025-03-01] Is allergic to walnuts.",
                    "repository": None,
                },
                metadata=_HIDDEN,
            ),
            user(
                "How do I get back to sleeping at night after five night shifts? And remember that I moved to Freiburg."
            ),
            assistant("Moved to Freiburg in May.", recipient="bio"),
            tool("bio", "Model set context updated."),
            assistant(
                "Sleep two hours on the first morning, stay in daylight until evening, and go to bed at ten. "
                "Keep coffee to the first half of the day."
            ),
        ],
    )
