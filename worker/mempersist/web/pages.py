"""Plain pages: no scripts, nothing from elsewhere, not to be framed, kept or told to others."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from mempersist.errors import validation
from mempersist.web.http import Request, Response, read_body

MAX_FORM_BYTES: Final = 16 * 1024
_FORM_TYPE: Final = "application/x-www-form-urlencoded"
_MAX_FIELDS: Final = 32
_POLICY: Final = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
_HEADERS: Final = {
    "Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": _POLICY,
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def page(status: int, title: str, body: str, headers: Mapping[str, str] | None = None) -> Response:
    """A page with ``title``, which is text, around ``body``, which is HTML."""
    text = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>{html.escape(title)} - MemPersist</title>\n<h1>{html.escape(title)}</h1>\n{body}\n"
    )
    return Response(status, {**_HEADERS, **(headers or {})}, text.encode())


def redirect(path: str, cookie: str | None = None) -> Response:
    """303 to a path of this server."""
    cookies = {} if cookie is None else {"Set-Cookie": cookie}
    return Response(303, {"Location": path, "Referrer-Policy": "no-referrer", "Cache-Control": "no-store", **cookies})


def form(action: str, button: str, hidden: Mapping[str, str], fields: Iterable[str] = ()) -> str:
    """A form that posts; ``fields`` are HTML, everything else is text."""
    inputs = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in hidden.items()
    )
    return (
        f'<form method="post" action="{html.escape(action)}">{inputs}{"".join(fields)}'
        f'<button type="submit">{html.escape(button)}</button></form>'
    )


async def form_values(request: Request) -> dict[str, list[str]]:
    """The fields of a posted form. :raises MempersistError: VALIDATION for another type, REQUEST_TOO_LARGE."""
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != _FORM_TYPE:
        raise validation("content-type", f"must be {_FORM_TYPE}")
    body = await read_body(request, MAX_FORM_BYTES)
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict")
    except ValueError:
        raise validation("body", "is not a form in UTF-8 with few fields") from None
    values: dict[str, list[str]] = {}
    for name, value in pairs:
        values.setdefault(name, []).append(value)
    return values


def first(values: Mapping[str, list[str]], name: str) -> str:
    """The field's value, empty where it is missing."""
    return values.get(name, [""])[0]
