"""Context packs: known conversations, what they point to and what searches find, within two budgets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from mempersist import canonical, limits, names
from mempersist.accounts.principal import READ
from mempersist.archive.model import JsonObject
from mempersist.catalog.conversations import require_namespace
from mempersist.errors import validation
from mempersist.index.generation import active_generation
from mempersist.mcp import budget
from mempersist.mcp.fields import COUNT, TEXT, TEXT_OR_NULL, TEXTS, TRUTH, result, results
from mempersist.mcp.packs import fit, request
from mempersist.mcp.packs.fit import Allowance, Packing
from mempersist.mcp.tool import Call, Tool
from mempersist.search.packs.model import KINDS, Diagnostics
from mempersist.search.packs.required import gather_required
from mempersist.search.packs.retrieved import Found, find, sections

VERSION: Final = "mempersist-context-pack-v2"
_LEAST_SECTION_BYTES: Final = 600
"""No section takes fewer, so that nothing more is read once there is less room."""


async def _build_context(call: Call) -> JsonObject:
    arguments = call.arguments
    if not arguments["task"].strip():
        raise validation("task", "must not be blank")
    required, retrieve = request.required_of(arguments), request.retrieve_of(arguments)
    namespace = None if call.get("namespace") is None else names.namespace(arguments["namespace"])
    if namespace is not None:
        await require_namespace(call.ports, call.account, namespace)
    diagnostics = Diagnostics()
    gathered = await gather_required(call.ports, call.account, namespace, required, diagnostics)
    gathered.sort(key=lambda item: (KINDS.index(item.kind), -item.priority, item.request_index))

    packing = Packing(_allowance(arguments), _frame(arguments["task"], namespace), diagnostics)
    packing.require([item for item in gathered if item.kind != "expanded_optional"])
    if packing.overflows():
        return _overflow(packing)
    for section in gathered:
        if section.kind == "expanded_optional":
            packing.offer(section)
    await _retrieve(call, packing, await find(call.ports, call.account, retrieve, diagnostics))
    answer = packing.shed()
    if budget.size(answer) > packing.allowance.max_bytes:
        return _overflow(packing)
    return {**answer, "pack_id": await _pack_id(call, answer)}


def _allowance(arguments: JsonObject) -> Allowance:
    options = arguments.get("options") or {}
    return Allowance(
        arguments["budget"]["max_estimated_tokens"],
        arguments["budget"]["max_serialized_bytes"],
        options.get("deduplicate", True),
        options.get("include_provenance", True),
        options.get("include_compiled_text", True),
    )


def _frame(task: str, namespace: str | None) -> JsonObject:
    frame: JsonObject = budget.clean({"status": "complete", "pack_id": "0" * 64, "namespace": namespace, "task": task})
    return frame


async def _retrieve(call: Call, packing: Packing, found: Sequence[Found]) -> None:
    """Offer what was found, as long as there is room for anything."""

    def has_room() -> bool:
        return packing.left >= _LEAST_SECTION_BYTES and packing.tokens_used < packing.allowance.max_tokens

    async for section in sections(call.ports, call.account, found, packing.pins, packing.diagnostics, has_room):
        packing.offer(section)


def _overflow(packing: Packing) -> JsonObject:
    """What the required content needs, and none of it."""
    packing.warn_required()
    return {
        "status": "required_budget_exceeded",
        "required_estimated_tokens": packing.tokens_used,
        "required_serialized_bytes": packing.required_bytes(),
        "suggested_minimum": packing.enough(),
        "warnings": fit.warned(packing.diagnostics.warnings),
        "degraded": bool(packing.diagnostics.unavailable),
        "unavailable": packing.diagnostics.unavailable,
    }


async def _pack_id(call: Call, answer: JsonObject) -> str:
    """The same for the same request over the same revisions and index, with the same outcome."""
    parts = (call.arguments, answer["revision_pins"], await active_generation(call.ports), answer["sections"])
    return canonical.identity(VERSION, *(canonical.dumps(part).decode("utf-8") for part in parts))


_OBJECT: Final[JsonObject] = {"type": "object"}

BUILD_CONTEXT: Final = Tool(
    name="memory_build_context",
    title="Build a context pack",
    description=(
        "Compiles whole messages of known conversations, of those they point to (a line 'current_scene: <id>' or a"
        " JSON property) and of search hits into one answer within two budgets. Required content that does not fit"
        " gives required_budget_exceeded with suggested_minimum and no text."
    ),
    scope=READ,
    input_schema=request.SCHEMA,
    output_schema=result(
        {
            "status": TEXT,
            "pack_id": TEXT,
            "namespace": TEXT_OR_NULL,
            "task": TEXT,
            "revision_pins": results(result({"conversation_id": TEXT, "revision_id": TEXT})),
            "sections": results(_OBJECT),
            "budget": _OBJECT,
            "omitted": results(_OBJECT),
            "compiled_text": TEXT,
            "required_estimated_tokens": COUNT,
            "required_serialized_bytes": COUNT,
            "suggested_minimum": _OBJECT,
            "degraded": TRUTH,
            "unavailable": TEXTS,
            "warnings": results(_OBJECT),
        },
        optional=(
            "pack_id",
            "namespace",
            "task",
            "revision_pins",
            "sections",
            "budget",
            "omitted",
            "compiled_text",
            "required_estimated_tokens",
            "required_serialized_bytes",
            "suggested_minimum",
        ),
    ),
    run=_build_context,
    max_request_bytes=limits.MAX_READ_BATCH_BYTES,
    max_response_bytes=limits.MAX_BATCH_BYTES,
    items="required",
    bounds=(("max_tail_messages", request.MAX_TAIL),),
)
