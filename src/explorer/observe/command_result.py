"""How a command or a run ended, in the shape in which programs read it: the command line's JSON and the web page's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from explorer.schema.errors import ExplorerError
from explorer.schema.messages import Usage
from explorer.schema.reasons import EndCause

TIMED_OUT = 124
PARTIAL = 3
TOKEN_KINDS = ("input", "output", "cache_read", "cache_write", "reasoning", "total")
UNAVAILABLE = 6
WAITING = 7
EXIT_CODES = {
    "complete": 0,
    "partial": PARTIAL,
    "nothing_found": PARTIAL,
    "failed": 1,
    "sources_unavailable": UNAVAILABLE,
    "waiting": WAITING,
}


@dataclass(frozen=True)
class CommandResult:
    """How a command ended: the same fields for every ending."""

    status: str
    """`complete`, `partial`, `nothing_found`, `sources_unavailable`, `failed`, `waiting` (its plan waits for
    a decision), `interrupted`, or `error` when it was ended by an error."""
    exit_code: int
    """The exit code of the command line for it."""
    run_id: str = ""
    """The run; empty where there is none."""
    folder: str = ""
    """The run's folder."""
    report: str | None = None
    """The path of its report; None when there is none."""
    report_text: str = ""
    """The text of the report."""
    answer: str = ""
    """The words that answer a follow-up, or that the model said instead of writing a report; empty otherwise."""
    reason: str = ""
    """Why it ended so; empty when it is complete."""
    cause: str = EndCause.OTHER.value
    """The limit that was reached, as a code: `step_limit`, `cost_limit`, `token_limit`, `call_limit`, `time_limit`;
    else `other`."""
    error: Mapping[str, str] | None = None
    """What was wrong: `message`, `hint`, `type`; None when nothing was."""
    cost_usd: float | None = None
    """What it cost, in US dollars; None when a price is not known."""
    estimated: Mapping[str, float] = field(default_factory=lambda: {"tokens": 0, "cost_usd": 0.0})
    """What of `cost_usd` and `tokens` is estimated: the provider reported no usage, or a request brought no reply."""
    tokens: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(TOKEN_KINDS, 0))
    """Tokens by kind; `input` includes what the provider's cache had."""
    steps: int = 0
    """Turns of all agents."""
    agents: int = 0
    """Number of agents."""
    sources: int = 0
    """Number of stored sources."""
    citations: int = 0
    """Cited sentences of the report, or of the answer."""
    verdicts: Mapping[str, int] = field(default_factory=dict[str, int])
    """The cited sentences by what a look into their sources found; the parts sum to `citations`."""
    uncited: int = 0
    """Sentences with a quote or a figure and no citation; not among `citations`."""
    further_links: Sequence[Mapping[str, str]] = ()
    """Sources that the orchestrator recommends, best first: `url`, `title` and `source`, the id."""
    helpers: Sequence[Mapping[str, Any]] = ()
    """What each helper did: `agent`, `role`, `status`, `reason`, `steps`, `output_files`, `summary`."""
    seconds: float = 0.0
    """The time from the first record to the last."""
    session: Mapping[str, object] | None = None
    """What the latest session worked with, and why: models, search, shell, limits; None when there was none."""
    plan: Mapping[str, Any] | None = None
    """The plan, its state (`waiting`, `approved`, `edited`, `rejected`), and how far each sub-question is."""
    changes: str | None = None
    """Where the changes since the earlier run are, when one was named."""


def token_counts(usage: Usage) -> dict[str, int]:
    """Return tokens by kind; `input` includes what the provider's cache had."""
    return {
        "input": usage.input_tokens,
        "output": usage.output_tokens,
        "cache_read": usage.cache_read_tokens,
        "cache_write": usage.cache_write_tokens,
        "reasoning": usage.reasoning_tokens,
        "total": usage.total_tokens,
    }


def exit_code(status: str, cause: EndCause) -> int:
    """Return the exit code of a run's end."""
    if status != "complete" and cause is EndCause.TIME_LIMIT:
        return TIMED_OUT
    return EXIT_CODES.get(status, 1)


def described(error: ExplorerError) -> dict[str, str]:
    """Return an error as programs read it."""
    return {"message": error.message, "hint": error.hint, "type": type(error).__name__}
