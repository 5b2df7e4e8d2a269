"""`--dry-run`: what a question would be asked with, and what it can cost at most; no model is asked."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from explorer.agents.roles import Role
from explorer.cli.commands.catalog import check_team, named_tools
from explorer.cli.screens.output import aligned, emit_json, emit_page
from explorer.cli.screens.session_lines import NO_MODEL, OFFLINE, tight_limit_words
from explorer.cli.settings.options import AskOptions
from explorer.llm.models import Choice, ModelRef
from explorer.observe.formatting import duration, money, one_line, size
from explorer.run.model_facts import known_cost, known_window, list_price
from explorer.run.resources import in_force, reserve_for_report
from explorer.run.team import ChosenTeam, choose_judge, choose_team, effort_of, lean_settings
from explorer.schema.settings import Settings

MILLION = 1_000_000


@dataclass(frozen=True)
class CostBound:
    """The most a question can cost."""

    usd: float | None
    """Upper bound of the cost; None: unbounded, or not known."""
    words: str
    """How it comes about, in one line."""


@dataclass(frozen=True)
class DryRunPlan:
    """What a question would be asked with."""

    question: str
    settings: Settings
    """Settings with the limits in force."""
    roles: Mapping[str, Role]
    choice: Choice
    bound: CostBound
    origins: Mapping[str, str]
    """Origin of each limit that was not set, by name."""
    files: tuple[tuple[str, int], ...]
    """Path, or name where one is piped in, and size in bytes."""


def print_plan(question: str, settings: Settings, options: AskOptions, piped: Mapping[str, bytes]) -> int:
    """Print the plan; `piped` is what was piped in, by name.

    Raises:
        ConfigError: The run could not start like this.
    """
    check_team(settings, named_tools(options, settings))
    (roles, choice, lean), judge = asyncio.run(_chosen(settings))
    settings = lean_settings(settings) if lean else settings
    settings, origins = in_force(settings, choice, judge)
    models = {**choice.models, **(judge.models if judge else {})}
    files = [(str(path), path.stat().st_size) for path in settings.files]
    files += [(name, len(body)) for name, body in piped.items()]
    plan = DryRunPlan(question, settings, roles, choice, most(models, settings), origins, tuple(files))
    if options.output_format == "text":
        emit_page(_page(plan))
    else:
        emit_json(_facts(plan))
    return 0


async def _chosen(settings: Settings) -> tuple[ChosenTeam, Choice | None]:
    """Return the roles with their models, and the judge's where one is asked for."""
    return await choose_team(settings), await choose_judge(settings) if settings.judge else None


def most(models: Mapping[str, ModelRef], settings: Settings) -> CostBound:
    """Return the most a question can cost: the smallest of what its limits allow."""
    refs = list(dict.fromkeys(models.values()))
    unpriced = [str(ref) for ref in refs if known_cost(ref, settings, 1, 1) is None]
    if unpriced:
        tokens = settings.limits.max_tokens
        words = f"not known: no price is known for {', '.join(unpriced)}; give one with EXPLORER_PRICE"
        return CostBound(None, words if tokens is None else f"{tokens:,} tokens; in money {words}")
    if all(known_cost(ref, settings, MILLION, MILLION) == 0 for ref in refs):
        return CostBound(0.0, "no model here costs anything")
    bounds = [bound for bound in (_by_money(settings), _by_tokens(refs, settings), _by_steps(refs, settings)) if bound]
    if not bounds:
        return CostBound(None, "unbounded: no limit of money, tokens or steps bounds it; set --max-cost")
    return min(bounds, key=lambda bound: bound.usd or 0.0)


def _by_money(settings: Settings) -> CostBound | None:
    usd = settings.limits.max_cost_usd
    return (
        None
        if usd is None
        else CostBound(usd, "the cost limit itself; the worst-case cost of a request is reserved before it is sent")
    )


def _by_tokens(refs: list[ModelRef], settings: Settings) -> CostBound | None:
    tokens = settings.limits.max_tokens
    if tokens is None:
        return None
    costs = [(_usd(ref, settings, *pair), ref) for ref in refs for pair in ((tokens, 0), (0, tokens))]
    usd, ref = max(costs, key=lambda cost: cost[0])
    return CostBound(usd, f"{tokens:,} tokens, all at the highest rate, that of {ref}")


def _by_steps(refs: list[ModelRef], settings: Settings) -> CostBound | None:
    steps, reply = settings.limits.max_steps, settings.max_output_tokens
    windows = {ref: known_window(ref, settings) for ref in refs}
    if steps is None:
        return None
    costs = [(_usd(ref, settings, window, reply), ref) for ref, window in windows.items() if window is not None]
    if len(costs) < len(refs):
        return None
    usd, ref = max(costs, key=lambda cost: cost[0])
    words = (
        f"{steps:,} steps x {money(usd)} for a full window of {windows[ref]:,} tokens in and {reply:,} out with {ref}"
    )
    return CostBound(steps * usd, words)


def _usd(ref: ModelRef, settings: Settings, inward: int, outward: int) -> float:
    return known_cost(ref, settings, inward, outward) or 0.0


def _page(plan: DryRunPlan) -> str:
    settings, choice, bound = plan.settings, plan.choice, plan.bound
    rows: list[tuple[str, ...]] = []
    for name, role in plan.roles.items():
        price = list_price(choice.models[name], settings)
        rates = ("?", "?") if price is None else (f"{price.input_usd:.2f}", f"{price.output_usd:.2f}")
        rows.append((name, str(choice.models[name]), *rates, role.model, effort_of(settings, role) or "-"))
    limits = settings.limits
    facts = [
        ("question", one_line(plan.question, 200)),
        ("workspace", f"{settings.workspace} (nothing is made now)"),
        ("files", ", ".join(f"{name} ({size(count)})" for name, count in plan.files) or "none"),
        ("limits", ", ".join(_limit_words(limits.model_dump(), plan.origins))),
        ("at most", bound.words if bound.usd is None else f"{money(bound.usd)} = {bound.words}"),
        *(("", words) for words in tight_limit_words(limits, reserve_for_report(settings, plan.roles, choice))),
        ("models", one_line(choice.why)),
    ]
    if any(ref.provider == OFFLINE for ref in choice.models.values()):
        facts.append(("", NO_MODEL))
    table = aligned(("ROLE", "MODEL", "USD/M IN", "USD/M OUT", "ASKS FOR", "EFFORT"), rows)
    return "\n".join(f"{name:<11}{words}" for name, words in facts) + f"\n\n{table}"


def _limit_words(limits: Mapping[str, float | None], origins: Mapping[str, str]) -> list[str]:
    steps, usd, tokens, seconds = (limits[name] for name in ("max_steps", "max_cost_usd", "max_tokens", "max_time_s"))
    return [
        f"{steps:,} steps" if steps is not None else "no limit of steps",
        f"{money(usd)}{_default(origins, 'max_cost_usd')}" if usd is not None else "no limit of money",
        f"{tokens:,} tokens{_default(origins, 'max_tokens')}" if tokens is not None else "no limit of tokens",
        f"{limits['max_tool_calls']:,} tool calls"
        if limits["max_tool_calls"] is not None
        else "no limit of tool calls",
        duration(seconds) if seconds is not None else "no limit of time",
        f"{limits['max_agents']} helpers, {limits['max_parallel_agents']} at once",
    ]


def _default(origins: Mapping[str, str], name: str) -> str:
    return " (default)" if name in origins else ""


def _facts(plan: DryRunPlan) -> dict[str, object]:
    settings, choice = plan.settings, plan.choice
    prices = {name: list_price(ref, settings) for name, ref in choice.models.items()}
    return {
        "question": plan.question,
        "workspace": str(settings.workspace.absolute()),
        "files": [{"path": name, "bytes": count} for name, count in plan.files],
        "limits": settings.limits.model_dump(mode="json"),
        "worst_cost": asdict(plan.bound),
        "why": choice.why,
        "roles": [
            {
                "role": name,
                "model": str(choice.models[name]),
                "asks_for": role.model,
                "effort": effort_of(settings, role),
                "usd_per_million": price.model_dump() if (price := prices[name]) else None,
                "max_steps": role.limits.max_steps,
                "tools": list(role.tools),
            }
            for name, role in plan.roles.items()
        ],
    }
