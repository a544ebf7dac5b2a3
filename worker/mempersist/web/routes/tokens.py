"""Personal access tokens: pages for who is signed in, and ``/api/tokens`` for the owner's own token.

A personal token cannot make or revoke tokens, so that one which leaked does not outlive its end or its scopes.
"""

from __future__ import annotations

import html
from typing import Any, Final

from mempersist import timestamps
from mempersist.accounts import sessions, tokens
from mempersist.accounts.principal import READ, WRITE
from mempersist.accounts.tokens import TokenInfo
from mempersist.errors import Code, MempersistError, not_found, validation
from mempersist.web import pages
from mempersist.web.auth import bearer_token, is_owners
from mempersist.web.http import Response, json_object, json_response, read_body
from mempersist.web.router import Context, Route

_MAX_BODY: Final = 4096
_FIELDS: Final = frozenset({"name", "scopes", "expires_in_days"})


def _require_owner(context: Context) -> None:
    if not is_owners(context.service.settings, bearer_token(context.request.headers)):
        raise MempersistError(
            Code.AUTHENTICATION, "tokens are managed with the owner's token, or at /tokens", status=403
        )


async def list_api(context: Context) -> Response:
    _require_owner(context)
    found = await tokens.listed(context.service.ports, context.account)
    return json_response(200, {"tokens": [_as_json(info) for info in found]})


async def create_api(context: Context) -> Response:
    """201 with the token, which is told this once."""
    _require_owner(context)
    body = json_object(await read_body(context.request, _MAX_BODY))
    if set(body) - _FIELDS:
        raise validation("body", f"takes {', '.join(sorted(_FIELDS))}")
    name, scopes, days = body.get("name"), body.get("scopes", [READ]), body.get("expires_in_days", tokens.DEFAULT_DAYS)
    if not isinstance(name, str):
        raise validation("name", "must be a string")
    if not isinstance(scopes, list) or not all(isinstance(scope, str) for scope in scopes):
        raise validation("scopes", "must be a list of strings")
    if type(days) is not int:
        raise validation("expires_in_days", "must be a whole number")
    made = await tokens.create(context.service.ports, context.account, name=name, scopes=scopes, days=days)
    return json_response(201, {**_as_json(made.info), "token": made.token})


async def revoke_api(context: Context) -> Response:
    _require_owner(context)
    if not await tokens.revoke(context.service.ports, context.account, context.params["id"]):
        raise not_found("token")
    return json_response(200, {"revoked": True})


async def show(context: Context) -> Response:
    session = await sessions.signed_in(context.service.ports, context.request.headers)
    if session is None:
        return pages.redirect("/sign-in?return_to=/tokens")
    found = await tokens.listed(context.service.ports, session.account)
    rows = "".join(
        f"<li>{html.escape(info.name)}: {html.escape(', '.join(info.scopes))}, until"
        f" {timestamps.from_ms(info.expires_ms)[:10]}"
        f"{pages.form('/tokens/revoke', 'Revoke', {'csrf': session.csrf, 'token_id': info.token_id})}</li>"
        for info in found
    )
    fields = [
        f'<label>Name <input name="name" required maxlength="{tokens.MAX_NAME_CHARS}"></label> ',
        f'<label>Days <input name="days" type="number" min="1" max="{tokens.MAX_DAYS}" value="{tokens.DEFAULT_DAYS}">',
        f'</label> <label><input type="checkbox" name="scope" value="{READ}" checked> read</label> ',
        f'<label><input type="checkbox" name="scope" value="{WRITE}"> write</label> ',
    ]
    new = pages.form("/tokens", "Make a token", {"csrf": session.csrf}, fields)
    return pages.page(200, "Access tokens", f"<ul>{rows}</ul>{new}")


async def create(context: Context) -> Response:
    session, values = await _form(context)
    days = pages.first(values, "days")
    number = int(days) if days.isascii() and days.isdigit() and len(days) < 5 else 0
    made = await tokens.create(
        context.service.ports,
        session.account,
        name=pages.first(values, "name"),
        scopes=values.get("scope", []),
        days=number,
    )
    body = f'<p>Copy it now, it is not shown again:</p><pre>{made.token}</pre><p><a href="/tokens">All tokens</a></p>'
    return pages.page(200, "New token", body)


async def revoke(context: Context) -> Response:
    session, values = await _form(context)
    if not await tokens.revoke(context.service.ports, session.account, pages.first(values, "token_id")):
        raise not_found("token")
    return pages.redirect("/tokens")


async def _form(context: Context) -> tuple[sessions.Session, dict[str, list[str]]]:
    values = await pages.form_values(context.request)
    session = await sessions.signed_in(context.service.ports, context.request.headers)
    if session is None or not sessions.csrf_matches(session, pages.first(values, "csrf")):
        raise MempersistError(Code.AUTHENTICATION, "the form is not of this session; open /tokens again", status=403)
    return session, values


def _as_json(info: TokenInfo) -> dict[str, Any]:
    return {
        "id": info.token_id,
        "name": info.name,
        "scopes": list(info.scopes),
        "createdAt": timestamps.from_ms(info.created_ms),
        "expiresAt": timestamps.from_ms(info.expires_ms),
        "lastUsedAt": None if info.used_ms is None else timestamps.from_ms(info.used_ms),
    }


ROUTES: Final = (
    Route("GET", "/api/tokens", list_api),
    Route("POST", "/api/tokens", create_api),
    Route("DELETE", "/api/tokens/:id", revoke_api),
    Route("GET", "/tokens", show, page=True),
    Route("POST", "/tokens", create, page=True),
    Route("POST", "/tokens/revoke", revoke, page=True),
)
