"""Text that is wrapped in JSON for a tool: documents of the canvas, prompts of pictures, Deep Research reports."""

from __future__ import annotations

from typing import Any

from mempersist.imports.chatgpt import citations, content
from mempersist.imports.chatgpt.values import Object, lines, object_in, object_of, objects_of, text_of

_IMAGE_TOOLS = ("dalle", "image_gen", "t2uay3k")
_WIDGET_STATE = "The latest state of the widget is:"


def unwrapped(recipient: str, text: str) -> str:
    """What a message to the tool ``recipient`` says to a reader; ``text`` itself where it wraps nothing known."""
    if recipient.startswith("canmore"):
        call = object_in(text)
        return (_canvas(call) or text) if call else text
    if recipient.startswith(_IMAGE_TOOLS):
        call = object_in(text)
        return content.image_text(text_of(call, "prompt")) or text if call else text
    return text


def _canvas(call: Object) -> str:
    """A new document, the replacements of an update, or comments."""
    return lines(
        text_of(call, "name"),
        text_of(call, "content"),
        *(text_of(update, "replacement") for update in objects_of(call, "updates")),
        *(text_of(comment, "comment") for comment in objects_of(call, "comments")),
    )


def with_report(text: str, metadata: Object) -> str:
    """``text`` followed by the Deep Research report that its message carries out of sight, if any."""
    sdk = object_of(metadata, "chatgpt_sdk")
    response = object_of(sdk, "tool_response_metadata")
    carriers: list[Any] = [
        sdk.get("widget_state"),
        response.get("venus_widget_state"),
        metadata.get("venus_widget_state"),
    ]
    for carrier in carriers:
        report = _report(carrier)
        if report:
            return text if report in text else lines(text, report)
    if text.startswith(_WIDGET_STATE):
        return _report(text.removeprefix(_WIDGET_STATE).strip()) or text
    return text


def _report(state: Any) -> str:
    message = object_of(object_in(state) or {}, "report_message")
    text = content.read(message.get("content")).text
    return citations.clean(text, object_of(message, "metadata"), written_by_model=True)
