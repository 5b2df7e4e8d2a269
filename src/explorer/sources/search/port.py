"""The port of web search engines: one shape of question, answer and failure, and filters for sites and dates.

What an engine cannot filter by itself is written into the query, and checked in its answer.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Generic, Literal, LiteralString, Self, TypeVar
from urllib.parse import urlsplit

from explorer.schema.errors import ToolError
from explorer.schema.setting import ExtensionSettings, Setting, declared_setting
from explorer.sources.http.api_client import ApiClient, ApiRules, CallError, ServiceRefusedError
from explorer.sources.http.caller import Caller
from explorer.sources.http.well_known import NAMED
from explorer.text.rendering import code, own
from explorer.text.urls import canonical_url

OTHER_TOOLS = own(
    "Continue with search_site, search_hn and get_hn_stories; read_webpage opens the front pages of well-known sites, "
    "such as {named}.",
    named=own(NAMED),
)
OF_SAMPLE_DAY = own("Continue with search_hn, get_hn_stories and read_webpage.")
PAGE_TEXT_CHARS = 100_000
"""The largest text of a result's page, where an engine delivers it."""
SHORT_REST_S = 60.0
"""The seconds for which an engine is not asked after a failure that may pass."""
LONG_REST_S = 900.0
"""The seconds for which an engine is not asked after a lasting refusal, such as a limit or a key."""


@dataclass(frozen=True)
class WebQuery:
    """A web search."""

    words: str
    max_results: int = 8
    depth: str = "basic"
    """`basic` or `advanced`."""
    include_domains: Sequence[str] = ()
    exclude_domains: Sequence[str] = ()
    since: str = ""
    """ISO date; hits are not older."""


@dataclass(frozen=True)
class WebHit:
    """One result, in the same shape for every engine."""

    title: str
    url: str
    snippet: str
    engine: str = ""
    """The name of its engine or site, which sets it, as its rank, when the answer is made."""
    rank: int = 0
    published: str = ""
    """ISO date, or the engine's own text; often empty."""
    score: float | None = None
    author: str = ""
    text: str = ""
    """The page's whole text, where the engine delivers it; at most `PAGE_TEXT_CHARS`."""
    flags: tuple[str, ...] = ()
    """`truncated` when that text was cut."""
    found_by: tuple[str, ...] = ()
    """The engines that found it, where several were asked."""


@dataclass(frozen=True)
class WebAnswer:
    """The results of one search."""

    engine: str
    """The name of the engine that answered."""
    hits: tuple[WebHit, ...]
    notes: tuple[str, ...] = ()
    """Sentences about the answer: which engines failed before, and what was left out."""
    counts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The number of results of each engine, where several were asked."""


class WebSearch(ABC):
    """The port of a search engine; open it with `async with`. Nothing is sent before the first search."""

    name: str
    """The label of its results."""

    @abstractmethod
    async def search(self, query: WebQuery) -> WebAnswer:
        """Search once.

        Raises:
            ToolError: No answer came; the text says why and what else to try.
        """

    async def aclose(self) -> None:  # noqa: B027 - some engines keep none
        """Close all connections; engines that have some override this."""

    async def __aenter__(self) -> Self:
        """Return the open engine."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close all connections."""
        await self.aclose()


class ApiSearch(WebSearch):
    """A search engine with an API over HTTP; `call` sends requests to it."""

    def __init__(self, call: ApiClient) -> None:
        self._call = call

    async def aclose(self) -> None:
        """Close all connections."""
        await self._call.aclose()


@dataclass(frozen=True)
class SearchAccess:
    """What opening an engine takes, besides its own settings."""

    caller: Caller = field(default_factory=Caller)
    """The user's network and name."""
    pause: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits between attempts."""

    def rules(self, rules: ApiRules) -> ApiRules:
        """Return an engine's rules for this caller."""
        return replace(rules, pause=self.pause, caller=self.caller)


S = TypeVar("S", bound=ExtensionSettings)


@dataclass(frozen=True)
class SearchEngine(Generic[S]):
    """A search engine to register: the entry point `explorer.search` names one of these."""

    name: str
    """The name that the user writes: `--search NAME`."""
    settings: type[S]
    open: Callable[[S, SearchAccess], WebSearch]
    needs: str = ""
    """The field of its settings that must be set for `auto` to take it; empty: it is only taken by name."""
    without_name: str = ""
    """Its name when it works without what it needs, as the last one that `auto` takes; empty: it does not."""
    package: str = ""
    """A package that must be installed for it; the extra of explorer has the same name."""

    @property
    def needed(self) -> Setting | None:
        """The setting that it needs."""
        return declared_setting(self.settings, self.needs) if self.needs else None


class SearchFailedError(ToolError):
    """A search engine gave no answer.

    `problem` is a clause with the engine as its subject, `stated` the engine's own message, and `rest_s` the seconds
    for which it is useless to ask again.
    """

    def __init__(
        self, engine: str, problem: str, *, stated: str = "", rest_s: float = SHORT_REST_S, hint: str = ""
    ) -> None:
        theirs = own(" It says: {words}.", words=stated.rstrip(".")) if stated else own("")
        message = own(
            "Web search ({engine}) {problem}.{theirs} {advice}",
            engine=code(engine),
            problem=problem,
            theirs=theirs,
            advice=OTHER_TOOLS,
        )
        super().__init__(message, hint=hint)
        self.engine = engine
        self.problem = problem
        self.stated = stated
        self.rest_s = rest_s


REFUSALS: Mapping[int, LiteralString] = {
    400: "did not accept the query: change the query or its filters",
    401: "did not accept its key",
    402: "asks for payment: its credits are used up",
    403: "refused access",
    404: "is not found at its address",
    422: "did not accept the query: change the query or its filters",
    429: "is over its rate limit",
}
ABOUT_THE_QUERY = frozenset({400, 422})


def failure(engine: str, error: CallError, refusals: Mapping[int, LiteralString]) -> SearchFailedError:
    """Return the failure as text for a model; `refusals` are clauses by status that fit this engine better."""
    if not isinstance(error, ServiceRefusedError):
        return SearchFailedError(engine, str(error))
    clause = refusals.get(error.status) or REFUSALS.get(error.status, "failed")
    again = own("; it opens again in {wait:g} s", wait=error.retry_after_s) if error.retry_after_s else own("")
    if error.status in ABOUT_THE_QUERY and error.status not in refusals:
        rest = 0.0
    elif error.is_retryable:
        rest = SHORT_REST_S
    else:
        rest = LONG_REST_S if error.retry_after_s is None else error.retry_after_s
    problem = own("{clause} (status {status}){again}", clause=own(clause), status=error.status, again=again)
    return SearchFailedError(engine, problem, stated=error.stated, rest_s=rest)


def merged(hits: Iterable[WebHit]) -> list[WebHit]:
    """Return one result for each address, in the order of first mention, with new ranks.

    The first result gets what it lacks from later ones: a passage, a date, more of the page's text. Results without a
    web address are dropped.
    """
    seen: dict[str, WebHit] = {}
    for hit in hits:
        if key := _key(hit.url):
            seen[key] = joined(seen[key], hit) if key in seen else hit
    return [replace(hit, rank=rank) for rank, hit in enumerate(seen.values(), start=1)]


def joined(first: WebHit, later: WebHit) -> WebHit:
    """Return a result with what it lacks from another one for the same page."""
    longer = later if len(later.text) > len(first.text) else first
    return replace(
        first,
        snippet=first.snippet or later.snippet,
        published=first.published or later.published,
        author=first.author or later.author,
        text=longer.text,
        flags=longer.flags,
    )


def _key(url: str) -> str:
    """Return the canonical form of an address; empty for what is not a web address."""
    try:
        return canonical_url(url) if url.startswith(("http://", "https://")) else ""
    except ValueError:
        return ""


def page_text(text: str | None) -> tuple[str, tuple[str, ...]]:
    """Return a page's text up to the limit, and the flags that belong to it."""
    whole = (text or "").strip()
    return whole[:PAGE_TEXT_CHARS], ("truncated",) if len(whole) > PAGE_TEXT_CHARS else ()


Window = Literal["day", "week", "month", "year"]
WINDOW_DAYS: dict[Window, int] = {"day": 1, "week": 7, "month": 30, "year": 365}
MAX_QUERY_CHARS = 400
MAX_QUERY_WORDS = 50
AGO = re.compile(r"(\d{1,3}) (minute|hour|day)s? ago")
ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
WRITTEN_DATES = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y")


def answered(query: WebQuery, engine: str, hits: Iterable[WebHit], *, dates_by_engine: bool = False) -> WebAnswer:
    """Return the results that fit the filters, as many as requested, with notes on what was left out.

    A result without a date is kept, and a note says that its age is unknown, unless the engine judged it.
    """
    found = merged(hits)
    of_sites = [hit for hit in found if _is_wanted(hit.url, query)]
    fresh = [hit for hit in of_sites if not _is_older(hit.published, query.since)]
    kept = tuple(replace(hit, engine=engine) for hit in fresh[: query.max_results])
    notes: list[str] = []
    since = date.fromisoformat(query.since) if query.since else ""
    if others := len(found) - len(of_sites):
        notes.append(own("Left out: {others} of sites that were not wanted.", others=others))
    if old := len(of_sites) - len(fresh):
        notes.append(own("Left out: {old} older than {since}.", old=old, since=since))
    undated = sum(_date_of(hit.published) is None for hit in kept)
    if query.since and undated and not dates_by_engine:
        notes.append(
            own(
                "Without a date, perhaps older than {since}: {undated} of {all}.",
                since=since,
                undated=undated,
                all=len(kept),
            )
        )
    return WebAnswer(engine, kept, tuple(notes))


def with_sites(query: WebQuery) -> str:
    """Return the query with `site:` operators, for engines without filters.

    The operators are left out where the query would be too long: the answer is checked anyway.
    """
    wanted = " OR ".join(f"site:{_bare(site)}" for site in query.include_domains)
    unwanted = " ".join(f"-site:{_bare(site)}" for site in query.exclude_domains)
    whole = " ".join(part for part in (query.words, wanted, unwanted) if part)
    is_short = len(whole) <= MAX_QUERY_CHARS and len(whole.split()) <= MAX_QUERY_WORDS
    return whole if is_short else " ".join(query.words.split()[:MAX_QUERY_WORDS])


def window(since: str, now: datetime) -> Window | None:
    """Return the smallest of the usual windows that includes the day; None when none does, or no day is given."""
    if not since:
        return None
    days = (now.astimezone(UTC).date() - date.fromisoformat(since)).days
    # A window of a day is 24 hours, which ends somewhere within the day before.
    return next((name for name, length in WINDOW_DAYS.items() if days < length), None)


def iso_date(text: str, now: datetime) -> str:
    """Return an ISO date for the forms of dates that engines use; any other text is returned as it is."""
    words = " ".join(text.split())
    if found := _date_of(words):
        return found.isoformat()
    if match := AGO.fullmatch(words.lower()):
        return (now - timedelta(**{f"{match[2]}s": int(match[1])})).date().isoformat()
    for form in WRITTEN_DATES:
        try:
            return datetime.strptime(words, form).replace(tzinfo=UTC).date().isoformat()
        except ValueError:
            continue
    try:
        return parsedate_to_datetime(words).date().isoformat()
    except ValueError:
        return words


def _date_of(text: str) -> date | None:
    match = ISO.match(text)
    try:
        return date.fromisoformat(match[0]) if match else None
    except ValueError:
        return None


def _is_older(published: str, since: str) -> bool:
    known = _date_of(published)
    return bool(since and known and known < date.fromisoformat(since))


def _is_wanted(url: str, query: WebQuery) -> bool:
    if query.include_domains and not _is_of(url, query.include_domains):
        return False
    return not _is_of(url, query.exclude_domains)


def _is_of(url: str, sites: Sequence[str]) -> bool:
    """Return whether an address is on one of the sites: the site itself, one below it, or a folder of it."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    for site in map(_bare, sites):
        name, _, folder = site.partition("/")
        if (host == name or host.endswith(f".{name}")) and parts.path.startswith(f"/{folder}"):
            return True
    return False


def _bare(site: str) -> str:
    """Return a site without scheme and slash: `https://www.example.com/blog/` becomes `example.com/blog`."""
    text = site.strip().lower()
    text = text.partition("://")[2] or text
    return "".join(text.removeprefix("*.").removeprefix("www.").rstrip("/").split())
