"""What is shown of a run's past: figures, its timeline, the origin of its files, its report."""

import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from urllib.parse import unquote

from explorer.cli.screens.number_format import counted
from explorer.cli.screens.output import emit, token_counts
from explorer.cli.screens.run_costs import spending_facts
from explorer.cli.screens.run_view import AgentView, RunView, session_facts
from explorer.cli.screens.sanitize import one_line, plain
from explorer.journal.run_state import RunState
from explorer.observe.costs import spending_of
from explorer.observe.provenance import FileOrigin, Write, origins
from explorer.run.finish import report_path
from explorer.run.outcome import further_links, helper_results
from explorer.schema.events import ENGINE, JournalRecord, RunFinished
from explorer.text.frontmatter import split_frontmatter
from explorer.workspace.workspace import Workspace

MAX_IDS = 20


def origins_page(found: Sequence[FileOrigin]) -> str:
    """One block a file: what it cites, and each write of it."""
    return "\n\n".join(_block(origin) for origin in found) or "No agent wrote a file."


def _block(origin: FileOrigin) -> str:
    lines = [
        f"{one_line(origin.path)}  {counted(origin.lines, 'line')}  {one_line(origin.title)}".rstrip(),
        f"  cites   {_ids(origin.cites)}",
        *([f"  read    {_ids(origin.read)}: met in files and words of others"] if origin.read else []),
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


def print_report(markdown: str) -> None:
    """Write a report to stdout: rendered for a terminal, as it is for everything else."""
    if not markdown:
        return
    if not sys.stdout.isatty():
        emit(markdown.rstrip("\n"))
        return
    from rich.console import Console  # noqa: PLC0415 - slow to import, and only terminals need it
    from rich.markdown import Markdown  # noqa: PLC0415 - the same

    page = Markdown(plain(split_frontmatter(markdown).body), hyperlinks=False)
    images = [token for block in page.parsed for token in block.children or [] if token.type == "image"]
    for token in images:
        token.content = _image_words(token.content, str(token.attrs.get("src", "")))
        token.type, token.tag, token.children = "text", "", None
    Console(highlight=False, emoji=False).print(page)


def _image_words(shows: str, path: str) -> str:
    """What stands for an image, which a terminal cannot show: what it shows, and where it is."""
    return f"[image: {', '.join(part for part in (shows, unquote(path)) if part)}]"


@dataclass(frozen=True)
class TimelineEvent:
    """One record in the order of things."""

    seq: int
    at: datetime
    words: str

    def facts(self) -> dict[str, object]:
        """For programs."""
        return {"seq": self.seq, "at": self.at.isoformat(), "words": self.words}


def named(record: JournalRecord) -> str:
    """A record without news for people, by its kind."""
    event = record.event
    return event.type.replace("_", " ") if event.agent == ENGINE else f"{event.agent}  {event.type.replace('_', ' ')}"


def timeline_page(events: Sequence[TimelineEvent]) -> str:
    """One line each: number, time, what happened."""
    width = len(str(events[-1].seq)) if events else 1
    return "\n".join(f"{event.seq:>{width}} {event.at.astimezone():%H:%M:%S} {event.words}" for event in events)


def run_facts(view: RunView, folder: Path, records: Sequence[JournalRecord]) -> dict[str, object]:
    """Everything, for programs."""
    spending, run_state = spending_of(records), RunState.of(record.event for record in records)
    seconds = {agent.id: agent.seconds for agent in spending.agents}
    path = report_path(folder)
    return {
        "run_id": folder.name,
        "folder": str(folder.resolve()),
        "question": view.question,
        "status": view.status,
        "reason": view.reason,
        "cause": view.cause.value,
        "started": view.started.isoformat() if view.started else None,
        "cost_usd": view.cost_usd,
        "estimated": view.estimated.model_dump(),
        "tokens": token_counts(view.usage),
        "steps": view.steps,
        "models": view.models,
        "session": session_facts(view),
        "agents": [_agent_facts(agent, seconds.get(agent.id, 0.0)) for agent in view.agents.values()],
        "helpers": [one.model_dump(mode="json") for one in helper_results(run_state)],
        "further_links": [one.model_dump() for one in further_links(run_state)],
        "slowest_agent": spending.slowest.id if spending.slowest else None,
        "tokens_by_role": {role.role: role.totals.usage.total_tokens for role in spending.roles},
        "spending": spending_facts(spending),
        "failed_attempts": view.failed_attempts,
        "outages": [
            {"model": one.model, "since": one.since.isoformat(), "waits_s": one.waits_s}
            for one in view.outages.values()
        ],
        "orders": [asdict(order) for order in view.orders],
        "files": [file.model_dump(mode="json") for file in view.files.values()],
        "origins": [origin.model_dump(mode="json") for origin in origins(records, Workspace(folder))],
        "sources": [source.model_dump(mode="json") for source in view.sources.values()],
        "report": str(path) if path else None,
        "records": len(records),
        "endings": [record.at.isoformat() for record in records if isinstance(record.event, RunFinished)],
    }


def _agent_facts(agent: AgentView, seconds: float) -> dict[str, object]:
    return {
        "id": agent.id,
        "role": agent.role,
        "parent": agent.parent,
        "status": agent.status,
        "reason": agent.reason,
        "task": agent.task,
        "steps": agent.steps,
        "max_steps": agent.max_steps,
        "tokens": token_counts(agent.usage),
        "cost_usd": agent.cost_usd,
        "seconds": round(seconds, 3),
    }
