"""Pages of many runs: the first page, which is kept up to date while it is open, and the fleet."""

import asyncio
import os
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from explorer.journal.listing import RunOverview
from explorer.reports.earlier import search
from explorer.schema.errors import ConfigError, ToolError
from explorer.server.live import KEEP_ALIVE_S, LOOK_EVERY_S, event, event_stream, looked, replacing
from explorer.server.site import OfSite, WebSite
from explorer.server.views import STATUS_WORDS

MOST = 50
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
        "runs.html",
        **_values(site, lines, q, status, show),
        statuses=statuses,
        words=STATUS_WORDS,
        hits=hits,
        moment=_digest(_list(site, lines, q, status, show)),
    )


@router.get("/live")
async def follow_runs(  # noqa: PLR0913 - the parameters of an address
    site: OfSite, q: str = "", status: str = "", show: int = MOST, after: str = "", *, look: bool = False
) -> Response:
    """Send the list of runs whenever it has changed; the id of an event is a digest of what it shows.

    A page that only looks is answered at once: 204 when nothing has changed, else 200.
    """

    async def shown() -> str:
        lines: list[RunLine] = await site.lists.of((q, status, show), partial(lines_of, site, q, status, show))
        return _list(site, lines, q, status, show)

    if look:
        return looked(is_new=_digest(await shown()) != after)

    async def events() -> AsyncIterator[str]:
        seen, silent_s = after, 0.0
        while not site.feeds.is_closing:
            html = await shown()
            silent_s += LOOK_EVERY_S
            if (now := _digest(html)) != seen:
                seen, silent_s = now, 0.0
                yield event(now, replacing("part-runs", html))
            elif silent_s >= KEEP_ALIVE_S:
                silent_s = 0.0
                yield ": still here\n\n"
            await site.feeds.closes_within(LOOK_EVERY_S)

    return event_stream(events())


def _list(site: WebSite, lines: Sequence[RunLine], query: str, status: str, show: int) -> str:
    return site.part("parts/runs.html", _values(site, lines, query, status, show))


def _values(site: WebSite, lines: Sequence[RunLine], query: str, status: str, show: int) -> dict[str, Any]:
    workspace = site.runs.workspace.absolute()
    return {
        "lines": lines,
        "query": query,
        "status": status,
        "show": show,
        "at_work": site.at_work,
        "workspace": str(workspace),
        "problem": problem_of(workspace),
    }


def problem_of(workspace: Path) -> str:
    """Return why a folder cannot have runs; empty where it can, or is not there yet."""
    if workspace.exists() and not workspace.is_dir():
        return f"{workspace} is not a folder."
    if workspace.exists() and not os.access(workspace, os.R_OK | os.X_OK):
        return f"{workspace} cannot be read by you."
    return ""


def _digest(html: str) -> str:
    return f"{zlib.crc32(html.encode('utf-8', 'replace')):08x}"


def lines_of(site: WebSite, query: str, status: str, most: int, before: str = "") -> list[RunLine]:
    """Return the newest runs that fit, newest first; with `before`, those older than the run of that id."""
    words = query.strip().lower()
    folders = (folder for folder in site.overviews.folders(site.runs) if not before or folder.name < before)
    fitting = (
        line
        for line in map(site.overviews.of, folders)
        if (not status or line.status == status) and words in f"{line.question} {line.run_id}".lower()
    )
    return [_line(site, run) for run in islice(fitting, max(1, min(most, 20 * MOST)))]


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
        found = search(query, site.texts.of(site.overviews.folders(site.runs)), MAX_HITS)
    except ToolError as error:
        raise ConfigError(error.message) from error
    return [RunPassage(hit.found.origin, hit.found.day, hit.found.path, hit.line, hit.snippet) for hit in found.hits]


@router.get("/fleet")
async def show_fleet(site: OfSite) -> HTMLResponse:
    """Show the fleet whose database the settings name: its workers with their leases, its queue, and what ended."""
    return site.page("fleet.html", fleet=await site.fleet_status())
