"""A run as JSON for programs: its result, agents, spending, files and sources."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from explorer.journal.run_state import RunState
from explorer.observe.command_result import token_counts
from explorer.observe.costs import spending_facts, spending_of
from explorer.observe.provenance import origins
from explorer.observe.run_view import AgentView, RunView, session_facts
from explorer.run.outcome import further_links, helper_results
from explorer.schema.events import JournalRecord, RunFinished
from explorer.workspace.workspace import Workspace, report_path


def run_facts(view: RunView, folder: Path, records: Sequence[JournalRecord]) -> dict[str, object]:
    """Return the facts of a run as JSON for programs."""
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
        "plan": plan.model_dump(mode="json") if (plan := run_state.plan.summary()) is not None else None,
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
        "result": agent.result,
    }
