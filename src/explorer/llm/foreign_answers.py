"""Errors for what answered in place of a model server: another protocol, a web page, a broken answer, nothing.

With a slightly wrong address (a port, a scheme, a path) something else answers. Its answer is the best hint at the
mistake, and a second attempt gets the same: such errors have `is_wrong_server`, and are repeated only where the server
has answered before. A closed connection alone may be a server that restarts, so it is tried a few times.
"""

import ast
import asyncio
import re
import ssl
from urllib.parse import urlsplit

import httpx2

from explorer.llm.faults import redact, unreachable, words_of_page
from explorer.llm.hints import causes_of, network_hint, page_title, url_hint, why_unreached
from explorer.llm.options import Endpoint
from explorer.network.client_options import UNTRUSTED, advice
from explorer.schema.errors import ModelError, ModelFault

SHOWN_CHARS = 80
"""Limit of a server's answer in an error."""

PROBE_S = 2.0
"""Seconds to wait for the first bytes of a port."""

_QUOTED_BYTES = re.compile(r"""(?:bytearray\()?(b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*")""", re.DOTALL)
"""The bytes that a parser quotes in its error."""

_TLS_RECORDS = (b"\x15\x03", b"\x16\x03")
"""The first bytes of a TLS alert and of a TLS handshake (RFC 8446, 5.1)."""

_CUT_SHORT = frozenset({"ServerDisconnectedError", "ConnectionResetError", "IncompleteReadError", "BrokenPipeError"})
_DISCONNECTED = "Server disconnected without sending a response"
"""The text of httpx2's error for an answer that ended within its headers; bytes that came are lost."""
_NOT_ALL = "Not enough data to satisfy"
"""The text of aiohttp's error for a body that ended before its length or its last chunk."""
_NO_STATUS_LINE = re.compile(r"bad status line|illegal status line", re.IGNORECASE)
_BROKEN_HTTP = frozenset({"HttpProcessingError", "BadHttpMessage", "LineTooLong", "TransferEncodingError"})


_CONNECTING = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, ssl.SSLError)
"""Errors of making a connection, so that nothing was sent on one."""


def connection_error(error: BaseException, endpoint: Endpoint) -> ModelError:
    """Make the error for a request that brought no readable answer.

    Args:
        error: The error of the SDK or the transport. Its causes are searched for a more precise one.
        endpoint: The server.
    """
    unreached = why_unreached(error, endpoint)
    if unreached is not None:
        made = _wrong_server(f"no connection to {endpoint}: {unreached.words}", unreached.hint)
    else:
        made = _find(error, endpoint) or unreachable(endpoint, _words(error.__cause__ or error))
    made.is_unsent = (
        made.is_unsent or unreached is not None or any(isinstance(cause, _CONNECTING) for cause in causes_of(error))
    )
    return made


async def probed_error(error: BaseException, endpoint: Endpoint) -> ModelError:
    """Make the error for a request of httpx2's own client, which forgets what was sent before it gave up.

    The port is asked once more, over a bare connection and without a key, for its first bytes.
    """
    made = connection_error(error, endpoint)
    parts = urlsplit(endpoint.base_url)
    if endpoint.network.proxy_for(endpoint.base_url):  # the port is out of reach but for the proxy
        return made
    if parts.scheme != "http" or not any(str(cause).startswith(_DISCONNECTED) for cause in causes_of(error)):
        return made
    sent = await _first_bytes(parts.hostname or "", parts.port or 80)
    return _other_protocol(sent, endpoint) if sent and not sent.startswith(b"HTTP/") else made


async def _first_bytes(host: str, port: int) -> bytes:
    try:
        async with asyncio.timeout(PROBE_S):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(b"GET / HTTP/1.0\r\n\r\n")
                return await reader.read(SHOWN_CHARS)
            finally:
                writer.close()
    except OSError:
        return b""


def was_unsent(error: BaseException) -> bool:
    """Return whether a request failed before a byte of it was sent, on a connection that the server had closed."""
    return any("closing transport" in str(cause) for cause in causes_of(error))


def stream_error(error: BaseException, endpoint: Endpoint) -> ModelError:
    """Make the error for a body that broke off, or that is not what its header says."""
    found = _find(error, endpoint)
    # A body that only ends early does not show who sent it.
    return (
        found
        if found is not None and not _is_cut(error)
        else unreachable(endpoint, f"the stream broke ({_words(error)})")
    )


def transport_errors() -> tuple[type[Exception], ...]:
    """Return what a request over an SDK's client can raise; its transport lets some of aiohttp's own errors through."""
    import aiohttp  # noqa: PLC0415 - slow to import

    return (httpx2.HTTPError, aiohttp.ClientError, OSError)


def web_page(text: str, status: int, endpoint: Endpoint) -> ModelError:
    """Make the error for a web page in place of a reply."""
    shown = _shown(page_title(text) or words_of_page(text), endpoint)
    named = f" ({shown!r})" if shown else ""
    message = f"{endpoint} answered with a web page{named}, not with a model's reply (status {status})"
    return _wrong_server(message, url_hint(endpoint))


def no_events(begin: bytes, kind: str, status: int, endpoint: Endpoint) -> ModelError:
    """Make the error for a body without any event.

    Args:
        begin: The first bytes of the body.
        kind: The body's content type.
        status: The HTTP status.
        endpoint: Where the request went.
    """
    if not begin:
        message = f"{endpoint} sent an empty answer (status {status})"
    else:
        sent = _shown(begin.decode("utf-8", "replace"), endpoint)
        message = f"{endpoint} answered with {kind or 'a body'} that is not a model's reply (it sent {sent!r})"
    return _wrong_server(message, f"check {endpoint.url_setting}")


def _find(error: BaseException, endpoint: Endpoint) -> ModelError | None:
    """Return what the causes of an error say, innermost first; a finished `ModelError` says it best."""
    causes = list(causes_of(error))
    for cause in causes:
        if isinstance(cause, ModelError):
            return cause
    for cause in reversed(causes):
        found = _named(cause, endpoint)
        if found is not None:
            return found
    return None


def _is_cut(error: BaseException) -> bool:
    return any(type(cause).__name__ in _CUT_SHORT or _NOT_ALL in str(cause) for cause in causes_of(error))


def _named(error: BaseException, endpoint: Endpoint) -> ModelError | None:
    """Return the error for one cause; None for a cause that shows nothing by itself."""
    if isinstance(error, ssl.SSLError):
        return _tls_error(error, endpoint)
    text, name = str(error), type(error).__name__
    if _NO_STATUS_LINE.search(text):
        return _other_protocol(_quoted(text), endpoint)
    if name in _CUT_SHORT or text.startswith(_DISCONNECTED):
        return _closed(endpoint)
    if isinstance(error, httpx2.DecodingError):
        return _wrong_server(
            f"{endpoint} sent a body that cannot be decompressed ({_shown(text, endpoint)})", _check(endpoint)
        )
    if name in _BROKEN_HTTP or isinstance(error, httpx2.RemoteProtocolError):
        words = _shown(text.removeprefix("400, message:"), endpoint)
        return _wrong_server(f"{endpoint} sent a broken HTTP answer ({words})", _check(endpoint))
    return None


def _tls_error(error: ssl.SSLError, endpoint: Endpoint) -> ModelError:
    where = _host(endpoint)
    if isinstance(error, ssl.SSLCertVerificationError):
        why = _shown(error.verify_message or str(error), endpoint)
        cure = advice(endpoint.network, f"{UNTRUSTED} {why}")
        return _wrong_server(f"the certificate of {where} is not trusted ({why})", f"{_check(endpoint)}, or {cure}")
    if urlsplit(endpoint.base_url).scheme == "https" and error.reason in _NOT_TLS:
        hint = f"write http:// in {endpoint.url_setting}, or name the port that speaks TLS"
        return _wrong_server(f"{where} does not speak TLS", hint)
    return _wrong_server(f"no TLS connection to {where} ({_shown(str(error), endpoint)})", _check(endpoint))


_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG", "UNEXPECTED_MESSAGE"})
"""OpenSSL's names for an answer that is not a TLS record."""


def _other_protocol(sent: bytes, endpoint: Endpoint) -> ModelError:
    if sent.startswith(_TLS_RECORDS):
        return _wrong_server(
            f"{_host(endpoint)} speaks TLS, not plain HTTP", f"write https:// in {endpoint.url_setting}"
        )
    shown = _shown(sent.decode("utf-8", "replace"), endpoint)
    what = f"it sent {shown!r}" if shown else "what it sent has no status line"
    return _wrong_server(f"{_host(endpoint)} does not speak HTTP ({what})", _check(endpoint))


def _closed(endpoint: Endpoint) -> ModelError:
    hint = f"check that {endpoint.url_setting} names a model server that runs"
    hint = network_hint(endpoint) if endpoint.is_default else hint
    if urlsplit(endpoint.base_url).scheme == "http":
        hint += "; a port that speaks TLS needs https://"
    # "no connection", because a working server breaks off so, too.
    made = _wrong_server(f"no connection to {endpoint}: it closed the connection without an answer", hint)
    made.is_closed = True
    return made


def _wrong_server(message: str, hint: str) -> ModelError:
    return ModelError(ModelFault.TRANSPORT, message, hint=hint, is_wrong_server=True)


def _check(endpoint: Endpoint) -> str:
    return f"check {endpoint.url_setting}"


def _host(endpoint: Endpoint) -> str:
    return urlsplit(endpoint.base_url).netloc.rpartition("@")[2] or endpoint.base_url


def _quoted(text: str) -> bytes:
    found = _QUOTED_BYTES.search(text)
    try:
        return ast.literal_eval(found[1]) if found else b""
    except (ValueError, SyntaxError):
        return b""


def _shown(text: str, endpoint: Endpoint) -> str:
    """Return one short line without keys and control characters."""
    printable = "".join(letter if letter.isprintable() else " " for letter in text[: 10 * SHOWN_CHARS])
    line = redact(printable, endpoint)
    return line if len(line) <= SHOWN_CHARS else line[:SHOWN_CHARS] + "..."


def _words(error: BaseException) -> str:
    return str(error) or type(error).__name__
