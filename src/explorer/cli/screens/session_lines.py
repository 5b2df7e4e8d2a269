"""What a session works with, for people: first lines, a page with reasons, and a warning when prompts are cut."""

import math
import textwrap
from collections.abc import Callable, Mapping

from explorer.agents.budget import ReportReserve, enough, held_back
from explorer.observe.formatting import counted, duration, money, one_line, tokens
from explorer.observe.run_origin import unproven_words
from explorer.observe.run_view import RunView
from explorer.schema.events import (
    ApprovalAnswer,
    ApprovalDecided,
    CarriedRun,
    LimitInUse,
    ModelInUse,
    SessionConfigured,
    TurnTaken,
)
from explorer.schema.limits import Limits, claimed_limits

OFFLINE = "offline"
"""Name of offline mode in records; not imported from the adapters, which are slow to import."""
WIDTH = 80
MANY_ROLES = 2
"""More of them with one model are called the others."""
NO_MODEL = "offline mode is not a language model: it plans by rules and quotes sources"
DEFAULT = "default"
FORMS: Mapping[str, Callable[[float], str]] = {
    "max_steps": lambda value: f"{value:,.0f} steps",
    "max_tool_calls": lambda value: f"{value:,.0f} tool calls",
    "max_time_s": duration,
    "max_outage_s": lambda value: f"outages of {duration(value)}",
    "max_agents": lambda value: counted(int(value), "helper"),
}
"""How limits besides those of money and tokens are said, by name."""
ALWAYS = frozenset({"max_steps", "max_time_s"})
"""Limits that are shown even where they are the default."""


def session_lines(session: SessionConfigured, width: int = WIDTH) -> list[str]:
    """Return models and why; then search, shell and limits: a line each where they fit, else wrapped."""
    whys = "; ".join(dict.fromkeys(in_use.why for in_use in session.models.values()))
    words = [f"model {models_words(session.models)}: {whys}"]
    if any(in_use.model == OFFLINE for in_use in session.models.values()):
        words.append(NO_MODEL)
    if session.lean:
        words.append(f"lean mode, one agent that fills in forms: {session.lean}")
    if session.unmeasured:
        words.append(f"{session.unmeasured} is small and was not measured: explorer doctor --probe; or use --lean")
    changed = _changes(session.models)
    if changed:
        words.append(changed)
    parts = [f"preset {session.preset}"] * bool(session.preset)
    parts.append(f"search {', '.join(session.search) or 'none'}")
    parts += [f"pages read through {session.reader}"] * bool(session.reader)
    parts.append(f"shell {session.shell or 'none'}")
    words.append(", ".join([*parts, *limit_words(session.limits)]))
    if session.skills:
        words.append(f"skills of your own or of this folder: {', '.join(session.skills)}")
    words += [f"skill left out: {place}: {why}" for place, why in session.skills_left_out.items()]
    words += [f"MCP server {name} {way}" for name, way in session.mcp.items()]
    words += carried_words(session.carried)
    limits = claimed_limits({name: limit.value for name, limit in session.limits.items()})
    reserve = ReportReserve(session.report_tokens, session.report_cost_usd)
    words += tight_limit_words(limits, reserve)
    return [line for paragraph in words for line in _wrapped(paragraph, width)]


def approval_line(event: ApprovalDecided) -> str:
    """Return what became of a call that an approval rule asks about; with the way out where nobody could be asked."""
    asks = f"`{one_line(event.rule)}` asks"
    words = {
        ApprovalAnswer.ONCE: f"allowed ({asks})",
        ApprovalAnswer.RUN: f"allowed until the run ends ({asks})",
        ApprovalAnswer.NO: f"refused ({asks})",
        ApprovalAnswer.UNASKED: f"refused: {asks}, and there is no one to ask; to allow it: "
        f"--approval 'allow {event.name}'",
    }
    return f"{event.agent}  {event.name} {words[event.answer]}"


def carried_words(carried: CarriedRun | None) -> list[str]:
    """Say that nothing proves the run to be the user's, and which of its settings do not hold therefore."""
    if carried is None:
        return []
    words = f"{unproven_words(carried.no_key)}, so it has the settings of this command"
    left = ", ".join(f"{name} {value}" for name, value in carried.not_taken.items())
    return [f"{words}; recorded, and not used: {left}" if left else words]


def session_page(session: SessionConfigured) -> str:
    """Return everything with its reason, a line each."""
    rows = [
        *((role, in_use.model, _reason(in_use)) for role, in_use in session.models.items()),
        *([("mode", "lean", session.lean)] if session.lean else []),
        *([("preset", session.preset, "its roles and settings are in the journal")] if session.preset else []),
        ("search", ", ".join(session.search) or "none", session.search_why),
        *([("reader", session.reader, session.reader_why)] if session.reader else []),
        ("shell", session.shell or "none", session.shell_why),
        *(("skill", name, folder) for name, folder in session.skills.items()),
        *(("skill", "left out", f"{place}: {why}") for place, why in session.skills_left_out.items()),
        *(("MCP server", name, way) for name, way in session.mcp.items()),
        *(
            (name.replace("_", " "), "none" if limit.value is None else f"{limit.value:,}", limit.origin)
            for name, limit in session.limits.items()
        ),
        *_reserve_rows(session),
    ]
    titles, values = (max(len(row[place]) for row in rows) for place in (0, 1))
    return "\n".join(f"  {title:<{titles}}  {value:<{values}}  {one_line(why)}" for title, value, why in rows)


def _reserve_rows(session: SessionConfigured) -> list[tuple[str, str, str]]:
    """Return what of the limits is held back for the report; nothing where no limit needs it."""
    usd, tokens = (session.limits.get(name) for name in ("max_cost_usd", "max_tokens"))
    rows: list[tuple[str, str, str]] = []
    if usd is not None and usd.value is not None:
        held = held_back(usd.value, session.report_cost_usd)
        needed = money(session.report_cost_usd)
        rows.append(
            ("report reserve", money(held), f"held back of max cost; a report can take {needed} with these models")
        )
    if tokens is not None and tokens.value is not None:
        held, needed = held_back(tokens.value, session.report_tokens), f"{session.report_tokens:,}"
        rows.append(("report reserve", f"{held:,.0f} tokens", f"held back of max tokens; a report can take {needed}"))
    return rows


def _reason(in_use: ModelInUse) -> str:
    parts = [
        in_use.why,
        f"effort {in_use.effort}" * bool(in_use.effort),
        f"before: {in_use.before}" * bool(in_use.before),
    ]
    return "; ".join(filter(None, parts))


def _wrapped(words: str, width: int) -> list[str]:
    return textwrap.wrap(one_line(words), width, subsequent_indent="  ", break_on_hyphens=False)


def models_words(models: Mapping[str, ModelInUse]) -> str:
    """Return models with their roles: `claude-opus-5-5 (orchestrator), claude-sonnet-5-5 (others)`."""
    roles: dict[str, list[str]] = {}
    for role, in_use in models.items():
        effort = f" at {in_use.effort} effort" if in_use.effort else ""
        roles.setdefault(f"{in_use.model}{effort}", []).append(role)
    if len(roles) == 1:
        return f"{short_model(next(iter(roles)))} for all roles"
    others = max(roles, key=lambda model: len(roles[model]))
    named = [
        (model, "others" if model == others and len(names) > MANY_ROLES else ", ".join(names))
        for model, names in roles.items()
    ]
    named.sort(key=lambda pair: pair[1] == "others")
    return ", ".join(f"{short_model(model)} ({who})" for model, who in named)


def short_model(model: str) -> str:
    """Return a model's name without the provider, where the name itself says it."""
    _, _, name = model.partition(":")
    return name if name.startswith(("claude-", "gpt-")) else model


def _changes(models: Mapping[str, ModelInUse]) -> str:
    """Return what this session does with another model than the one before."""
    before = {in_use.before for in_use in models.values() if in_use.before}
    if before == {OFFLINE}:
        return "this run began offline, without a language model; it continues with the model above"
    named = {short_model(name) for name in before}
    return f"until now the model was {', '.join(sorted(named))}" if named else ""


def limit_words(limits: Mapping[str, LimitInUse]) -> list[str]:
    """Return limits of money, steps and time, and others that were set: `max $5.00 (default)`, `300 steps`, `1h00m`."""
    words = [_cost_words(limits)]
    for name, form in FORMS.items():
        limit = limits.get(name)
        if limit is not None and limit.value is not None and (name in ALWAYS or _origin(limit)):
            words.append(form(limit.value) + _origin(limit))
    return words


def _cost_words(limits: Mapping[str, LimitInUse]) -> str:
    usd, tokens = limits.get("max_cost_usd"), limits.get("max_tokens")
    parts = [f"{money(usd.value)} ({_short_origin(usd)})"] if usd is not None and usd.value is not None else []
    if tokens is not None and tokens.value is not None:
        parts.append(f"{tokens.value:,} tokens ({_short_origin(tokens)})")
    return f"max {', '.join(parts)}" if parts else "no cost limit"


def tight_limit_words(limits: Limits, reserve: ReportReserve) -> list[str]:
    """Return a warning for each limit that cannot hold back what a report can take, with a limit that is enough."""
    found: list[str] = []
    usd, tokens = limits.max_cost_usd, limits.max_tokens
    if usd is not None and usd < (least := enough(reserve.cost_usd)):
        held, needed = money(held_back(usd, reserve.cost_usd)), money(reserve.cost_usd)
        # Rounded up to a cent, and not because of what floats lose.
        found.append(_tight_words(money(usd), held, needed, f"--max-cost {math.ceil(least * 100 - 1e-6) / 100:.2f}"))
    if tokens is not None and tokens < (least := enough(reserve.tokens)):
        held, needed = f"{held_back(tokens, reserve.tokens):,.0f}", f"{reserve.tokens:,}"
        found.append(_tight_words(f"{tokens:,} tokens", held, needed, f"--max-tokens {least:.0f}"))
    return found


def _tight_words(limit: str, held: str, needed: str, flag: str) -> str:
    return (
        f"max {limit} holds back {held} for the report, which can take {needed} with these models: it may have to be "
        f"short; {flag} is enough for a whole one"
    )


def _origin(limit: LimitInUse) -> str:
    return "" if limit.origin.startswith(DEFAULT) else f" ({_short_origin(limit)})"


def _short_origin(limit: LimitInUse) -> str:
    """Return `default` for `default: the price is not known`, and `--max-cost` for `flag --max-cost`."""
    return limit.origin.partition(":")[0].removeprefix("flag ").removeprefix("environment ")


RAISE_IT = "OLLAMA_CONTEXT_LENGTH=64000 ollama serve"
"""64,000 tokens are what Ollama's own pages advise for agents."""


def cut_line(event: TurnTaken, view: RunView) -> str:
    """Return the line for a turn that answers only part of its request; empty for others, and for the model's next.

    Args:
        event: A turn.
        view: The run just before it.
    """
    turn = event.turn
    if not turn.cut_from_tokens or turn.model in view.cut:
        return ""
    read, sent = tokens(turn.usage.input_tokens), tokens(turn.cut_from_tokens)
    return (
        f"{turn.model} was given only {read} of about {sent} tokens: its server cuts long prompts without a word. "
        f"Raise its context length, for Ollama: {RAISE_IT}"
    )
