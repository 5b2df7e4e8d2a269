"""What of a run's limits is held back for its report: what writing one can cost with the models in use.

A fixed share is too little where the limit is small or the writer's model is expensive: a twentieth of $0.50 does not
pay for one request of the strongest models.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEAST_SHARE = 0.05
"""Of money and tokens: a long exploration has a long report."""
MOST_SHARE = 0.5
"""Of money and tokens: without an exploration there is nothing to report."""
WRITING_TOKENS = (60_000, 8_000)
"""In and out of all requests of a writer that reads the findings, writes the report, and corrects it once."""
LEADING_TOKENS = (30_000, 1_500)
"""In and out of the orchestrator's requests that have the report written, look at it, and finish."""


@dataclass(frozen=True)
class ReportReserve:
    """What a report can take of money and tokens; 0 where that is not limited."""

    tokens: int = 0
    cost_usd: float = 0.0


def report_reserve(
    writers: Sequence[Callable[[int, int], float]], leads: Callable[[int, int], float], *, counts_tokens: bool
) -> ReportReserve:
    """Return what a report can take.

    Args:
        writers: USD of a request by its tokens, for each role that may write the report; the dearest counts.
        leads: The same for the orchestrator, which writes itself where no other role does.
        counts_tokens: Whether tokens are limited.
    """
    writing = max(worst_cost(*WRITING_TOKENS) for worst_cost in writers or (leads,))
    tokens = sum(WRITING_TOKENS) + sum(LEADING_TOKENS)
    return ReportReserve(tokens if counts_tokens else 0, writing + leads(*LEADING_TOKENS))


def held_back(limit: float, needed: float) -> float:
    """How much of a limit the exploration may not use."""
    return min(limit * MOST_SHARE, max(limit * LEAST_SHARE, needed))


def enough(needed: float) -> float:
    """The smallest limit of which all that a report needs is held back."""
    return needed / MOST_SHARE
