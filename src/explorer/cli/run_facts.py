"""What there is to say about a run's past: figures by agent and role, its timeline, all of it for programs."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from explorer.cli.figures import duration
from explorer.cli.output import token_counts
from explorer.cli.report_page import REPORT
from explorer.cli.run_view import AgentView, RunView
from explorer.events import ENGINE, Record, RunFinished
from explorer.provenance import origins
from explorer.workspace import Workspace


@dataclass(frozen=True)
class TimelineEvent:
    """One record in the order of things."""

    seq: int
    at: datetime
    words: str

    def facts(self) -> dict[str, object]:
        """For programs."""
        return {"seq": self.seq, "at": self.at.isoformat(), "words": self.words}


def named(record: Record) -> str:
    """A record without news for people, by its kind."""
    event = record.event
    return event.type.replace("_", " ") if event.agent == ENGINE else f"{event.agent}  {event.type.replace('_', ' ')}"


def timeline_page(events: Sequence[TimelineEvent]) -> str:
    """One line each: number, time, what happened."""
    width = len(str(events[-1].seq)) if events else 1
    return "\n".join(f"{event.seq:>{width}} {event.at.astimezone():%H:%M:%S} {event.words}" for event in events)


def tokens_by_role(view: RunView) -> dict[str, int]:
    """Tokens of all agents of each role."""
    totals: dict[str, int] = {}
    for agent in view.agents.values():
        totals[agent.role] = totals.get(agent.role, 0) + agent.usage.total_tokens
    return totals


def seconds_of(agent: AgentView, view: RunView) -> float:
    """How long an agent was at work, up to the latest record."""
    still = (view.last - agent.began).total_seconds() if agent.began and view.last else 0.0
    return agent.seconds + still


def slowest(view: RunView) -> AgentView | None:
    """The helper that took longest; who leads waits for all of them, and is not meant."""
    helpers = [agent for agent in view.agents.values() if agent.parent]
    return max(helpers or view.agents.values(), key=lambda agent: seconds_of(agent, view), default=None)


def slowest_words(view: RunView) -> str:
    """The same for people."""
    agent = slowest(view)
    return f"{agent.id}, {duration(seconds_of(agent, view))}" if agent else "-"


def run_facts(view: RunView, folder: Path, records: Sequence[Record]) -> dict[str, object]:
    """Everything, for programs."""
    longest = slowest(view)
    path = folder / REPORT
    return {
        "run_id": folder.name,
        "folder": str(folder.resolve()),
        "question": view.question,
        "status": view.status,
        "reason": view.reason,
        "started": view.started.isoformat() if view.started else None,
        "cost_usd": view.cost_usd,
        "tokens": token_counts(view.usage),
        "steps": view.steps,
        "models": view.models,
        "agents": [_agent_facts(agent, view) for agent in view.agents.values()],
        "slowest_agent": longest.id if longest else None,
        "tokens_by_role": tokens_by_role(view),
        "failed_attempts": view.failed_attempts,
        "orders": [asdict(order) for order in view.orders],
        "files": [file.model_dump(mode="json") for file in view.files.values()],
        "origins": [origin.model_dump(mode="json") for origin in origins(records, Workspace(folder))],
        "sources": [source.model_dump(mode="json") for source in view.sources.values()],
        "report": str(path) if path.is_file() else None,
        "records": len(records),
        "endings": [record.at.isoformat() for record in records if isinstance(record.event, RunFinished)],
    }


def _agent_facts(agent: AgentView, view: RunView) -> dict[str, object]:
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
        "seconds": seconds_of(agent, view),
    }
