"""A run: its head, plan, tree of agents, files and report, live or as it was at a record; and the turns of an agent."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from markupsafe import Markup

from explorer.journal.listing import DAMAGED, UNFINISHED, is_run
from explorer.observe.formatting import one_line
from explorer.run.fork import rebuilt_files
from explorer.run.report_document import document_of
from explorer.schema.errors import NotFoundError
from explorer.schema.events import JournalRecord
from explorer.server.feeds import AGENT, CALL, FILES, HEAD, PLAN, REPORT_PART, TREE, Moment, RunFeed, SeenRun
from explorer.server.live import KEEP_ALIVE_S, event, event_stream, looked, replacing
from explorer.server.markdown import markdown_html, report_html
from explorer.server.site import OfSite, WebSite
from explorer.server.turns import turns_of
from explorer.server.views import ENDED, RunHead, asked_of, head_of, head_then, idle_row, level_of, row_of, tree_of
from explorer.text.rendering import without_marks
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import report_text

AT_MOST_EVERY_S = 0.12
"""The shortest time between two events of a page."""
MAX_FILES = 400
NO_REPORT = (
    "The run ended without one. What it found is in its files and in the turns of its agents; ask further, and it"
    " continues."
)
NO_REPORT_THEN = "It is not written yet."
router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}")
async def show_run(run_id: str, site: OfSite, at: Annotated[int | None, Query(ge=1)] = None) -> Response:
    """Show a run as it is, or as it was after a record."""
    feed = await site.feed(run_id)
    if feed.folder.name != run_id:
        return RedirectResponse(f"/runs/{feed.folder.name}", 303)
    if at is None or at >= feed.run.view.seq:
        values = await feed.steady(partial(values_now, site, feed))
        return site.page("run.html", **values, moment=feed.moment, at=None, last=feed.run.view.seq)
    values = await values_then(feed, (await site.feeds.records(feed))[:at])
    return site.page("run.html", **values, moment=Moment(at), at=at, last=feed.run.view.seq)


def values_now(site: WebSite, feed: RunFeed) -> dict[str, Any]:
    """Return all that the page of a run shows now."""
    return (
        _values(feed, feed.run)
        | shown_report(feed)
        | {
            "head": shown_head(site, feed),
            "is_own": site.runs.owns(feed.folder.name),
            "damage": feed.damage,
            "problem": problem_of(site, feed),
            "asked": asked_of(feed.asked),
        }
    )


async def values_then(feed: RunFeed, records: Sequence[JournalRecord]) -> dict[str, Any]:
    """Return all that the page of a run showed after these records."""

    def shown() -> dict[str, Any]:
        # The state after the latest record is there already.
        is_latest = len(records) == feed.run.view.seq
        return _values_then(feed, feed.run if is_latest else SeenRun.of(records), records)

    return await feed.steady(shown)


def _values_then(feed: RunFeed, run: SeenRun, records: Sequence[JournalRecord]) -> dict[str, Any]:
    text = rebuilt_files(records).get(REPORT, "")
    head = head_then(run, feed.status if run is feed.run else run.view.status, feed.origin)
    return _values(feed, run) | {
        "head": head,
        "report": markdown_html(text) if text else Markup(),
        "language": "",
        "no_report": NO_REPORT_THEN,
        "is_own": False,
        "damage": None,
        "problem": "",
        "asked": None,
    }


def _values(feed: RunFeed, run: SeenRun) -> dict[str, Any]:
    plan = run.view.plan.summary()
    files = list(run.view.files.values())
    return {
        "run_id": feed.folder.name,
        "rows": [idle_row(row, feed.status) if run is feed.run else row for row in tree_of(run, clock_of(feed, run))],
        "plan": plan.model_dump(mode="json") if plan is not None else None,
        "files": files[:-MAX_FILES:-1],
        "files_left_out": max(0, len(files) - MAX_FILES),
    }


def shown_head(site: WebSite, feed: RunFeed) -> RunHead:
    """Return the head of a run's page as it is now, with what the fleet's queue says where no process works on it."""
    head = head_of(feed)
    queued = one_line(site.queued(feed.folder.name)) if feed.status == UNFINISHED else ""
    return replace(head, advice=f"The fleet's queue has it as {queued}") if queued else head


def problem_of(site: WebSite, feed: RunFeed) -> str:
    """Return the error that ended the latest session of a run in this server; empty when none did."""
    return one_line(without_marks(site.runs.error_of(feed.folder.name)))


def clock_of(feed: RunFeed, run: SeenRun) -> datetime | None:
    """Return the moment up to which agents of a run have been at work."""
    return datetime.now(UTC) if feed.holder is not None and run is feed.run else run.view.last


def shown_report(feed: RunFeed) -> dict[str, Any]:
    """Return the report of a run as far as it is written, its language, and why there is none."""
    text = report_text(feed.folder)
    if not text.strip():
        return {"report": Markup(), "language": "", "no_report": why_no_report(feed)}
    document = document_of(text, feed.folder)
    return {"report": report_html(document, feed.folder.name), "language": document.language, "no_report": ""}


def why_no_report(feed: RunFeed) -> str:
    """Return why a run has no report now, and what to do."""
    if feed.status == DAMAGED:
        return "There is none up to the damage."
    if feed.status not in ENDED:
        return NO_REPORT_THEN
    if REPORT in feed.run.view.files:
        return f"{REPORT} was removed from the run's folder. A fork of the run has it as the agents wrote it."
    return NO_REPORT


@router.get("/runs/{run_id}/live")
async def follow_run(
    run_id: str, site: OfSite, after: str = "", last_event_id: Annotated[str, Header()] = "", *, look: bool = False
) -> Response:
    """Send what changes on the page of a run, each event with the number of the record that it shows.

    A page that only looks is answered at once: 204 when nothing has changed, else 200.
    """
    folder = await site.shown_folder(run_id)
    seen = Moment.of(last_event_id or after)
    if look:
        return looked(is_new=(await site.feeds.of(folder)).moment != seen)

    async def events() -> AsyncIterator[str]:
        nonlocal seen
        async with site.feeds.watched(folder) as feed:
            while not site.feeds.is_closing:
                if not await feed.after(seen, KEEP_ALIVE_S):
                    yield ": still here\n\n"
                    continue
                if not await asyncio.to_thread(is_run, folder):
                    return  # The page asks again, and is answered that the run is not there.
                seen, html = await feed.steady(partial(_changes, site, feed, seen))
                yield event(seen, html)
                await asyncio.sleep(AT_MOST_EVERY_S)

    return event_stream(events())


def _changes(site: WebSite, feed: RunFeed, seen: Moment) -> tuple[Moment, str]:
    """Return the moment that is shown, and the parts of the page that changed, each with the element it replaces.

    Both at once: a later moment than that of the parts would miss something, an earlier one would send it again.
    """
    # A plan can be decided, and no agent works, once the process has let go of the run, which no record says.
    idle = [PLAN, TREE, REPORT_PART] if seen.status != feed.moment.status else []
    parts = list(dict.fromkeys([HEAD, CALL, *idle, *feed.run.since(seen.seq)]))
    return feed.moment, "".join(_partial(site, feed, part) for part in parts)


def _partial(site: WebSite, feed: RunFeed, part: str) -> str:
    moment, known = feed.moment, feed.parts.get(part)
    if known is None or known[0] != moment:
        known = feed.parts[part] = moment, _written(site, feed, part)
    return known[1]


def _written(site: WebSite, feed: RunFeed, part: str) -> str:
    if part.startswith(AGENT):
        agent = feed.run.view.agents.get(part.removeprefix(AGENT))
        if agent is None:
            return ""
        row = idle_row(row_of(feed.run, agent, datetime.now(UTC), level_of(feed.run, agent)), feed.status)
        return replacing(row.key, site.part("parts/agent.html", {"row": row, "run_id": feed.folder.name, "at": None}))
    make = {HEAD: _head, CALL: _call, PLAN: _plan, TREE: _tree, FILES: _files, REPORT_PART: _report}[part]
    return replacing(f"part-{part}", make(site, feed))


def _head(site: WebSite, feed: RunFeed) -> str:
    values = {"head": shown_head(site, feed), "run_id": feed.folder.name, "is_own": site.runs.owns(feed.folder.name)}
    values |= {"at_work": site.at_work, "problem": problem_of(site, feed)}
    return site.part("parts/head.html", values | {"at": None, "damage": feed.damage})


def _call(site: WebSite, feed: RunFeed) -> str:
    return site.part("parts/call.html", {"asked": asked_of(feed.asked), "run_id": feed.folder.name})


def _plan(site: WebSite, feed: RunFeed) -> str:
    return site.part("parts/plan.html", _values(feed, feed.run) | {"status": feed.status})


def _tree(site: WebSite, feed: RunFeed) -> str:
    return site.part("parts/tree.html", _values(feed, feed.run) | {"at": None})


def _files(site: WebSite, feed: RunFeed) -> str:
    return site.part("parts/files.html", _values(feed, feed.run))


def _report(site: WebSite, feed: RunFeed) -> str:
    values = shown_report(feed) | {"is_ended": feed.status in ENDED, "run_id": feed.folder.name}
    return site.part("parts/report.html", values)


@router.get("/runs/{run_id}/agents/{agent:path}")
async def show_agent(
    run_id: str, agent: str, site: OfSite, at: Annotated[int | None, Query(ge=1)] = None, *, part: bool = False
) -> HTMLResponse:
    """Show the turns and calls of an agent, as a page or as a part of one."""
    feed = await site.feed(run_id)
    if agent not in feed.run.view.agents:
        raise NotFoundError(f"run {run_id} has no agent {agent}", hint="go back to the run")
    records = (await site.feeds.records(feed))[:at]
    entries = await asyncio.to_thread(turns_of, records, agent)
    template = "parts/turns.html" if part else "agent.html"
    return site.page(template, run_id=run_id, agent=agent, entries=entries, at=at, head=head_of(feed))
