"""The addresses that agents may fetch: those that they have seen, never those that they put together.

A page can make a model send what it knows to the page's author, inside an address: `evil.example/?q=SECRET`. So an
address must be in the user's text, in a search result, or on a page already read, and it is fetched as it is written
there, not as the model spells it. A page with one link for each letter could still receive a word by which of its links
are read, so what the links of pages can say is counted. Addresses are found in prose and markup, and
compared whatever their spelling.

A page that links to N addresses of a domain offers its owner log2(N) bits with each of them that is read: which one
says as much as one of N letters. So bits are counted, for a domain as it is registered and paid for, because below it
its owner can have any number of names. A service where everybody may have a name (`NAME.github.io`) counts as one
domain, too: a stranger may have a name there for each letter.
"""

import asyncio
import html
import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from urllib.parse import quote, unquote, urljoin, urlsplit

from tld import get_fld  # pyright: ignore[reportUnknownVariableType] - of further arguments

from explorer.schema.errors import ExplorerError, RefusedCallError
from explorer.schema.events import (
    AgentContinued,
    AnyEvent,
    JournalRecord,
    RunStarted,
    Source,
    SourceRecorded,
    Steered,
    ToolFinished,
    TurnTaken,
)
from explorer.schema.network import ip_address_of
from explorer.sources.http.well_known import NAMED
from explorer.text.rendering import own, without_marks
from explorer.text.sanitize import visible
from explorer.text.urls import canonical_url
from explorer.workspace.source_store import stored_text

LINK_BITS = 104.0
"""What all links to one domain may say in a run: 20 letters of an alphabet of 36. A key has 128 bits or more.

It is enough to follow 20 links of a page with 36, 13 of one with 250, or 10 of one with 1,000.
"""
LIBRARY_BITS = 4 * LINK_BITS
"""The same for a library: 40 links of pages with 1,200."""
LIBRARIES = frozenset(
    {
        "arxiv.org",
        "github.com",
        "gitlab.com",
        "stackexchange.com",
        "stackoverflow.com",
        "wikimedia.org",
        "wikipedia.org",
        "ycombinator.com",
    }
)
"""Large domains whose pages are by many authors, and whose authors do not see which page was read when, or by whom."""
LEAST_BITS = 1.0
"""What a link says that is the only one: that it was followed."""


@lru_cache(maxsize=16_384)
def registrable_domain(host: str) -> str:
    """Return the domain of a host as one can register it: `b.co.uk` of `a.b.co.uk`; of an IP address, itself.

    Of the Public Suffix List only the registries' part counts, not the part with services that lend out names.
    """
    name = host.partition(":")[0].strip(".").lower() if host.count(":") <= 1 else host
    if ip_address_of(name.strip("[]")) is not None:
        return name
    found = get_fld(f"https://{name}", fail_silently=True, search_private=False) if name.isascii() else None
    return found if isinstance(found, str) else ".".join(name.split(".")[-2:])


class LinkBudget:
    """Counts, for each registrable domain, the links that pages offer and the bits of those that were followed."""

    def __init__(self) -> None:
        self._offered: dict[str, set[str]] = {}
        self._unsorted: list[tuple[str, str]] = []
        """Hosts and addresses of links whose domains were not needed yet: the list of suffixes is slow to load."""
        self._spent: dict[str, float] = {}

    def offer(self, host: str, key: str) -> None:
        """Note an address of a host that a page links to."""
        self._unsorted.append((host, key))

    def bits(self, domain: str) -> float:
        """Return what following one of the links to a domain says now."""
        for host, key in self._unsorted:
            self._offered.setdefault(registrable_domain(host), set()).add(key)
        self._unsorted.clear()
        return max(LEAST_BITS, math.log2(max(1, len(self._offered.get(domain, ())))))

    def count(self, domain: str) -> None:
        """Count a link that was followed."""
        self._spent[domain] = self._spent.get(domain, 0.0) + self.bits(domain)

    def follow(self, domain: str) -> None:
        """Count a link that is about to be followed.

        Raises:
            RefusedCallError: The links to its domain that were followed have said enough.
        """
        most = LIBRARY_BITS if domain in LIBRARIES else LINK_BITS
        if self._spent.get(domain, 0.0) + self.bits(domain) > most:
            raise RefusedCallError.of(
                "so many links to {domain} were followed already that it is enough for one run; search for what "
                "you need there, or use another source.",
                domain=domain,
            )
        self.count(domain)


MAX_WORK = 4_000_000
"""The work for the addresses of one text: characters, plus `ADDRESS_WORK` for each address. About half a second."""
ADDRESS_WORK = 200

START = re.compile(r"https?://", re.IGNORECASE)
REST = re.compile(r"[^\s<>\"`\\^{}]{1,2000}")
CUTS = re.compile(r"[()\[\]'|*,;]|[^\x00-\x7f]")
"""Characters after which prose may continue, although an address may contain them."""
ENDS = ".,;:!?'\")]}>*_~|…。，、；：！？”’）】》」』"  # noqa: RUF001 - punctuation of other languages is meant
MARKDOWN_TARGET = re.compile(r"\]\(\s{0,9}<?((?:\([^()\s<>]{0,500}\)|[^()\s<>]){1,2000})")
NAKED = re.compile(
    r"(?<![\w@/.:%-])((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.){1,8}[a-z]{2,24}(?::\d{2,5})?(?:/[^\s<>\"`\\]{0,2000})?)",
    re.IGNORECASE,
)
"""An address without its scheme, as people write it."""


def addresses_in(text: str, base: str = "") -> Iterator[str]:
    """Yield every address in a text, in each reading that its surroundings allow.

    `base` is the address of the text itself, for links in markdown that are written relative to it.
    """
    return _bounded(_addresses(text, base))


def naked_addresses_in(text: str) -> Iterator[str]:
    """Yield addresses without a scheme, such as `//example.com/x`, including text that only looks like one."""
    return _bounded(f"//{url}" for match in NAKED.finditer(text) for url in _readings(match[1]))


def key_of(url: str) -> str:
    """Return host, path and query, the same for all spellings of an address; empty if it is not a web address."""
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
    """Return the host of a key, with its port if that is unusual."""
    return re.split(r"[/?]", key, maxsplit=1)[0]


def shown(url: str) -> str:
    """Return an address as a reader sees it."""
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
    """Yield at most the number of addresses that an honest text has."""
    left = MAX_WORK
    for url in urls:
        left -= len(url) + ADDRESS_WORK
        if left < 0:
            return
        yield url


def _readings(raw: str) -> Iterator[str]:
    """Yield an address that runs into prose: whole, and up to each place where the prose may begin."""
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


MAX_SEARCHED_CHARS = 50_000_000
"""The characters of stored texts that are searched for one address, the newest first: about a second."""
PAGE_VIAS = frozenset({"direct", "reader", "archive"})
"""The ways by which a page is read at its address; other ways bring addresses that are seen as such."""
OWN_FILES = "file:inputs/"
OWN_VIA = "file"
"""The place of the user's files, and the way that they are read."""

FILE = "file"
CORPUS_VIA = "corpus"
"""The way by which the user's folder is read, which agents cannot write; all other files may be theirs."""
STORY = "story"
"""A post of a service; its second line is the address that it links to."""


class UrlAllowlist:
    """The addresses that a run has seen: from the user and from searches, and from links on pages.

    Args:
        records: The run's records, which may grow. The user's text and the sources in them are seen, and links that
            earlier processes followed stay counted.
        read_text: Returns a source's stored text by id; called only when an address is not known otherwise.
        searches: Names of tools whose results can repeat what they were asked for.
        other_tools: Names of tools that show addresses without storing sources, as an embedder's may.
        foreign: The number of the last record that somebody else may have written: all addresses up to it are links.
    """

    def __init__(
        self,
        records: Sequence[JournalRecord] = (),
        read_text: Callable[[str], str] = str,
        searches: Collection[str] = (),
        other_tools: Collection[str] = (),
        foreign: int = 0,
    ) -> None:
        self._records = records
        self._read_text = read_text
        self._searches = searches
        self._other_tools = other_tools
        self._heard = 0
        self._given: dict[str, str] = {}
        self._linked: dict[str, str] = {}
        self._read: set[str] = set()
        self._budget = LinkBudget()
        self._foreign = foreign
        self._foreign_sources: set[str] = set()
        """Ids of sources in records that somebody else may have written."""
        self._sources: list[Source] = []
        self._searched: set[str] = set()
        """Ids of sources whose links are known."""
        self._composed: set[str] = set()
        """Addresses that a model put into a search before they were seen: an answer does not make them seen."""
        self._looked_for: dict[str, int] = {}
        """The number of sources that were searched for the name of a domain."""
        self._listen()
        self._uncounted = set(self._read)
        """Addresses that earlier processes read, by a link or not."""

    def saw(self, text: str, *, is_page: bool = False, base: str = "") -> None:
        """Note every address in a text; on a page, or from anyone but the user and a search, it is only a link.

        `base` is the page's own address, for links that are written relative to it.
        """
        for url in addresses_in(text, base):
            self.saw_url(url, is_page=is_page)
        if not is_page:
            for url in naked_addresses_in(text):
                self.saw_url(url)

    def saw_url(self, url: str, *, is_page: bool = False) -> None:
        """Note one address, and the front page of its host; other texts are ignored."""
        url = shown(url)
        key = key_of(url)
        if not key:
            return
        known = self._linked if is_page else self._given
        scheme, slashes, rest = url.partition("//")
        front = f"{scheme}{slashes}{re.split('[/?#]', rest, maxsplit=1)[0]}/"
        for one, address in ((key, url), (host_of(key), front)):
            known.setdefault(one, address)
            if is_page:
                self._budget.offer(host_of(key), one)

    async def check(self, url: str) -> str:
        """Return the address to fetch, as it was seen, for any spelling of it.

        Raises:
            RefusedCallError: It was not seen, or enough links to its domain were followed.
        """
        self._listen()
        asked = shown(url).strip()
        key = key_of(asked if "://" in asked else f"//{asked}")
        if not key or key in self._composed or not (await self._is_given(key) or key in self._linked):
            raise RefusedCallError.of(
                "{url} was not in the question, in a search result or on a page read; search for it, or read a "
                "page that links to it. Front pages of well-known sites may be opened, such as {named}.",
                url=url[:300],
                named=own(NAMED),
            )
        if key not in self._given and key not in self._read:
            await self._spend(registrable_domain(host_of(key)))
        found = self._given.get(key) or self._linked[key]
        scheme = "http:" if asked.lower().startswith("http:") else "https:"
        return f"{scheme}{found}" if found.startswith("//") else found

    async def _is_given(self, key: str) -> bool:
        if key not in self._given:
            await asyncio.to_thread(self._search_texts, registrable_domain(host_of(key)))
        return key in self._given

    async def _spend(self, domain: str) -> None:
        """Count one more link to a domain, and those that earlier processes followed."""
        for key in [key for key in self._uncounted if registrable_domain(host_of(key)) == domain]:
            self._uncounted.discard(key)
            if not await self._is_given(key):
                self._budget.count(domain)
        self._budget.follow(domain)

    def _listen(self) -> None:
        """Note what was recorded since: the user's text, and the addresses of sources."""
        new = self._records[self._heard :]
        self._heard += len(new)
        for record in new:
            event, is_foreign = record.event, record.seq <= self._foreign
            if isinstance(event, SourceRecorded):
                self._saw_source(event.source, is_foreign=is_foreign)
            elif isinstance(event, ToolFinished) and event.name in self._other_tools:
                self.saw(without_marks(event.content), is_page=True)
            elif isinstance(event, TurnTaken):
                self._searched_for(event)
            elif words := given_by_user(event):
                self.saw(words, is_page=is_foreign)
                self._composed -= {key_of(shown(url)) for url in addresses_in(words, "")}

    def _searched_for(self, event: TurnTaken) -> None:
        """Note addresses that a model put into a search before anybody had seen them.

        Otherwise an engine that repeats the query would make them seen.
        """
        for call in event.turn.calls:
            words = json.dumps(call.arguments, ensure_ascii=False) if call.name in self._searches else ""
            for key in {key_of(shown(url)) for url in addresses_in(words, "")} - {""}:
                if key not in self._given and key not in self._linked:
                    self._search_texts(registrable_domain(host_of(key)))
                if key not in self._given and key not in self._linked:
                    self._composed.add(key)

    def _saw_source(self, source: Source, *, is_foreign: bool) -> None:
        is_page = source.via in PAGE_VIAS
        self.saw_url(source.url, is_page=is_page or is_foreign)
        self.saw(source.title, is_page=True)
        if is_foreign:
            self._foreign_sources.add(source.id)
        if not _is_of_agents(source):
            self._sources.append(source)
        if is_page and not is_foreign:
            self._read.add(key_of(source.url))

    def _search_texts(self, domain: str) -> None:
        """Note the links of all stored texts that name a domain, the newest first."""
        start, end = self._looked_for.get(domain, 0), len(self._sources)
        left = MAX_SEARCHED_CHARS
        for source in reversed(self._sources[start:end]):
            left -= source.chars
            if left < 0:
                break
            if source.id not in self._searched:
                self._search(source, domain)
        self._looked_for[domain] = end

    def _search(self, source: Source, name: str) -> None:
        try:
            text = self._read_text(source.id)
        except (ExplorerError, OSError):  # then its links are not known: they can be searched for
            return
        if name not in text.lower() and name not in source.url.lower():
            return
        self._searched.add(source.id)
        is_link = not _is_own(source) or source.id in self._foreign_sources
        lines = stored_text(text).split("\n", 2)
        if source.kind == STORY and len(lines) > 1 and lines[1].startswith(("http://", "https://")):
            self.saw_url(lines[1], is_page=source.id in self._foreign_sources)
        self.saw(text, is_page=is_link, base=source.url)


def given_by_user(event: AnyEvent) -> str:
    """Return the user's own text in an event: the question, a message, a follow-up; empty in all others."""
    match event:
        case RunStarted():
            return event.question
        case Steered():
            return event.text
        case AgentContinued(parent_call=""):
            return event.task
        case _:
            return ""


def _is_own(source: Source) -> bool:
    return source.via == OWN_VIA and source.url.startswith(OWN_FILES)


def _is_of_agents(source: Source) -> bool:
    """Return whether agents wrote the source, in this run or another: addresses that they put together are not seen."""
    return source.kind == FILE and source.via != CORPUS_VIA and not _is_own(source)
