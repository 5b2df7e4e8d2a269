"""The JSON twins of the pages of runs: the list, a run as it is or was, its agents."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Query, Response

from explorer.observe.command_result import CommandResult, described, exit_code
from explorer.run.fork import rebuilt_files
from explorer.run.results import seen_outcome, with_report
from explorer.run.served import Wishes
from explorer.schema.errors import NotFoundError
from explorer.schema.events import JournalRecord
from explorer.server import orders
from explorer.server.feeds import RunFeed, SeenRun
from explorer.server.fleet_status import FleetStatus
from explorer.server.json_models import (
    AgentAnswer,
    AgentNode,
    ErrorFacts,
    ListedRun,
    OrderAnswer,
    RunAnswer,
    RunPassageFound,
    RunsAnswer,
    StartOrder,
)
from explorer.server.json_routes import json_router
from explorer.server.pages.run import clock_of, problem_of
from explorer.server.pages.runs import RunLine, lines_of, passages_of
from explorer.server.site import OfSite
from explorer.server.turns import turns_of
from explorer.server.views import NO_TALLY, RunHead, head_of, head_then, tree_of
from explorer.workspace.access import REPORT
from explorer.workspace.workspace import report_text

MAX_LISTED = 200
router = json_router("runs")
AtRecord = Annotated[int | None, Query(ge=1, description="The record after which it is shown; without it, as it is.")]
"""A moment of the past, as a number of a record."""


@router.get("/runs", summary="List runs")
async def list_runs(
    site: OfSite,
    q: Annotated[str, Query(max_length=500, description="Words to look for in questions and in what was found.")] = "",
    status: Annotated[str, Query(max_length=40, description="Only runs with this status.")] = "",
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Runs on a page.")] = 50,
    before: Annotated[str, Query(max_length=200, description="Only runs older than this one, by its id.")] = "",
) -> RunsAnswer:
    """Return the runs of the workspace, newest first: all, those with a status, or those that found something."""
    lines = await asyncio.to_thread(lines_of, site, q, status, limit + 1, before)
    found = await asyncio.to_thread(passages_of, site, q.strip()) if q.strip() and not before else []
    following = None
    if len(lines) > limit:
        given = {"q": q, "status": status, "limit": limit, "before": lines[limit - 1].run.run_id}
        following = "/api/runs?" + urlencode({name: value for name, value in given.items() if value})
    return RunsAnswer(
        runs=tuple(map(_listed, lines[:limit])),
        found=tuple(
            RunPassageFound(run_id=one.run_id, day=one.day, path=one.path, line=one.line, snippet=one.snippet)
            for one in found
        ),
        next=following,
    )


def _listed(line: RunLine) -> ListedRun:
    run = line.run.model_dump(exclude={"folder"})
    return ListedRun(**run, supported=line.supported, not_supported=line.not_supported)


@router.post("/runs", summary="Start a run", status_code=201)
async def start_run(site: OfSite, order: StartOrder, response: Response) -> OrderAnswer:
    """Explore a question; the answer comes once the question is on disk, with the address of the run in `Location`."""
    wishes = Wishes(
        max_cost_usd=order.max_cost_usd,
        max_time_s=order.max_time_s,
        waits_with_plan=order.plan,
        model=order.model,
        language=order.language,
        files=orders.named_files((file.name, file.content) for file in order.files),
    )
    folder = await orders.start_run(site, order.question, wishes)
    response.headers["location"] = f"/api/runs/{folder.name}"
    return OrderAnswer(run_id=folder.name, status=(await site.feeds.of(folder)).status)


@router.get("/fleet", summary="Show the fleet")
async def show_fleet(site: OfSite) -> FleetStatus:
    """Return the fleet whose database the settings name: its workers, its queue, and how many runs ended lately."""
    return await site.fleet_status()


@router.get("/runs/{run_id}", summary="Show a run")
async def show_run(run_id: str, site: OfSite, at: AtRecord = None) -> RunAnswer:
    """Return a run as it is, or as it was after a record: its result, its tree of agents, its plan and its files.

    The beginning of an id is enough, as long as one run alone has it.
    """
    feed = await site.feed(run_id)
    last = feed.run.view.seq
    if at is None or at >= last:
        text = await asyncio.to_thread(report_text, feed.folder)
        answer = _shown(feed, feed.run, seen_outcome(feed.run.view, feed.folder), head_of(feed))
    else:
        run, text = await asyncio.to_thread(_then, (await site.feeds.records(feed))[:at])
        answer = _shown(feed, run, seen_outcome(run.view, None), head_then(run, run.view.status, feed.origin))
    # The report may have come later than the record that was seen last.
    more = {"result": with_report(answer.result, text), "last": last, "is_own": site.runs.owns(feed.folder.name)}
    more |= {"problem": problem_of(site, feed) if answer.at == last else ""}
    return answer.model_copy(update=more)


def _then(records: Sequence[JournalRecord]) -> tuple[SeenRun, str]:
    """Return a run as it was after these records, and its report as far as it was written."""
    return SeenRun.of(records), rebuilt_files(records).get(REPORT, "")


def _shown(feed: RunFeed, run: SeenRun, result: CommandResult, head: RunHead) -> RunAnswer:
    damage = feed.damage if run is feed.run else None
    code = exit_code(head.status, run.view.cause)
    return RunAnswer(
        result=replace(result, status=head.status, exit_code=code, folder=str(feed.folder)),
        head=head,
        agents=tuple(agents_of(feed, run)),
        plan=run.view.plan.summary(),
        files=tuple(run.view.files.values()),
        at=run.view.seq,
        last=run.view.seq,
        is_own=False,
        waiting_call=feed.asked if run is feed.run else None,
        problem="",
        damage=ErrorFacts(**described(damage)) if damage is not None else None,
    )


def agents_of(feed: RunFeed, run: SeenRun) -> Iterator[AgentNode]:
    """Yield the agents of a run, each before its helpers."""
    now = clock_of(feed, run)
    for row in tree_of(run, now):
        agent, tally = run.view.agents[row.id], run.tallies.get(row.id, NO_TALLY)
        yield AgentNode(
            id=agent.id,
            role=agent.role,
            parent=agent.parent,
            level=row.level,
            task=agent.task,
            status=agent.status,
            reason=agent.reason,
            doing=row.doing,
            is_queued=agent.is_queued and row.is_working,
            turns=agent.steps,
            max_turns=agent.max_steps,
            calls=tally.calls,
            files=len(tally.files),
            sources=len(tally.sources),
            tokens=agent.usage.total_tokens,
            cost_usd=agent.cost_usd,
            seconds=agent.seconds(now) if now is not None else agent.earlier_s,
        )


@router.get("/runs/{run_id}/agents/{agent:path}", summary="Show an agent")
async def show_agent(run_id: str, agent: str, site: OfSite, at: AtRecord = None) -> AgentAnswer:
    """Return what an agent was given, said and did: its turns, and each call with its arguments and its result."""
    feed = await site.feed(run_id)
    records = (await site.feeds.records(feed))[:at]
    run = await asyncio.to_thread(SeenRun.of, records)
    node = next((one for one in agents_of(feed, run) if one.id == agent), None)
    if node is None:
        raise NotFoundError(f"run {feed.folder.name} has no agent {agent}", hint="GET /api/runs/{run_id} lists them")
    entries = await asyncio.to_thread(turns_of, records, agent)
    return AgentAnswer(run_id=feed.folder.name, agent=node, entries=tuple(entries))
