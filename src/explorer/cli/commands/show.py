"""The command `show`: one run, its figures, its timeline, and the origin of its files."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from explorer.cli.runs_at_hand import RunName, in_queue, run_at_hand
from explorer.cli.screens.live import tree
from explorer.cli.screens.output import emit_json, emit_page, terminal_width
from explorer.cli.screens.plan_page import plan_page, progress_page
from explorer.cli.screens.run_costs import costs_page, head, head_rows, role_table
from explorer.cli.screens.screen import line_of
from explorer.cli.screens.session_lines import session_page
from explorer.cli.settings.configuration import configured, looks_at_runs
from explorer.cli.settings.options import COMMON, CommonOptions
from explorer.journal.listing import LATEST, UNFINISHED, WAITING, is_running, read_records
from explorer.observe.costs import Spending, spending_of
from explorer.observe.formatting import (
    counted,
    duration,
    money,
    one_line,
    plain,
    result_words,
    size,
    spent,
    tokens,
)
from explorer.observe.provenance import FileOrigin, Write, origins
from explorer.observe.run_origin import run_origin
from explorer.observe.run_view import RUNNING, AgentView, RunView, outage_words
from explorer.run.last_report import report_of_unfinished
from explorer.run.results import run_facts
from explorer.schema.event import ENGINE
from explorer.schema.events import JournalRecord
from explorer.schema.settings import Settings
from explorer.workspace.workspace import Workspace, report_path

TIMELINE_LINES = 20
PAGE_COLUMNS = 80
MAX_IDS = 20


def origins_page(found: Sequence[FileOrigin]) -> str:
    """Return a block for each file: what it cites, and each write of it."""
    return "\n\n".join(_block(origin) for origin in found) or "No agent wrote a file."


def _block(origin: FileOrigin) -> str:
    lines = [
        f"{one_line(origin.path)}  {counted(origin.lines, 'line')}  {one_line(origin.title)}".rstrip(),
        f"  cites   {_ids(origin.cites)}",
        *([f"  read    {_ids(origin.read)}: found in files and texts of others"] if origin.read else []),
        *([f"  unseen  {_ids(origin.unseen)}: shown to none of its writers before"] if origin.unseen else []),
        *(f"  {_write(write)}" for write in origin.writes),
    ]
    return "\n".join(lines)


def _write(write: Write) -> str:
    when = write.at.astimezone().strftime("%H:%M:%S")
    return f"{write.tool}  {write.agent} ({write.role})  record {write.seq}, {when}  {write.bytes} bytes  {write.call}"


def _ids(names: Sequence[str]) -> str:
    more = f" and {len(names) - MAX_IDS} more" if len(names) > MAX_IDS else ""
    return (", ".join(names[:MAX_IDS]) or "nothing") + more


@dataclass(frozen=True)
class TimelineEvent:
    """One record in the order of things."""

    seq: int
    at: datetime
    words: str

    def facts(self) -> dict[str, object]:
        """Return the event as JSON for programs."""
        return {"seq": self.seq, "at": self.at.isoformat(), "words": self.words}


def named(record: JournalRecord) -> str:
    """Name a record that has no line of its own."""
    event = record.event
    return event.type.replace("_", " ") if event.agent == ENGINE else f"{event.agent}  {event.type.replace('_', ' ')}"


def timeline_page(events: Sequence[TimelineEvent]) -> str:
    """Return a line for each event: number, time, what happened."""
    width = len(str(events[-1].seq)) if events else 1
    return "\n".join(f"{event.seq:>{width}} {event.at.astimezone():%H:%M:%S} {event.words}" for event in events)


def show(
    run: RunName = LATEST,
    /,
    *,
    timeline: Annotated[
        bool, Parameter(name="--timeline", help="Every record by its number, which `fork --at` takes.")
    ] = False,
    files: Annotated[
        bool, Parameter(name="--files", help="Where each file comes from: who wrote it, when, citing what.")
    ] = False,
    costs: Annotated[
        bool, Parameter(name="--costs", help="Tokens, money and time by role and agent; the chain of waiting.")
    ] = False,
    options: CommonOptions = COMMON,
) -> int:
    """Show one run: its question, agents, files, sources, cost, and how it went.

    Example: `explorer show latest --timeline`
    """
    settings = configured(options, looks_at_runs).settings
    with run_at_hand(settings, run) as folder:
        return _show(folder, settings, ShownPart(timeline, files, costs), options)


@dataclass(frozen=True)
class ShownPart:
    """The part of a run that is shown; all that is short if none is named."""

    timeline: bool
    files: bool
    costs: bool


def _show(folder: Path, settings: Settings, part: ShownPart, options: CommonOptions) -> int:
    records = read_records(folder)
    report_of_unfinished(folder)
    origin = run_origin(folder, settings.state_dir)
    view = RunView()
    events: list[TimelineEvent] = []
    for record in records:
        line = line_of(record, view)
        if line or part.timeline:
            events.append(TimelineEvent(record.seq, record.at, line or named(record)))
        view.apply(record)
    if view.status == RUNNING and not is_running(folder):
        view.status = WAITING if view.plan.is_waiting else UNFINISHED
    if options.output_format != "text":
        timeline_facts = [event.facts() for event in events]
        emit_json(run_facts(view, folder, records) | {"carried": bool(origin), "timeline": timeline_facts})
    elif part.files:
        emit_page(origins_page(origins(records, Workspace(folder))))
    elif part.costs:
        emit_page(costs_page(spending_of(records), _columns()))
    else:
        spending = spending_of(records)
        # The journal says how a run has ended; the queue, which may take long to answer, why one goes no further.
        queued = _queued(settings, folder) if view.status in {UNFINISHED, WAITING} else []
        facts = _head(view, folder, spending, queued)
        page = "\n\n".join(filter(None, [origin, _page(view, facts, events, spending)]))
        emit_page(timeline_page(events) if part.timeline else page)
    return 0


def _queued(settings: Settings, folder: Path) -> list[tuple[str, str]]:
    """Return rows with what the fleet's queue says of a run, and the next command; none where neither is needed."""
    found = in_queue(settings, folder)
    if found is None or not found.next_step:
        return []
    return [("queue", found.words), ("", f"→ {found.next_step}")]


def _columns() -> int:
    """Return how wide a page may be: as the terminal, elsewhere as most terminals are."""
    return terminal_width() or PAGE_COLUMNS


def _page(view: RunView, facts: str, events: list[TimelineEvent], spending: Spending) -> str:
    cut = len(events) - TIMELINE_LINES
    lines = timeline_page(events[-TIMELINE_LINES:]).splitlines()
    timeline = [f"... {counted(cut, 'earlier line')}: --timeline shows all", *lines] if cut > 0 else lines
    blocks = [
        plain(view.question),
        facts,
        *(["Latest session\n" + session_page(view.session)] if view.session is not None else []),
        *_plan(view),
        "Roles\n" + role_table(spending, _columns()),
        "Agents\n" + "\n".join(f"  {'  ' * depth}{_agent(agent)}" for agent, depth, _ in tree(view)),
        "Files\n" + ("\n".join(f"  {_file(view, path)}" for path in view.files) or "  none"),
        "Timeline\n" + "\n".join(f"  {line}" for line in timeline),
    ]
    return "\n\n".join(blocks)


def _head(view: RunView, folder: Path, spending: Spending, queued: Sequence[tuple[str, str]]) -> str:
    status = f"{view.status} ({one_line(view.reason)})" if view.reason else view.status
    money_spent = spent(view.cost_usd, view.estimated)
    rows = [
        ("run", folder.name),
        ("status", status),
        *queued,
        ("started", view.started.astimezone().strftime("%Y-%m-%d %H:%M") if view.started else "?"),
        ("spent", f"{money_spent}, {tokens(view.usage.total_tokens)} tokens, {duration(spending.seconds)}"),
        ("models", ", ".join(sorted(set(view.models.values()))) or "?"),
        *head_rows(spending),
        ("failed", counted(view.failed_attempts, "attempt") + " at a turn"),
        *[("outage", outage_words(outage)) for outage in view.outages.values()],
        ("orders", ", ".join(f"{order.kind} at record {order.seq}" for order in view.orders) or "none"),
        ("sources", str(len(view.sources))),
        ("report", str(report_path(folder) or "none yet")),
    ]
    return head(rows, _columns())


def _plan(view: RunView) -> list[str]:
    plan = view.plan.summary()
    if plan is None:
        return []
    return ["Plan\n" + (plan_page(plan) if view.plan.is_waiting else progress_page(plan))]


def _agent(agent: AgentView) -> str:
    figures = f"{counted(agent.steps, 'step')}, {tokens(agent.usage.total_tokens)} tokens, {money(agent.cost_usd)}"
    reason = f" ({one_line(agent.reason)})" if agent.reason else ""
    result = f"; {result_words(agent.result)}" if agent.result else ""
    return f"{agent.id}  {agent.status}{reason}  {figures}{result}"


def _file(view: RunView, path: str) -> str:
    file = view.files[path]
    extent = counted(file.lines, "line") if file.lines else size(file.bytes)
    return f"{one_line(path)}  {extent}  {one_line(file.title)}".rstrip()
