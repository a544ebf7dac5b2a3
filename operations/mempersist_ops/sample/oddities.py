"""Conversations that are broken in ways that real exports are."""

from __future__ import annotations

from mempersist_ops.sample.builder import Raw, assistant, conversation, hidden_system, stable_id, user


def conversations() -> list[Raw]:
    return [_cycle(), _dangling(), _roots(), _surrogate(), _nodes(), _hologram(), _picture_only(), _shell()]


def _cycle() -> Raw:
    made = conversation(
        "cycle",
        "A loop of two messages",
        123,
        [user("Which came first, the chicken or the egg?"), assistant("Whichever of us you ask first.")],
    )
    first, second = list(made["mapping"])[2:]
    made["mapping"][first]["parent"] = second
    return made


def _dangling() -> Raw:
    made = conversation(
        "dangling",
        "The start is missing",
        126,
        [
            user("Lost to the export."),
            assistant("As I said, prune the pear tree in late winter."),
            user("And the quince?"),
            assistant("The quince hardly needs it."),
        ],
    )
    root, system, lost, *_ = list(made["mapping"])
    for node in (root, system, lost):
        del made["mapping"][node]
    return made


def _roots() -> Raw:
    """Two first messages, no root above them, no current node, and no times on the conversation."""
    made = conversation("roots", "Two beginnings", 129, [user("Name a river in Portugal."), assistant("The Mondego.")])
    one, two = list(made["mapping"])[:2], list(made["mapping"])[2:]
    for node in one:
        del made["mapping"][node]
    made["mapping"][two[0]]["parent"] = None
    other = stable_id("roots", "other")
    message = {"id": other, "create_time": None, **user("Name a river in Galicia.")}
    made["mapping"][other] = {"id": other, "message": message, "parent": None, "children": []}
    return {**made, "current_node": None, "create_time": None, "update_time": None}


def _surrogate() -> Raw:
    return conversation(
        "surrogate",
        "An emoji cut in half \ud83d",
        132,
        [
            user("My phone sent half an emoji: \ud83d. What was it?"),
            assistant("Only its first half arrived, so it could be any of a thousand faces."),
        ],
    )


def _nodes() -> Raw:
    """Nodes and times that are not what they should be."""
    made = conversation(
        "nodes",
        "Odd nodes and odd times",
        135,
        [
            user("How long does oil paint take to dry?", create_time=1_747_560_000_250),
            hidden_system(),
            assistant("A thin layer is dry to the touch after two to ten days.", create_time=-1),
        ],
    )
    made["mapping"][stable_id("nodes", "null")] = None
    made["mapping"][stable_id("nodes", "text")] = "not a node"
    return made


def _hologram() -> Raw:
    content = {
        "content_type": "hologram",
        "title": "Model of the kitchen",
        "layers": [{"text": "The sink stands under the window."}],
    }
    return conversation(
        "hologram",
        "A type of content that nobody knows",
        138,
        [user("Show me the new kitchen."), assistant(content)],
    )


def _picture_only() -> Raw:
    picture = {
        "content_type": "image_asset_pointer",
        "asset_pointer": "file-service://file-NotInTheExport",
        "width": 3,
        "height": 4,
    }
    return conversation(
        "picture-only", "Only a picture", 141, [user({"content_type": "multimodal_text", "parts": [picture]})]
    )


def _shell() -> Raw:
    """A conversation without its messages."""
    identifier = stable_id("shell")
    return {"title": "An empty shell", "create_time": 1_748_000_000.0, "id": identifier, "conversation_id": identifier}
