"""Whatever the OpenAPI document allows, and what it does not, the API answers as documented and without a defect."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, reject, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from mempersist.archive.model import OWNER
from mempersist.search.query import search
from mempersist.service import Service
from mempersist.web import openapi
from mempersist.web.routes import ROUTES
from mempersist_ops.host.asgi import asgi_app
from tests.rigs import writes
from tests.rigs.http import SETTINGS
from tests.rigs.mcp import CURSOR_KEYS
from tests.rigs.worker.process import TOKEN
from tests.rigs.worlds import drain, memory_world

pytestmark = [pytest.mark.long, pytest.mark.in_process]
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SCHEMA = schemathesis.openapi.from_dict(openapi.document(ROUTES, SETTINGS.public_url))
SENT = ("method", "url", "params", "json", "data", "files")


async def answered(case: schemathesis.Case[Any], *, known: bool) -> httpx.Response:
    """What a system with two conversations in it answers; ``known``: about one of them."""
    world = await memory_world()
    written = await writes.store(world.ports, "I saw a walrus", "How large was it?", tags=("sea",))
    await writes.store(world.ports, "The walrus again", namespace="work")
    await drain(world)
    if known:
        found = await search(world.ports, OWNER, query="walrus", limit=1)
        ids = {"conversations": written.conversation_id, "chunks": found.results[0].chunk_id}
        case.path_parameters["id"] = ids[case.path.split("/")[2]]
    request = case.as_transport_kwargs(base_url=SETTINGS.public_url)
    headers = {**(request.get("headers") or {}), "Authorization": f"Bearer {TOKEN}"}
    arguments = {name: request[name] for name in SENT if request.get(name) is not None}
    if isinstance(arguments.get("data"), bytes | str):
        arguments["content"] = arguments.pop("data")
    service = Service(world.ports, replace(SETTINGS, cursor_keys=CURSOR_KEYS))
    transport = httpx.ASGITransport(asgi_app(service))
    async with httpx.AsyncClient(transport=transport, base_url=SETTINGS.public_url) as client:
        try:
            return await client.request(headers=headers, **arguments)
        except httpx.InvalidURL:  # longer than this client sends
            reject()


@SCHEMA.parametrize()
@settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_answers_are_as_documented(case: schemathesis.Case[Any]) -> None:
    case.validate_response(asyncio.run(answered(case, known=False)), checks=CHECKS)
    if case.path.startswith(("/api/conversations/{id}", "/api/chunks/{id}")):
        answer = asyncio.run(answered(case, known=True))
        assert answer.status_code != 404 or "revision" in answer.text, answer.text
        case.validate_response(answer, checks=CHECKS)
