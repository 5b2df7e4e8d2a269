"""Web addresses as they stand in texts: found in prose and markup, and compared whatever their spelling."""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from urllib.parse import quote, unquote, urljoin, urlsplit

from explorer.text.sanitize import visible
from explorer.text.urls import canonical_url

MAX_WORK = 4_000_000
"""Of one text's addresses: characters, and for each address as many again as `ADDRESS_WORK`. Half a second or so."""
ADDRESS_WORK = 200

START = re.compile(r"https?://", re.IGNORECASE)
REST = re.compile(r"[^\s<>\"`\\^{}]{1,2000}")
CUTS = re.compile(r"[()\[\]'|*,;]|[^\x00-\x7f]")
"""Where prose may go on behind an address, although an address may contain it."""
ENDS = ".,;:!?'\")]}>*_~|…。，、；：！？”’）】》」』"  # noqa: RUF001 - punctuation of other languages is meant
MARKDOWN_TARGET = re.compile(r"\]\(\s{0,9}<?((?:\([^()\s<>]{0,500}\)|[^()\s<>]){1,2000})")
NAKED = re.compile(
    r"(?<![\w@/.:%-])((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}(?::\d{2,5})?(?:/[^\s<>\"`\\]{0,2000})?)",
    re.IGNORECASE,
)
"""An address without its scheme, as people write them."""

SHARED = re.compile(
    r"(git(hub|lab)|readthedocs)\.io|(blogspot|wordpress|substack|medium|tumblr|stackexchange|herokuapp)\.com"
    r"|(netlify|vercel|web)\.app|pages\.dev|wikipedia\.org"
)
"""Domains under which everybody has a name of their own, or which are large libraries: each name is a site."""
TOP_SHORT, SECOND_SHORT = 2, 3
"""Letters of endings like `co.uk`, under which sites have three labels."""


def addresses_in(text: str, base: str = "") -> Iterator[str]:
    """Every address in a text, in each reading that its surroundings allow.

    `base` is the address of the text itself, for links in markdown that are written relative to it.
    """
    return _bounded(_addresses(text, base))


def naked_addresses_in(text: str) -> Iterator[str]:
    """Addresses written without a scheme, as `//example.com/x`; what only looks like one is among them."""
    return _bounded(f"//{url}" for match in NAKED.finditer(text) for url in _readings(match[1]))


def key_of(url: str) -> str:
    """Host, path and query, under which all spellings of an address meet; empty when it is no web address."""
    try:
        parts = urlsplit(canonical_url(shown(url)))
        if parts.scheme not in {"http", "https", ""} or not parts.hostname or "@" in parts.netloc:
            return ""
        port = f":{parts.port}" if parts.port not in {None, 80, 443} else ""
    except ValueError:
        return ""
    query = f"?{parts.query}" if parts.query else ""
    return f"{parts.hostname}{port}{quote(unquote(parts.path))}{query}"


def host_of(key: str) -> str:
    """The host of a key, with its port if that is an unusual one."""
    return re.split(r"[/?]", key, maxsplit=1)[0]


def site_of(host: str) -> str:
    """What one owner has: `a.example.org` and `b.example.org` are one site."""
    name = host.partition(":")[0]
    labels = name.split(".")
    if ":" in name or labels[-1].isdecimal() or SHARED.fullmatch(".".join(labels[-2:])):
        return name
    is_short = len(labels[-1]) <= TOP_SHORT and len(labels[-2:][0]) <= SECOND_SHORT
    return ".".join(labels[-3 if is_short else -2 :])


def shown(url: str) -> str:
    """An address as a reader sees it."""
    return url if url.isascii() and url.isprintable() else visible(url)


def _addresses(text: str, base: str) -> Iterator[str]:
    for match in START.finditer(text):
        if rest := REST.match(text, match.end()):
            yield from _readings(match[0] + rest[0])
    for match in MARKDOWN_TARGET.finditer(text):
        target = html.unescape(match[1])
        if START.match(target):
            yield target
        elif base.startswith("http") and not re.match(r"[a-z][a-z0-9+.-]*:", target, re.IGNORECASE):
            try:
                yield urljoin(base, target)
            except ValueError:  # brackets that are no address
                continue


def _bounded(urls: Iterable[str]) -> Iterator[str]:
    """As many as a text that means no harm may have."""
    left = MAX_WORK
    for url in urls:
        left -= len(url) + ADDRESS_WORK
        if left < 0:
            return
        yield url


def _readings(raw: str) -> Iterator[str]:
    """An address that runs into prose: whole, and up to each place where the prose may begin."""
    cuts = {match[0]: match.start() for match in reversed(list(islice(CUTS.finditer(raw), 50)))}
    ends = sorted({len(raw), *cuts.values(), *((first,) if (first := _first_foreign(raw)) else ())})
    for end in ends:
        whole = raw[:end]
        yield whole
        bare = whole.rstrip(ENDS)
        if bare != whole:
            yield bare
            if whole[len(bare)] == ")" and "(" in bare:  # as in Foo_(bar).
                yield f"{bare})"
    if "&amp;" in raw:
        yield html.unescape(raw).rstrip(ENDS)


def _first_foreign(raw: str) -> int:
    return next((place for place, character in enumerate(raw) if not character.isascii()), 0)
