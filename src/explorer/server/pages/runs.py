"""The first page: ask a question, and all runs of the workspace."""

import asyncio
from dataclasses import dataclass
from itertools import islice

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from explorer.journal.listing import RunOverview
from explorer.reports.earlier import search, texts_of
from explorer.schema.errors import ConfigError, ToolError
from explorer.server.site import OfSite, WebSite
from explorer.server.views import STATUS_WORDS

MOST = 100
MAX_HITS = 20
router = APIRouter(include_in_schema=False)


@dataclass(frozen=True)
class RunLine:
    """A run in the list."""

    run: RunOverview
    words: str
    """Its status for people."""
    supported: int | None
    """Cited sentences that their sources carry; None: nothing was checked."""
    not_supported: int | None


@dataclass(frozen=True)
class RunPassage:
    """What was found in a run."""

    run_id: str
    day: str
    path: str
    line: int
    snippet: str


@router.get("/")
async def show_runs(site: OfSite, q: str = "", status: str = "", show: int = MOST) -> HTMLResponse:
    """Show the box to ask, and the runs: all, those with a status, or those that found something."""
    hits = await asyncio.to_thread(passages_of, site, q.strip()) if q.strip() else []
    lines = await asyncio.to_thread(lines_of, site, q, status, show)
    statuses = sorted({line.run.status for line in lines} | ({status} if status else set[str]()))
    return site.page(
        "runs.html", lines=lines, query=q, status=status, statuses=statuses, words=STATUS_WORDS, hits=hits, show=show
    )


def lines_of(site: WebSite, query: str, status: str, most: int, before: str = "") -> list[RunLine]:
    """Return the newest runs that fit, newest first; with `before`, those older than the run of that id."""
    words = query.strip().lower()
    folders = (folder for folder in site.runs.folders() if not before or folder.name < before)
    fitting = (
        line
        for line in map(site.overviews.of, folders)
        if (not status or line.status == status) and words in f"{line.question} {line.run_id}".lower()
    )
    return [_line(site, run) for run in islice(fitting, max(1, min(most, 10 * MOST)))]


def _line(site: WebSite, run: RunOverview) -> RunLine:
    verdicts = site.overviews.verdicts(run)
    supported = verdicts.get("supported")
    wrong = sum(count for verdict, count in verdicts.items() if verdict not in {"supported", "unchecked"})
    asks = site.runs.calls.of(run.run_id) is not None
    return RunLine(
        run,
        "asks for your approval" if asks else STATUS_WORDS.get(run.status, run.status),
        supported,
        wrong if verdicts else None,
    )


def passages_of(site: WebSite, query: str) -> list[RunPassage]:
    """Return the passages of questions, reports, findings and sources that fit a query best.

    Raises:
        ConfigError: The query has no words.
    """
    try:
        found = search(query, texts_of(site.runs.past()), MAX_HITS)
    except ToolError as error:
        raise ConfigError(error.message) from error
    return [RunPassage(hit.found.origin, hit.found.day, hit.found.path, hit.line, hit.snippet) for hit in found.hits]
