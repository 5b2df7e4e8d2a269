"""What a run used up, as JSON for programs."""

from explorer.observe.command_result import token_counts
from explorer.observe.costs import AgentShare, Spending, UsageTotals
from explorer.observe.timeline import PathSegment

DECIMALS = 3
"""Decimals of seconds."""


def spending_facts(spending: Spending) -> dict[str, object]:
    """Return the spending as JSON for programs. Seconds are those in which a process worked on the run."""
    inherited, slowest = spending.inherited, spending.slowest
    parallelism = spending.parallelism
    return {
        **_usage_facts(spending.total),
        "seconds": round(spending.seconds, DECIMALS),
        "parallelism": None if parallelism is None else round(parallelism, DECIMALS),
        "by_role": [
            {
                "role": role.role,
                "agents": role.agents,
                **_usage_facts(role.totals),
                "seconds": round(role.seconds, DECIMALS),
            }
            for role in spending.roles
        ],
        "by_agent": [_agent_facts(agent) for agent in spending.agents],
        "slowest_agent": {"id": slowest.id, **_times(slowest)} if slowest else None,
        "critical_path": [_link_facts(link) for link in spending.path],
        "lives": [
            {
                "start": interval.start.isoformat(),
                "end": interval.end.isoformat(),
                "seconds": round(interval.seconds, DECIMALS),
            }
            for interval in spending.sessions
        ],
        "inherited": None
        if inherited is None
        else {"run_id": inherited.run, "records": inherited.records, **_usage_facts(inherited.totals)},
    }


def _usage_facts(totals: UsageTotals) -> dict[str, object]:
    share = totals.cache_share
    return {
        "turns": totals.turns,
        "tokens": token_counts(totals.usage),
        "cache_share": None if share is None else round(share, 4),
        "cost_usd": totals.cost_usd,
        "saved_usd": totals.saved_usd,
    }


def _agent_facts(agent: AgentShare) -> dict[str, object]:
    return {"id": agent.id, "role": agent.role, **_usage_facts(agent.totals), **_times(agent)}


def _times(agent: AgentShare) -> dict[str, float]:
    return {
        "seconds": round(agent.seconds, DECIMALS),
        "model_s": round(agent.model_s, DECIMALS),
        "tools_s": round(agent.tools_s, DECIMALS),
        "helpers_s": round(agent.helpers_s, DECIMALS),
        "waited_s": round(agent.waited_s, DECIMALS),
    }


def _link_facts(link: PathSegment) -> dict[str, object]:
    return {
        "agent": link.agent,
        "start_s": round(link.start_s, DECIMALS),
        "seconds": round(link.seconds, DECIMALS),
        "model_s": round(link.model_s, DECIMALS),
        "tools_s": round(link.tools_s, DECIMALS),
        "other_s": round(link.other_s, DECIMALS),
    }
