"""Hints: what users can do about a failure, by the text of a refusal, by the address, or by the error of a connection.

In the middle of a run such failures pass, and waiting helps. Before a server has ever answered they are most likely
wrong settings, and eight attempts only hide that from the user.
"""

import re
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import unescape
from typing import NamedTuple
from urllib.parse import urlsplit

from explorer.llm.options import Endpoint
from explorer.schema.errors import ModelFault
from explorer.schema.network import Proxy
from explorer.text.sanitize import single_line


@dataclass(frozen=True, slots=True)
class Cure:
    """A refusal that is known by its text."""

    says: str
    """A pattern of the server's text."""
    hint: str
    fault: ModelFault = ModelFault.UNSUPPORTED
    """The fault, whatever its status: some are sent as 500, and asking again would not help. None is `REJECTED`, which
    ends the run: these are fixed by the user, and the run then continues."""


PAYMENT_REQUIRED, TOO_MANY_REQUESTS = 402, 429
_ABOUT_MONEY = re.compile("quota|credit|balance|billing", re.IGNORECASE)
_RETRY_IN = re.compile(r"\bretry in (\d+(?:\.\d+)?) ?s\b", re.IGNORECASE)
_NOTHING_ALLOWED = re.compile(r"\blimit: 0\b")
NO_CREDIT = Cure(
    "insufficient_quota|billing_error|exceeded your current quota|credit balance is too low|"
    "insufficient (credits|balance)|requires more credits|payment required",
    "add credit to the provider's account, or take another provider: explorer models",
    ModelFault.CREDENTIALS,
)
CURES = (
    Cure("--jinja", "start the server with its chat template: llama-server --jinja -m MODEL.gguf"),
    Cure(
        "enable-auto-tool-choice",
        "start vLLM with tools: vllm serve MODEL --enable-auto-tool-choice --tool-call-parser PARSER (hermes for Qwen)",
    ),
    Cure("does not support tools", "take a model that can call tools; `ollama show MODEL` lists what one can do"),
    Cure("failed to parse grammar", "update llama.cpp or LM Studio: this version cannot read the tools' schemas"),
    Cure(r"try pulling it|pull(ing)? the model", "get the model: ollama pull MODEL", ModelFault.UNKNOWN_MODEL),
    Cure(
        "no models? (is )?loaded|model unloaded",
        "load a model: lms load MODEL, or llama-server -m MODEL.gguf",
        ModelFault.UNKNOWN_MODEL,
    ),
    Cure(
        r"organi[sz]ation must be verified|verify organi[sz]ation",
        "verify the organisation at platform.openai.com/settings/organization/general, or take another model",
    ),
    Cure(
        "unsupported_country|country, region|not available in your (country|region)|location is not supported",
        "the provider does not serve this country; take another provider: explorer models",
    ),
    Cure(
        "not have access to (the )?model|model.{0,40}not (found|available)|no endpoints found",
        "take a model that this key may use: explorer models",
        ModelFault.UNKNOWN_MODEL,
    ),
    NO_CREDIT,
)
"""The first match wins; each text is one of a vendor's own server (see `tests/vendor_rules`)."""


def cure_of(refusal_text: str, status: int) -> Cure | None:
    """Return what fixes a refusal; None where its text is not known, and where waiting fixes it."""
    if status == PAYMENT_REQUIRED:
        return NO_CREDIT
    if status == TOO_MANY_REQUESTS and (says_when(refusal_text) is not None or not _ABOUT_MONEY.search(refusal_text)):
        return None
    return next((cure for cure in CURES if re.search(cure.says, refusal_text, re.IGNORECASE)), None)


def says_when(refusal_text: str) -> float | None:
    """Return the seconds after which a refusal invites to retry; None where it names none, or a limit of 0.

    Google's limit per minute has the words of an empty account: "You exceeded your current quota, please check your
    plan and billing details. ... Please retry in 20.04s." (googleapis/python-genai, continuedev/continue #10062).
    """
    found = _RETRY_IN.search(refusal_text)
    return float(found[1]) if found and not _NOTHING_ALLOWED.search(refusal_text) else None


def foreign_key_hint(key: str, key_setting: str) -> str:
    """Return the hint that a key is another provider's; empty when its form does not show that."""
    for prefix, owner, setting in _PREFIXES:
        if key.startswith(prefix):
            return f"{key_setting} contains a key of {owner}: put it into {setting}" if setting != key_setting else ""
    return ""


_PREFIXES = (
    ("sk-ant-", "Anthropic", "ANTHROPIC_API_KEY"),
    ("tvly-", "Tavily", "TAVILY_API_KEY"),
)


START_COMMANDS: Mapping[int, str] = {
    11434: "ollama serve",
    1234: "lms server start",
    8080: "llama-server -m MODEL.gguf --port 8080",
    8000: "vllm serve MODEL --enable-auto-tool-choice --tool-call-parser PARSER",
}
"""The command that starts a local server, by its default port."""

LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})
TITLE_CHARS = 80


class Unreached(NamedTuple):
    """Why there was no connection, and what to do about it."""

    words: str
    hint: str


def why_unreached(error: BaseException, endpoint: Endpoint) -> Unreached | None:
    """Return that the host is unknown or that nothing listens there, by an error and its causes; else None."""
    causes = tuple(causes_of(error))
    host, port = _target(endpoint, causes)
    if proxy := endpoint.network.proxy_for(endpoint.base_url):  # nothing else was connected to
        return _proxy_unreached(proxy, causes)
    if any(isinstance(cause, socket.gaierror) for cause in causes):
        return Unreached(f"the host name {host} cannot be resolved", network_hint(endpoint))
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        return Unreached(f"nothing listens at {host}, port {port}", _start_hint(endpoint, host, port))
    return None


def network_hint(endpoint: Endpoint) -> str:
    """Return what to check when a server cannot be reached."""
    if endpoint.is_default:
        return "check the network; if it has a proxy, set HTTPS_PROXY"
    return f"check the network, and the host in {endpoint.url_setting}"


def _proxy_unreached(proxy: Proxy, causes: Iterable[BaseException]) -> Unreached | None:
    hint = f"start the proxy, or correct {proxy.variable}"
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return Unreached(f"the host name of {proxy} cannot be resolved", hint)
        if isinstance(cause, ConnectionRefusedError):
            return Unreached(f"nothing listens at {proxy}", hint)
    return None


def page_title(text: str) -> str:
    """Return the title of a web page, or its first heading; empty when it has neither."""
    for pattern in (r"(?is)<title[^>]*>(.*?)</title", r"(?is)<h1[^>]*>(.*?)</h1"):
        found = re.search(pattern, text[:20_000])
        title = single_line(unescape(re.sub(r"<[^>]*>", " ", found[1]))) if found else ""
        if title:
            return title[:TITLE_CHARS]
    return ""


def is_web_page(content_type: str, text: str) -> bool:
    """Return whether an answer is a page for people, not the reply of an API."""
    return content_type.startswith("text/html") or bool(re.match(r"(?i)\s*<(!doctype html|html)\b", text))


def url_hint(endpoint: Endpoint) -> str:
    """Return what to check in the address of an API."""
    if urlsplit(endpoint.base_url).path.rstrip("/").endswith("/v1") or not endpoint.wants_v1:
        return f"check the address in {endpoint.url_setting}"
    return f"check the address in {endpoint.url_setting}: it should end in /v1"


def causes_of(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and those it was raised from, outermost first."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _target(endpoint: Endpoint, causes: tuple[BaseException, ...]) -> tuple[str, int]:
    """Return the host and port that were tried: those of the connection, which may be a proxy's, else the URL's."""
    parts = urlsplit(endpoint.base_url)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    for cause in causes:
        tried = getattr(cause, "host", None)
        if isinstance(tried, str) and tried:
            tried_port = getattr(cause, "port", None)
            return tried, tried_port if isinstance(tried_port, int) else port
    return host, port


def _start_hint(endpoint: Endpoint, host: str, port: int) -> str:
    if host not in LOCAL_HOSTS:
        return f"start the server there, or correct {endpoint.url_setting}"
    command = START_COMMANDS.get(port)
    started = f"start the server: {command}" if command else "start the server"
    return f"{started}; or correct {endpoint.url_setting}"
