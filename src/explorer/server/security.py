"""Who may ask the server for anything: by address, token, site and size. It stands before every page.

A browser sends requests to a server on its own machine for any page that it shows. So a request must name the server
by an address of its own (or a name could be bound to 127.0.0.1), and one that changes something must come from a page
of the server. On other addresses than the machine's own, a token is needed, too.
"""

import hmac
import secrets
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from explorer.schema.network import ip_address_of

COOKIE = "explorer_token"
"""The beginning of the cookie's name; the port follows, since browsers send a cookie to all ports of a host."""
TOKEN = "token"  # noqa: S105 - the name of a parameter
MAX_BODY_BYTES = 24_000_000
"""The size of a request: some files with a question."""
MAX_LENGTH_DIGITS = 18
"""Digits of a request's size; a number of thousands of digits is slow to read."""
MIN_TOKEN_CHARS = 16
LOCAL_NAMES = frozenset({"localhost"})
NEEDS_TOKEN = "A token is needed."  # noqa: S105 - words
HEAD = (
    '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><meta name="color-scheme" content="light dark">'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<link rel="icon" href="data:,">'
)
WRONG_TOKEN = "<p role=alert>What was given is not the token of this server.</p>"  # noqa: S105 - words
ASKS_FOR_TOKEN = f"""{HEAD}<title>explorer: {NEEDS_TOKEN}</title><main><h1>{NEEDS_TOKEN}</h1>
%s<p>Open the address that <code>explorer serve</code> printed, or give the word after <code>?token=</code> in it.</p>
<form method="get"><label>Token <input name="{TOKEN}" type="password" autocomplete="off" required autofocus></label>
<button>Continue</button></form></main></html>
"""
READING = frozenset({"GET", "HEAD"})
API = "/api/"
JSON_BODY = "application/json"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # with `no-referrer`, a browser names no origin in the forms of the pages
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
    "cache-control": "no-store",
}
"""Headers of every answer that does not set them itself."""


@dataclass(frozen=True)
class ServerAccess:
    """Where the server may be asked, and with which token."""

    host: str = "127.0.0.1"
    token: str = ""
    """What each browser shows; empty: none is needed."""
    _for_once: set[str] = field(default_factory=set[str], repr=False)
    """Words that are good for one request each."""

    @property
    def is_local(self) -> bool:
        """Whether only this machine reaches the server."""
        return self.host in LOCAL_NAMES or _is_loopback(self.host)

    def names(self, header: str) -> bool:
        """Return whether a `Host` header names the server by an address, or by the name that it was given."""
        host = _host_in(header)
        if self.is_local:
            return host in LOCAL_NAMES or _is_loopback(host)
        return host == self.host.lower() or host in LOCAL_NAMES or ip_address_of(host) is not None

    def admits(self, token: str) -> bool:
        """Return whether a token is the server's."""
        return hmac.compare_digest(token.encode(), self.token.encode())

    def address(self, page: str, *, is_for_once: bool = False) -> str:
        """Return the address of a page with the token, or with a word that does instead of it in one request."""
        if not self.token:
            return page
        word = secrets.token_urlsafe(MIN_TOKEN_CHARS) if is_for_once else self.token
        if is_for_once:
            self._for_once.add(word)
        return f"{page}?{urlencode({TOKEN: word})}"

    def takes(self, word: str) -> bool:
        """Return whether a word of an address is the token, or good for once; it is not from then on."""
        is_once = word in self._for_once
        self._for_once.discard(word)
        return is_once or self.admits(word)


class RequestGuard:
    """Refuses what must not reach the pages, and adds the headers that bind the browser."""

    def __init__(self, app: ASGIApp, access: ServerAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that is allowed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refused = self._refused(scope, headers) or self._without_token(scope, headers)
        answer = _with_headers(send)
        if refused is not None:
            await refused(scope, receive, answer)
            return
        if scope["method"] == "HEAD":
            # Pages know GET alone. The server sends no body for what it was asked by.
            await self._app({**scope, "method": "GET"}, receive, _head_alone(answer))
            return
        await self._app(scope, _limited(receive), answer)

    def _refused(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the refusal of a request that is not meant for this server; None when it is."""
        if not self._access.names(headers.get("host", "")):
            return refusal(scope, 421, "This server answers to its own address only.", "open http://127.0.0.1:PORT/")
        if scope["method"] not in READING and not _is_from_here(headers):
            return refusal(scope, 403, "The request comes from another site.", "open the page itself, and try again")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > MAX_LENGTH_DIGITS or int(length) > MAX_BODY_BYTES:
            return refusal(scope, 413, f"More than {MAX_BODY_BYTES // 1_000_000} MB are not taken.", "send less")
        return None

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """Return the refusal of a request without the token, or what keeps a token as a cookie; None to go on."""
        access = self._access
        if not access.token:
            return None
        cookie = f"{COOKIE}_{(scope.get('server') or ('', 0))[1]}"
        pairs = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for name, value in pairs if name == TOKEN), None)
        # A word that is good for once is for a browser, and not used up by what looks whether the page is there.
        takes = {"GET": access.takes, "HEAD": access.admits}.get(scope["method"])
        if given is not None and takes is not None and takes(given):
            answer = _onward(scope, headers, [pair for pair in pairs if pair[0] != TOKEN])
            answer.set_cookie(cookie, access.token, httponly=True, samesite="strict", path="/")
            return answer
        bearer = headers.get("authorization", "").partition(" ")
        shown = bearer[2].strip() if bearer[0].lower() == "bearer" else _cookie(headers, cookie)
        if access.admits(shown):
            return None
        if _is_linked_elsewhere(headers):
            return _onward(scope, headers, pairs)
        if "text/html" in headers.get("accept", ""):
            return HTMLResponse(ASKS_FOR_TOKEN % (WRONG_TOKEN if given else ""), 401)
        return refusal(scope, 401, NEEDS_TOKEN, "open the address that `explorer serve` printed")


def _onward(scope: Scope, headers: Headers, pairs: list[tuple[str, str]]) -> Response:
    """Return what leads to an address with these parameters.

    A browser that follows a link of another site sends no cookie, also not to where it is redirected; to where a page
    of this server leads it does.
    """
    # Two slashes at the beginning would lead to another host.
    path = "/" + str(scope["path"]).lstrip("/\\")
    address = quote(path, safe="/._-~") + (f"?{urlencode(pairs)}" if pairs else "")
    if not _is_linked_elsewhere(headers):
        return RedirectResponse(address, 303)
    shown = escape(address)
    return HTMLResponse(
        f'{HEAD}<meta http-equiv="refresh" content="0; url={shown}">'
        f'<title>explorer</title><p><a href="{shown}">Continue</a></p></html>'
    )


def _is_linked_elsewhere(headers: Headers) -> bool:
    """Return whether a browser opens a page because of a link that is not on a page of this server."""
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-site") in {"cross-site", "same-site"}


def refusal(scope: Scope, status: int, words: str, hint: str) -> Response:
    """Return a refusal as the asker reads it: JSON below /api/, else text."""
    if str(scope["path"]).startswith(API):
        return JSONResponse({"error": {"message": words, "hint": hint, "type": "Refused"}}, status)
    return PlainTextResponse(f"{words}\n{hint}\n", status)


def _is_from_here(headers: Mapping[str, str]) -> bool:
    """Return whether a request that changes something comes from a page of this server, or from no page at all.

    A browser sends `Sec-Fetch-Site`, or an older one `Origin`. A program sends neither: then the body must be JSON,
    which no page of another site can send without being asked first.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in {"same-origin", "none"}:
        return False
    if origin is not None:
        parts = urlsplit(origin)
        return parts.scheme in {"http", "https"} and parts.netloc.lower() == headers.get("host", "").lower()
    return site is not None or headers.get("content-type", "").partition(";")[0].strip().lower() == JSON_BODY


def _limited(receive: Receive) -> Receive:
    """Count what comes in: a length may be missing or wrong."""
    total = 0

    async def take() -> Message:
        nonlocal total
        message = await receive()
        total += len(message.get("body", b""))
        # The server ends a request whose client is gone; one that sends too much is treated alike.
        return message if total <= MAX_BODY_BYTES else {"type": "http.disconnect"}

    return take


def _head_alone(send: Send) -> Send:
    """Send the beginning of an answer, and end it: a page that is kept up to date would never end."""

    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b""})

    return answer


def _with_headers(send: Send) -> Callable[[Message], Awaitable[None]]:
    async def answer(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        await send(message)

    return answer


def _cookie(headers: Mapping[str, str], name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found is not None else ""


def _host_in(header: str) -> str:
    """Return the host of a `Host` header, in small letters; empty for one that is none."""
    try:
        return (urlsplit(f"//{header}").hostname or "") if "@" not in header else ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    address = ip_address_of(host)
    return address is not None and address.is_loopback
