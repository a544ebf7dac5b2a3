"""Conversations in English as people have them, with branches, pictures, voice and documents."""

from __future__ import annotations

import json
from typing import Any

from mempersist_ops.sample.assets import BALCONY, DOUGH
from mempersist_ops.sample.builder import Raw, assistant, branch, conversation, tool, user


def conversations() -> list[Raw]:
    return [_slovenia(), _sourdough(), _borrow_checker(), _balcony(), _home_office(), _novel(), _units()]


def _slovenia() -> Raw:
    cite = "\ue200cite\ue202turn0search2\ue201"
    titles = [{"title": "Bohinj Railway timetable", "url": "https://rail.example/bohinj"}]
    answer = (
        "Here is a plan without a car.\n\n"
        "Days 1-3: Ljubljana. Stay near the station; the castle funicular and the Sunday flea market are a "
        "short walk.\n"
        f"Days 4-6: Lake Bohinj, quieter than Bled. The Bohinj Railway takes you on to the coast {cite}.\n"
        "Days 7-8: Nova Gorica, where the border runs across the square in front of the station.\n"
        "Days 9-10: Piran. Swim from the rocks below the church and take the evening bus back."
    )
    made = conversation(
        "slovenia",
        "Ten days in Slovenia by train",
        3,
        [
            user("Plan ten days in Slovenia in June for two people. We do not want to rent a car and we like to swim."),
            assistant(answer, metadata={"content_references": [{"matched_text": cite, "items": titles}]}),
            user("How much luggage space is there on the car train through the Bohinj tunnel?"),
            assistant(
                "Foot passengers sit in an ordinary carriage at the front, with racks for rucksacks and two bicycles."
            ),
        ],
        gizmo_id="g-p-sampleproject01",
    )
    return branch(
        made,
        0,
        user("Plan ten days in Slovenia in October for two people. We like to hike and do not mind rain."),
        assistant("In October I would spend five nights in Kranjska Gora, and keep the Soca valley for the dry days."),
    )


def _sourdough() -> Raw:
    spoken: list[Any] = [
        {
            "content_type": "audio_transcription",
            "text": "My sourdough spreads like a pancake when I turn it out. What am I doing wrong?",
            "direction": "in",
        },
        {
            "content_type": "real_time_user_audio_video_asset_pointer",
            "expiry_datetime": "2025-02-01T00:00:00Z",
            "frames_asset_pointers": [],
            "video_container_asset_pointer": None,
            "audio_asset_pointer": {
                "content_type": "audio_asset_pointer",
                "asset_pointer": f"sediment://{DOUGH.asset_id}",
                "format": "wav",
                "size_bytes": len(DOUGH.data),
            },
        },
    ]
    answer = [
        {
            "content_type": "audio_transcription",
            "text": (
                "Most likely it proofed too long, or the flour is too weak for so much water. Try sixty-five "
                "percent hydration, shape it tighter, and let it rest in the fridge over night."
            ),
            "direction": "out",
        }
    ]
    made = conversation(
        "sourdough",
        "Sourdough that does not spread",
        9,
        [
            user({"content_type": "multimodal_text", "parts": spoken}),
            assistant({"content_type": "multimodal_text", "parts": answer}),
            user("And how do I know that it has proofed enough?"),
            assistant("Press it with a floury finger. If the dent comes back slowly and not quite, bake it now."),
        ],
        voice="ember",
    )
    return branch(
        made,
        3,
        assistant("Watch the volume, not the clock: half again as large as at the start is enough for a cold proof."),
    )


def _borrow_checker() -> Raw:
    code = 'let first = &scores[0];\nscores.push(17);\nprintln!("{first}");'
    thoughts = [
        {
            "summary": "Reading the error",
            "content": "E0502: an immutable borrow is still alive when the vector is pushed to.",
        },
        {
            "summary": "Finding the fix",
            "content": "The reference is used after the push, so copying the integer is the simplest way out.",
        },
    ]
    return conversation(
        "borrow-checker",
        "Rust: cannot borrow as mutable",
        15,
        [
            user(f"Why does the borrow checker refuse my push?\n\n```rust\n{code}\n```"),
            assistant({"content_type": "thoughts", "thoughts": thoughts, "source_analysis_msg_id": "none"}),
            assistant({"content_type": "reasoning_recap", "content": "Thought for 9 seconds"}),
            assistant(
                "`first` points into the vector's buffer. A push may move that buffer, and then `first` "
                "would dangle, so "
                "the borrow checker refuses the push while `first` is still needed. Copy the number instead: "
                "`let first = scores[0];`, or print before you push."
            ),
            user("Would clone() on the whole vector help?"),
            assistant("It would compile, but it copies everything to save one integer. Copy the integer."),
        ],
    )


def _balcony() -> Raw:
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": f"file-service://{BALCONY.asset_id}",
        "size_bytes": len(BALCONY.data),
        "width": 48,
        "height": 48,
        "metadata": None,
    }
    attached = [
        {"id": BALCONY.asset_id, "name": BALCONY.name, "mime_type": BALCONY.media_type, "size": len(BALCONY.data)}
    ]
    return conversation(
        "balcony",
        "Raised beds on a north-facing balcony",
        22,
        [
            user({"content_type": "multimodal_text", "parts": [picture]}, metadata={"attachments": attached}),
            user(
                "This is my balcony in April. It faces north and gets two hours of sun. What will grow in raised beds?"
            ),
            assistant(
                "Leaves rather than fruit: spinach, rocket, sorrel, chives, parsley and mint. Woodland "
                "strawberries will bear a little."
            ),
            user("How deep must the bed be, and how heavy will it get when it is wet?"),
            assistant(
                "Twenty-five centimetres are enough for leaves. Reckon with 1.4 kilograms a litre of wet "
                "soil and ask what load the balcony may carry."
            ),
        ],
    )


def _home_office() -> Raw:
    attached = [
        {"id": "file-NeverExported9", "name": "utility bills 2025.pdf", "mime_type": "application/pdf", "size": 88_123}
    ]
    return conversation(
        "home-office",
        "Can I deduct part of the heating?",
        31,
        [
            user(
                "I work from a separate room four days a week. Can I deduct part of the heating as home office costs?",
                metadata={"attachments": attached},
            ),
            assistant(
                "Often yes, in proportion to the floor area, if the room is used for work only. Rules differ "
                "by country, so treat this as a list of questions for your adviser, not as advice: is the "
                "room separate, is there another desk for you, and who pays the bills?"
            ),
            user("The room has 14 of 82 square metres."),
            assistant(
                "Then the share would be 17.07 percent of the heating, electricity and rent of the months in "
                "which you worked there."
            ),
        ],
    )


def _novel() -> Raw:
    created = {
        "name": "The Lighthouse Keeper's Radio",
        "type": "document",
        "content": (
            "Part one: Static\n\nIda inherits a lighthouse and a radio that receives tomorrow's shipping "
            "forecast. She tells nobody until the ferry is late.\n\nPart two: Interference\n\nThe harbour "
            "master begins to plan by her guesses."
        ),
    }
    updated = {
        "updates": [
            {
                "pattern": "Part two: Interference",
                "multiple": False,
                "replacement": "Part two: The forecast that was wrong",
            }
        ]
    }
    commented = {"comments": [{"pattern": "tells nobody", "comment": "Give Ida one person whom she almost tells."}]}
    return conversation(
        "novel",
        "Outline of a novel",
        44,
        [
            user("Help me to outline a short novel about a lighthouse keeper with an odd radio. Use a canvas."),
            assistant(
                {"content_type": "code", "language": "json", "text": json.dumps(created)},
                recipient="canmore.create_textdoc",
            ),
            tool(
                "canmore.create_textdoc",
                "Successfully created text document.",
                metadata={"canvas": {"textdoc_type": "document"}},
            ),
            assistant("I have begun with two parts. Shall the radio ever be explained?"),
            user("Never. And rename part two."),
            assistant(
                {"content_type": "code", "language": "json", "text": json.dumps(updated)},
                recipient="canmore.update_textdoc",
            ),
            assistant(
                {"content_type": "code", "language": "json", "text": json.dumps(commented)},
                recipient="canmore.comment_textdoc",
            ),
            assistant("Done, with one remark in the margin."),
        ],
    )


def _units() -> Raw:
    return conversation(
        "units",
        None,
        47,
        [user("How many teaspoons are 40 millilitres?"), assistant("Eight metric teaspoons of five millilitres each.")],
    )
