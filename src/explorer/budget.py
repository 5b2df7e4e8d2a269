"""What a run may use up: a tree of accounts, where room is reserved before a request and settled after it.

Reserving is what keeps many helpers asking at once from overshooting: a request whose worst case does not fit is
never sent. The exploration gets its limits less a slice that only the report may spend.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from explorer.settings import Limits

EXPLORATION_SHARE = 0.95
"""Of money, tokens and steps; the rest is held back for the report."""
EXPLORATION_TIME_SHARE = 0.85
"""Of the time; writing a report takes a few turns."""
NOTE_SHARES = (0.70, 0.85)
MIN_OUTPUT_TOKENS = 1_024
"""A reply with less room than this is not worth asking for."""

WorstCost = Callable[[int, int], float]
"""USD of a request with so many input and output tokens at most; 0.0 when no price is known."""


@dataclass(frozen=True)
class Amount:
    """Of each limited thing."""

    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        """Sum."""
        return Amount(self.steps + other.steps, self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: "Amount") -> "Amount":
        """Difference."""
        return Amount(self.steps - other.steps, self.tokens - other.tokens, self.cost_usd - other.cost_usd)


@dataclass(frozen=True)
class Hold:
    """Room reserved for one request."""

    amount: Amount
    max_output_tokens: int
    """How long the reply may be, so that even the worst case fits."""


@dataclass
class Account:
    """A node of the tree. `used` is settled, `held` is reserved; their sum never passes a limit."""

    name: str
    parent: "Account | None" = None
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    used: Amount = field(default_factory=Amount)
    held: Amount = field(default_factory=Amount)

    def hold(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> Hold | str:
        """Reserve room for one request, shortening the reply if that makes it fit.

        Args:
            input_tokens: An upper bound.
            max_output_tokens: What is wished for.
            worst_cost: USD for given tokens.

        Returns:
            The reservation, or the name of the limit that has no room: `steps`, `tokens` or `cost`.
        """
        output_tokens = max_output_tokens
        while True:
            amount = Amount(1, input_tokens + output_tokens, worst_cost(input_tokens, output_tokens))
            lacking = self.lacking(amount)
            if not lacking:
                self._move(amount)
                return Hold(amount, output_tokens)
            output_tokens //= 2
            if lacking == "steps" or output_tokens < MIN_OUTPUT_TOKENS:
                return lacking

    def settle(self, hold: Hold, used: Amount) -> None:
        """Give a reservation back and book what was really used."""
        account: Account | None = self
        while account is not None:
            account.held -= hold.amount
            account.used += used
            account = account.parent

    def book(self, used: Amount) -> None:
        """Book what an earlier life of the run used."""
        self.settle(Hold(Amount(), 0), used)

    def lacking(self, need: Amount) -> str:
        """The first limit, here or above, that `need` does not fit under; empty when it fits."""
        after = self.used + self.held + need
        if self.max_steps is not None and after.steps > self.max_steps:
            return "steps"
        if self.max_tokens is not None and after.tokens > self.max_tokens:
            return "tokens"
        if self.max_cost_usd is not None and after.cost_usd > self.max_cost_usd + 1e-12:
            return "cost"
        return self.parent.lacking(need) if self.parent is not None else ""

    def share_used(self) -> float:
        """The largest used share of any limit here, 0.0 without limits."""
        pairs = (
            (self.used.steps, self.max_steps),
            (self.used.tokens, self.max_tokens),
            (self.used.cost_usd, self.max_cost_usd),
        )
        return max((used / limit for used, limit in pairs if limit), default=0.0)

    def _move(self, amount: Amount) -> None:
        account: Account | None = self
        while account is not None:
            account.held += amount
            account = account.parent


class Budget:
    """One run's accounts, its clock, and whether it is winding down."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self.limits = limits
        self._clock = clock
        self._started = clock()
        self._wind_down = ""
        self.root = Account("run", None, limits.max_steps, limits.max_tokens, limits.max_cost_usd)
        self.exploration = Account("exploration", self.root, *_less_the_report(limits))

    @property
    def seconds_used(self) -> float:
        """Of this life of the run."""
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Until the hard end; None without a limit."""
        limit = self.limits.max_time_s
        return None if limit is None else max(0.0, limit - self.seconds_used)

    def share_used(self) -> float:
        """The largest used share of any limit, time included."""
        limit = self.limits.max_time_s
        time_share = self.seconds_used / limit if limit else 0.0
        return max(time_share, self.root.share_used())

    def wind_down(self, reason: str) -> None:
        """From now on only the report is worked on. The first reason stays."""
        self._wind_down = self._wind_down or reason

    @property
    def winding_down(self) -> str:
        """Why only the report is worked on; empty while the exploration goes on."""
        limit = self.limits.max_time_s
        if not self._wind_down and limit and self.seconds_used > limit * EXPLORATION_TIME_SHARE:
            self._wind_down = "time limit"
        return self._wind_down


def _less_the_report(limits: Limits) -> tuple[int | None, int | None, float | None]:
    """The limits of the exploration: at least two steps are held back for the report."""
    steps = (
        None
        if limits.max_steps is None
        else max(1, min(int(limits.max_steps * EXPLORATION_SHARE), limits.max_steps - 2))
    )
    tokens = None if limits.max_tokens is None else int(limits.max_tokens * EXPLORATION_SHARE)
    cost = None if limits.max_cost_usd is None else limits.max_cost_usd * EXPLORATION_SHARE
    return steps, tokens, cost
