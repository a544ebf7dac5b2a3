"""A call of a tool: found, permitted, within its request budget, its arguments checked, run, its answer in budget.

:func:`invoke` is the part that every door shares; :func:`call` wraps it as MCP wants it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mempersist.accounts.principal import Principal
from mempersist.archive.model import JsonObject
from mempersist.defects import place_of, refusal
from mempersist.errors import Code, MempersistError
from mempersist.mcp import access, budget, schema
from mempersist.mcp.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from mempersist.mcp.tool import Call, Tool, find
from mempersist.service import Service


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of ``tools/call``. ``code``: the error code of a failed call; ``defect``: what a store raised."""

    result: JsonObject
    code: str | None = None
    defect: str | None = None


async def invoke(
    tool: Tool, arguments: Any, principal: Principal, service: Service, tools: tuple[Tool, ...]
) -> JsonObject:
    """The tool's answer, with printable text only and never above its byte budget.

    :param arguments: as they came, unchecked.
    :raises MempersistError: for everything that the caller is told.
    """
    if not principal.may(tool.scope):
        raise MempersistError(
            Code.AUTHENTICATION,
            f"{tool.name} needs the scope {tool.scope}, which this sign-in does not have; sign in again and grant it",
            status=403,
            details={"scope": tool.scope},
        )
    checked = schema.arguments(tool.input_schema, arguments)
    answer: JsonObject = budget.clean(
        await tool.run(Call(service.ports, principal.account, checked, tools, service.settings))
    )
    size = budget.size(answer)
    if size > tool.max_response_bytes:
        raise MempersistError(
            Code.RESPONSE_TOO_LARGE,
            f"the answer has {size} bytes; at most {tool.max_response_bytes} are sent. Ask for less: a lower limit, a"
            " narrower filter, or the compact format where there is one.",
            details={"response_bytes": size, "max_response_bytes": tool.max_response_bytes},
        )
    return answer


async def call(
    params: JsonObject, size: int, principal: Principal, service: Service, tools: tuple[Tool, ...]
) -> Outcome:
    """The result of ``tools/call``, good or bad.

    :param size: bytes of the complete request.
    :raises RpcError: INVALID_PARAMS for a call of no tool; INTERNAL_ERROR, without internals, for a defect.
    """
    name = params.get("name")
    if not isinstance(name, str):
        raise RpcError(INVALID_PARAMS, "name: is required and must be text")
    tool = find(tools, name)
    if tool is None:
        raise RpcError(INVALID_PARAMS, "name: there is no tool of this name; tools/list names them all")
    arguments = params.get("arguments")
    try:
        within_request_budget(tool, arguments, size)
        return _success(await invoke(tool, arguments, principal, service, tools))
    except MempersistError as error:
        return Outcome(_failure(error, service), error.code.value)
    except Exception as error:
        told = refusal(error)
        if told is None:
            raise RpcError(INTERNAL_ERROR, "Internal error", defect=place_of(error)) from error
        return Outcome(_failure(told, service), told.code.value, place_of(error))


def within_request_budget(tool: Tool, arguments: Any, size: int) -> None:
    """:raises MempersistError: REQUEST_TOO_LARGE for a request of ``size`` bytes that is more than ``tool`` takes."""
    if size <= tool.max_request_bytes:
        return
    details: JsonObject = {"request_bytes": size, "max_request_bytes": tool.max_request_bytes}
    items = arguments.get(tool.items) if tool.items and isinstance(arguments, dict) else None
    way_out = "Send less."
    if isinstance(items, list) and items:
        most = max(1, len(items) * tool.max_request_bytes // size)
        details["suggested_max_items"] = most
        way_out = f"Send at most about {most} of the {len(items)} {tool.items} at a time."
    raise MempersistError(
        Code.REQUEST_TOO_LARGE,
        f"the request has {size} bytes; {tool.name} takes at most {tool.max_request_bytes}, and nothing was done."
        f" {way_out}",
        details=details,
    )


def _success(answer: JsonObject) -> Outcome:
    text = budget.encode(answer).decode("utf-8")
    return Outcome({"content": [{"type": "text", "text": text}], "structuredContent": answer, "isError": False})


def _failure(error: MempersistError, service: Service) -> JsonObject:
    """One text and no structuredContent: clients hold that against the output schema, even of an error."""
    text = budget.encode(budget.clean({"error": error.as_json()})).decode("utf-8")
    result: JsonObject = {"content": [{"type": "text", "text": text}], "isError": True}
    if "scope" in error.details:
        challenge = access.scope_challenge(service.settings, error.details["scope"])
        result["_meta"] = {"mcp/www_authenticate": [challenge]}
    return result
