"""A run for programs: the result of a session that has just ended, or of what is on disk, and all facts as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from explorer.journal.run_state import RunState
from explorer.observe.command_result import CommandResult, exit_code, token_counts
from explorer.observe.costs import spending_facts, spending_of
from explorer.observe.provenance import origins
from explorer.observe.run_view import AgentView, RunView, session_facts
from explorer.reports.verify.claims import Verdict
from explorer.run.outcome import further_links, helper_results
from explorer.run.run import RunResult
from explorer.schema.events import JournalRecord, RunFinished
from explorer.text.frontmatter import read_frontmatter
from explorer.workspace.workspace import Workspace, report_path, report_text


def seen_outcome(view: RunView, folder: Path | None) -> CommandResult:
    """Return how a run ended, from its records; its report is looked for in its folder."""
    report = report_path(folder) if folder else None
    return CommandResult(
        status=view.status,
        exit_code=exit_code(view.status, view.cause),
        run_id=view.run_id,
        folder=str(folder or ""),
        report=str(report) if report else None,
        answer=view.answer,
        reason=view.reason,
        cause=view.cause.value,
        cost_usd=view.cost_usd,
        estimated=view.estimated.model_dump(),
        tokens=token_counts(view.usage),
        steps=view.steps,
        agents=len(view.agents),
        sources=len(view.sources),
        seconds=(view.last - view.started).total_seconds() if view.last and view.started else 0.0,
        session=session_facts(view),
        plan=plan.model_dump(mode="json") if (plan := view.plan.summary()) is not None else None,
    )


def result_of(result: RunResult) -> CommandResult:
    """Return how a session ended."""
    return CommandResult(
        status=result.status.value,
        exit_code=exit_code(result.status.value, result.cause),
        run_id=result.run_id,
        folder=str(result.folder),
        report=str(result.report) if result.report else None,
        report_text=result.report_text,
        answer=result.answer or result.words,
        reason=result.reason,
        cause=result.cause.value,
        cost_usd=result.cost_usd,
        estimated=result.estimated.model_dump(),
        tokens=token_counts(result.usage),
        steps=result.steps,
        agents=result.agents,
        sources=result.sources,
        citations=result.citations,
        verdicts=result.verdicts,
        uncited=result.uncited,
        further_links=[one.model_dump() for one in result.further_links],
        helpers=[one.model_dump(mode="json") for one in result.helpers],
        seconds=result.seconds,
        plan=result.plan.model_dump(mode="json") if result.plan is not None else None,
        changes=str(result.changes) if result.changes else None,
    )


def stored_result(view: RunView, folder: Path) -> CommandResult:
    """Return how a run ended as its folder says it, with the report and what that counts."""
    return with_report(seen_outcome(view, folder), report_text(folder))


def with_report(result: CommandResult, text: str) -> CommandResult:
    """Return a result with the text of a report, and what its frontmatter counts."""
    return replace(result, report_text=text, **_counts(text))


class _Counted(BaseModel):
    """What a report's frontmatter counts."""

    citations: dict[str, Any] = {}
    uncited: int = 0


def verdicts_of(folder: Path) -> dict[str, int]:
    """Return the cited sentences of a run's report by verdict, as its frontmatter counts them."""
    return _counts(report_text(folder)).get("verdicts", {})


def _counts(report: str) -> dict[str, Any]:
    """Return the cited sentences as the report's own frontmatter counts them; nothing when it has none."""
    fields, _ = read_frontmatter(report)
    if not fields:
        return {}
    try:
        counted = _Counted.model_validate(fields)
    except ValidationError:
        return {}
    verdicts = {str(verdict): counted.citations.get(str(verdict), 0) for verdict in Verdict}
    return {"citations": sum(verdicts.values()), "verdicts": verdicts, "uncited": counted.uncited}


def run_facts(view: RunView, folder: Path, records: Sequence[JournalRecord]) -> dict[str, object]:
    """Return the facts of a run as JSON for programs."""
    spending, run_state = spending_of(records), RunState.of_records(records)
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
