"""Signing in with a browser. A GET or HEAD of any of these pages changes nothing."""

from __future__ import annotations

import hmac
import html
from typing import Final
from urllib.parse import parse_qs

from mempersist.accounts import magic_links, sessions
from mempersist.accounts.magic_links import Proven
from mempersist.web import pages
from mempersist.web.http import Response
from mempersist.web.router import Context, Route

BROWSER_COOKIE: Final = "mempersist_browser"
_BROWSER_SECONDS: Final = 3600
_CODE_FIELD: Final = (
    '<label>Code from the mail <input name="code" autocomplete="one-time-code" required maxlength="20"></label> '
)
_ADDRESS_FIELD: Final = (
    '<label>Mail address <input type="email" name="email" autocomplete="email" required maxlength="254"></label> '
)


def _browser(context: Context) -> str:
    found = sessions.cookies(context.request.headers, BROWSER_COOKIE)
    return found[0] if found else ""


def _cookie(context: Context, value: str) -> str:
    return sessions.set_cookie(context.service.settings.public_url, BROWSER_COOKIE, value, _BROWSER_SECONDS)


def _csrf(browser: str) -> str:
    """What a form of this browser carries. It follows from the cookie, which no other site can read or set."""
    return sessions.digest("form:" + browser)


def _from_our_form(browser: str, values: dict[str, list[str]]) -> bool:
    return bool(browser) and hmac.compare_digest(_csrf(browser).encode(), pages.first(values, "csrf").encode())


def _not_our_form() -> Response:
    body = '<p>This form is too old, or cookies are off. <a href="/sign-in">Begin again</a>.</p>'
    return pages.page(403, "Not accepted", body)


async def show(context: Context) -> Response:
    """The form for an address; or who is signed in."""
    session = await sessions.signed_in(context.service.ports, context.request.headers)
    if session is not None:
        out = pages.form("/sign-out", "Sign out", {"csrf": session.csrf})
        return pages.page(200, "Signed in", f'<p>You are signed in. <a href="/tokens">Access tokens</a></p>{out}')
    wanted = parse_qs(context.request.query).get("return_to", [""])[0]
    browser = _browser(context) or context.service.ports.ids.token()
    hidden = {"csrf": _csrf(browser), "return_to": magic_links.local_path(wanted)}
    body = pages.form("/sign-in", "Continue with mail", hidden, [_ADDRESS_FIELD])
    return pages.page(200, "Sign in", body, {"Set-Cookie": _cookie(context, browser)})


async def ask(context: Context) -> Response:
    """One answer for every address; the mail goes out behind it."""
    values = await pages.form_values(context.request)
    if not _from_our_form(_browser(context), values):
        return _not_our_form()
    address = magic_links.normalise(pages.first(values, "email"))
    if address is None:
        return pages.page(400, "Sign in", '<p>This is no mail address. <a href="/sign-in">Try again</a>.</p>')
    service = context.service
    goal = magic_links.local_path(pages.first(values, "return_to"))
    asked = await magic_links.ask(service.ports, service.settings, address, context.request.client, goal)
    body = (
        "<p>If this address may sign in here, a mail is on its way. Open its link in this browser,"
        " or type its code:</p>" + pages.form("/sign-in/code", "Sign in", {"csrf": _csrf(asked.browser)}, [_CODE_FIELD])
    )
    found = pages.page(200, "Look into your mail", body, {"Set-Cookie": _cookie(context, asked.browser)})
    return Response(found.status, found.headers, found.body, later=asked.deliver)


async def show_link(context: Context) -> Response:
    """What a link of a mail shows. It is used up by the button alone."""
    link = parse_qs(context.request.query).get("token", [""])[0]
    browser = _browser(context)
    address = await magic_links.address_of(context.service.ports, link, browser)
    if address is None:
        return _elsewhere()
    button = pages.form("/sign-in/link", "Continue", {"csrf": _csrf(browser), "token": link})
    return pages.page(200, "Sign in", f"<p>Sign in as <strong>{html.escape(address)}</strong>?</p>{button}")


async def use_link(context: Context) -> Response:
    values = await pages.form_values(context.request)
    browser = _browser(context)
    if not _from_our_form(browser, values):
        return _not_our_form()
    proven = await magic_links.use_link(context.service.ports, pages.first(values, "token"), browser)
    return _elsewhere() if proven is None else await _welcome(context, proven)


async def use_code(context: Context) -> Response:
    values = await pages.form_values(context.request)
    browser = _browser(context)
    if not _from_our_form(browser, values):
        return _not_our_form()
    proven = await magic_links.use_code(context.service.ports, pages.first(values, "code"), browser)
    if proven is not None:
        return await _welcome(context, proven)
    again = pages.form("/sign-in/code", "Sign in", {"csrf": _csrf(browser)}, [_CODE_FIELD])
    body = f'<p>The code is wrong, used or too old.</p>{again}<p><a href="/sign-in">Ask for a new one</a></p>'
    return pages.page(400, "Not signed in", body)


async def sign_out(context: Context) -> Response:
    values = await pages.form_values(context.request)
    session = await sessions.signed_in(context.service.ports, context.request.headers)
    if session is None or not sessions.csrf_matches(session, pages.first(values, "csrf")):
        return _not_our_form()
    await sessions.end(context.service.ports, session)
    gone = sessions.set_cookie(context.service.settings.public_url, sessions.SESSION_COOKIE, "", 0)
    return pages.redirect("/sign-in", gone)


async def _welcome(context: Context, proven: Proven) -> Response:
    service = context.service
    account = await magic_links.account_of(service.ports, service.settings, proven)
    if account is None:
        return _elsewhere()
    value = await sessions.begin(service.ports, account)
    cookie = sessions.set_cookie(service.settings.public_url, sessions.SESSION_COOKIE, value, sessions.SESSION_SECONDS)
    return pages.redirect(proven.return_to, cookie)


def _elsewhere() -> Response:
    body = (
        "<p>This link is used or too old, or it was asked for in another browser. Open the link in that one or"
        ' type the code of the mail; or <a href="/sign-in">ask for a new one</a>. Nobody was signed in.</p>'
    )
    return pages.page(400, "Not signed in", body)


ROUTES: Final = (
    Route("GET", "/sign-in", show, page=True),
    Route("POST", "/sign-in", ask, page=True),
    Route("GET", "/sign-in/link", show_link, page=True),
    Route("POST", "/sign-in/link", use_link, page=True),
    Route("POST", "/sign-in/code", use_code, page=True),
    Route("POST", "/sign-out", sign_out, page=True),
)
