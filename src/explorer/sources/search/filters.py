"""Sites and dates: what an engine cannot filter by itself is asked of it in words, and checked in its answer."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Literal
from urllib.parse import urlsplit

from explorer.sources.search.port import WebAnswer, WebHit, WebQuery, merged

Window = Literal["day", "week", "month", "year"]
WINDOW_DAYS: dict[Window, int] = {"day": 1, "week": 7, "month": 30, "year": 365}
MAX_QUERY_CHARS = 400
MAX_QUERY_WORDS = 50
AGO = re.compile(r"(\d{1,3}) (minute|hour|day)s? ago")
ISO = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
WRITTEN_DATES = ("%B %d, %Y", "%b %d, %Y", "%d %B %Y", "%d %b %Y")


def answered(query: WebQuery, engine: str, hits: Iterable[WebHit], *, dates_by_engine: bool = False) -> WebAnswer:
    """The results that fit the filters, as many as were asked for, and what was left out.

    A result without a date is kept, and said to be of unknown age unless the engine itself has judged it.
    """
    found = merged(hits)
    of_sites = [hit for hit in found if _is_wanted(hit.url, query)]
    fresh = [hit for hit in of_sites if not _is_older(hit.published, query.since)]
    kept = tuple(fresh[: query.max_results])
    notes: list[str] = []
    if others := len(found) - len(of_sites):
        notes.append(f"Left out: {others} of sites that were not wanted.")
    if old := len(of_sites) - len(fresh):
        notes.append(f"Left out: {old} older than {query.since}.")
    undated = sum(_date_of(hit.published) is None for hit in kept)
    if query.since and undated and not dates_by_engine:
        notes.append(f"Without a date, perhaps older than {query.since}: {undated} of {len(kept)}.")
    return WebAnswer(engine, kept, tuple(notes))


def with_sites(query: WebQuery) -> str:
    """The query's words with `site:` operators, for engines that know no filters.

    Without them where they would make it too long to be accepted: the answer is checked anyway.
    """
    wanted = " OR ".join(f"site:{_bare(site)}" for site in query.include_domains)
    unwanted = " ".join(f"-site:{_bare(site)}" for site in query.exclude_domains)
    whole = " ".join(part for part in (query.words, wanted, unwanted) if part)
    is_short = len(whole) <= MAX_QUERY_CHARS and len(whole.split()) <= MAX_QUERY_WORDS
    return whole if is_short else " ".join(query.words.split()[:MAX_QUERY_WORDS])


def window(since: str, now: datetime) -> Window | None:
    """The smallest of the usual windows that reaches back to the day; None when none does, or none is asked for."""
    if not since:
        return None
    days = (now.astimezone(UTC).date() - date.fromisoformat(since)).days
    # A window of a day is 24 hours, which ends somewhere within the day before.
    return next((name for name, length in WINDOW_DAYS.items() if days < length), None)


def iso_date(text: str, now: datetime) -> str:
    """An ISO date of the forms that engines give dates in; any other form stays as it is."""
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
    """Whether an address lies on one of the sites: the site itself, one below it, or a folder of it."""
    parts = urlsplit(url)
    host = (parts.hostname or "").removeprefix("www.")
    for site in map(_bare, sites):
        name, _, folder = site.partition("/")
        if (host == name or host.endswith(f".{name}")) and parts.path.startswith(f"/{folder}"):
            return True
    return False


def _bare(site: str) -> str:
    """`https://www.example.com/blog/` is `example.com/blog`: the forms in which models name sites."""
    text = site.strip().lower()
    text = text.partition("://")[2] or text
    return "".join(text.removeprefix("*.").removeprefix("www.").rstrip("/").split())
