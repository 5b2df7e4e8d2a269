"""The timeline as a drawing: who worked when, on what, the critical path, and a slider through the run's records."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse

from explorer.observe.formatting import duration, one_line, short_time
from explorer.observe.run_view import doing
from explorer.observe.timeline import PathSegment, Timeline, WorkKind, critical_path, timeline_of
from explorer.schema.events import JournalRecord, ToolStarted, TurnTaken
from explorer.schema.messages import ToolCall
from explorer.server.pages.run import values_then
from explorer.server.site import OfSite

router = APIRouter(include_in_schema=False)


@router.get("/runs/{run_id}/timeline")
async def show_timeline(run_id: str, site: OfSite, at: Annotated[int | None, Query(ge=1)] = None) -> HTMLResponse:
    """Show the timeline, and below it the run as it was at a record; the latest one without a number."""
    feed = await site.feed(run_id)
    records = await site.feeds.records(feed)
    at = max(1, min(at or len(records), len(records)))
    drawing = await asyncio.to_thread(gantt_of, records, at)
    values = await values_then(feed, records[:at])
    moment = records[at - 1].at if records else None
    return site.page(
        "timeline.html",
        **values,
        at=at,
        last=len(records),
        drawing=drawing,
        moment=moment,
        bar_height=BAR_HEIGHT,
        label_width=LABEL_WIDTH,
    )


WIDTH = 1_000
LABEL_WIDTH = 150
ROW_HEIGHT = 22
BAR_HEIGHT = 14
TOP = 24
MAX_ROWS = 600
MAX_BARS = 3_000
LABEL_CHARS = 20
TICKS = 6


@dataclass(frozen=True)
class Bar:
    """A stretch of work."""

    x: float
    y: float
    width: float
    kind: str
    """`model`, `tool`, `helper` or `task`."""
    title: str
    seq: int
    """The record with which it ended."""


@dataclass(frozen=True)
class Lane:
    """The row of an agent."""

    agent: str
    label: str
    y: float


@dataclass(frozen=True)
class Tick:
    """A mark of the time axis."""

    x: float
    label: str


@dataclass(frozen=True)
class Gantt:
    """A drawing, in units of its view box."""

    width: int
    height: float
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    path: tuple[Bar, ...]
    """The critical path."""
    now: float
    """Where the shown moment is."""
    seconds: float
    left_out: int
    """Agents and bars that are not drawn, since nobody could tell them apart."""
    segments: tuple[PathSegment, ...]


def gantt_of(records: Sequence[JournalRecord], at: int | None = None) -> Gantt:
    """Return the drawing of a run, with a mark at a record."""
    work = timeline_of(records)
    segments = critical_path(work)
    scale = (WIDTH - LABEL_WIDTH) / max(work.seconds, 0.001)
    names = list(work.tasks)
    lanes = {name: TOP + ROW_HEIGHT * place for place, name in enumerate(names[:MAX_ROWS])}
    bars = [bar for bar in _bars(work, records, scale, lanes) if bar.seq <= work.over]
    moment = work.clock.at(records[min(at, len(records)) - 1].at) if records and at else work.seconds
    return Gantt(
        width=WIDTH,
        height=TOP + ROW_HEIGHT * max(1, len(lanes)) + 6,
        lanes=tuple(Lane(name, one_line(name, LABEL_CHARS), y) for name, y in lanes.items()),
        bars=tuple(longest_bars(bars)),
        ticks=tuple(_ticks(work.seconds, scale)),
        path=tuple(_path(segments, scale, lanes)),
        now=LABEL_WIDTH + moment * scale,
        seconds=work.seconds,
        left_out=len(names) - len(lanes) + max(0, len(bars) - MAX_BARS),
        segments=segments,
    )


def _bars(work: Timeline, records: Sequence[JournalRecord], scale: float, lanes: Mapping[str, float]) -> Iterator[Bar]:
    words = _words(records)
    for agent, y in lanes.items():
        for task in work.tasks[agent]:
            title = f"{one_line(agent)}: {short_time(task.end - task.start)}"
            yield _bar(task.start, task.end, y, "task", title, scale, min(task.last, work.over - 1))
        for one in sorted(work.intervals.get(agent, ()), key=lambda one: one.start):
            what = words.get(one.call) or words.get(str(one.seq)) or one.kind.value
            title = f"{one_line(agent)}: {what}, {short_time(one.end - one.start)}"
            height = y + (0 if one.kind is not WorkKind.HELPER else BAR_HEIGHT - 4)
            yield _bar(one.start, one.end, height, one.kind.value, title, scale, min(one.seq, work.over - 1))


def _bar(start: float, end: float, y: float, kind: str, title: str, scale: float, seq: int) -> Bar:  # noqa: PLR0913, PLR0917 - a place and what is shown there
    return Bar(round(LABEL_WIDTH + start * scale, 2), y, round(max(1.0, (end - start) * scale), 2), kind, title, seq)


def longest_bars(bars: Sequence[Bar]) -> Sequence[Bar]:
    """Return the bars that are drawn, in their order; of too many, the shortest are left out."""
    if len(bars) <= MAX_BARS:
        return bars
    places = sorted(range(len(bars)), key=lambda place: bars[place].width, reverse=True)[:MAX_BARS]
    return [bars[place] for place in sorted(places)]


def _words(records: Sequence[JournalRecord]) -> dict[str, str]:
    """Return what each call did, by its key, and which model each turn asked, by its record."""
    found: dict[str, str] = {}
    for record in records:
        event = record.event
        if isinstance(event, ToolStarted):
            found[event.call] = doing(ToolCall(id="", name=event.name), event)
        elif isinstance(event, TurnTaken):
            found[str(record.seq)] = one_line(event.turn.model, 60)
    return found


def _path(segments: Sequence[PathSegment], scale: float, lanes: Mapping[str, float]) -> Iterator[Bar]:
    for one in segments:
        y = lanes.get(one.agent)
        if y is not None:
            title = f"critical path: {one_line(one.agent)}, {short_time(one.seconds)}"
            yield _bar(one.start_s, one.start_s + one.seconds, y + BAR_HEIGHT + 3, "critical", title, scale, 0)


def _ticks(seconds: float, scale: float) -> Iterator[Tick]:
    for place in range(TICKS + 1):
        moment = seconds * place / TICKS
        yield Tick(round(LABEL_WIDTH + moment * scale, 2), short_time(moment) if seconds < 60 else duration(moment))  # noqa: PLR2004
