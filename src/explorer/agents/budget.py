"""What a run may use up: a tree of accounts, where room is reserved before a request and settled after it.

Reserving is what keeps many helpers asking at once from overshooting: a request whose worst case does not fit is
not sent before others have given back what they did not need. The exploration gets its limits less what only the
report may spend.

How long a reply may be where the limits have no room for the wished length: shorter, as long as it is of use.

What of a run's limits is held back for its report: what writing one can cost with the models in use.

A fixed share is too little where the limit is small or the writer's model is expensive: a twentieth of $0.50 does not
pay for one request of the strongest models.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from loguru import logger

from explorer.agents.user_stop import StopEvent
from explorer.schema.limits import Limits
from explorer.schema.reasons import EndCause, EndReason, limit_reached

MIN_OUTPUT_TOKENS = 1_024
"""A reply with less room than this is not worth asking for."""
SHORT_REPLY_MARKS = (1_500, 3_000, 6_000)
"""Below these, who writes a report has to know how short its replies are: one that is cut is paid for and lost."""
LEAST_EXPLORING_TOKENS = SHORT_REPLY_MARKS[0]
"""With less for a reply of the orchestrator, exploring is over: what is held back for the report has more room."""
LEAST_WRITING_TOKENS = SHORT_REPLY_MARKS[-1]
"""The same for who writes the report."""


def reply_lengths(wished: int) -> Iterator[int]:
    """Yield the lengths to try, longest first: the wished one, then by quarters and thirds down to the shortest."""
    length = wished
    while length > MIN_OUTPUT_TOKENS:
        yield length
        if length * 3 // 4 > MIN_OUTPUT_TOKENS:
            yield length * 3 // 4
        length //= 2
    yield min(wished, MIN_OUTPUT_TOKENS)


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


EXPLORATION_SHARE = 0.95
"""Of the steps; the rest is held back for the report."""
EXPLORATION_TIME_SHARE = 0.85
"""Of the time; writing a report takes a few turns."""
REPORT_STEPS = 8
"""A writer reads, writes and looks once more, and the orchestrator reads and finishes."""
REPORT_CALLS = 12
"""A report's writer reads a few files, writes, and the orchestrator looks and finishes."""

LIMITS = {
    "calls": EndCause.CALL_LIMIT,
    "steps": EndCause.STEP_LIMIT,
    "tokens": EndCause.TOKEN_LIMIT,
    "cost": EndCause.COST_LIMIT,
}
"""By the name that an account has for it."""

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


_NOTHING = Amount()


@dataclass(frozen=True)
class Reservation:
    """Room reserved for one request."""

    amount: Amount
    max_output_tokens: int
    """How long the reply may be, so that even the worst case fits."""
    has_waited: bool = False
    """Whether others' requests were waited for, so that much may have changed meanwhile."""


@dataclass
class Queue:
    """Who waits for room: in order, and the first looks again whenever a reservation is given back."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    given_back: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Account:
    """A node of the tree. `used` is settled, `held` is reserved; their sum never passes a limit."""

    name: str
    parent: "Account | None" = None
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    used: Amount = field(default_factory=Amount)
    reserved: Amount = field(default_factory=Amount)
    queue: Queue = field(default_factory=Queue)
    """One for the whole tree."""

    def __post_init__(self) -> None:
        """Wait in one queue with the whole tree."""
        if self.parent is not None:
            self.queue = self.parent.queue

    async def reserve(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> Reservation | str:
        """Do as `reservation` does, but wait while only others' reservations are in the way.

        A reservation is the worst case; most of it comes back. So many requests at once under a small limit go
        one after another, rather than being refused or cut short while most of the limit is still unspent.
        """
        has_waited = self.queue.turn.locked()
        async with self.queue.turn:
            while self._is_only_reserved(input_tokens, max_output_tokens, worst_cost):
                has_waited = True
                self.queue.given_back.clear()
                await self.queue.given_back.wait()
            reservation = self.try_reserve(input_tokens, max_output_tokens, worst_cost)
        return (
            replace(reservation, has_waited=True)
            if has_waited and isinstance(reservation, Reservation)
            else reservation
        )

    def _is_only_reserved(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> bool:
        """Whether the longest reply that fits beside what is used does not fit beside what is reserved, too."""
        for output_tokens in reply_lengths(max_output_tokens):
            need = Amount(1, input_tokens + output_tokens, worst_cost(input_tokens, output_tokens))
            exceeded = self.exceeded_limit(need)
            if not exceeded or not self.exceeded_limit(need, is_settled=True):
                return bool(exceeded)
        return False

    def try_reserve(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> Reservation | str:
        """Reserve room for one request, shortening the reply if that makes it fit.

        Args:
            input_tokens: An upper bound.
            max_output_tokens: What is wished for.
            worst_cost: USD for given tokens.

        Returns:
            The reservation, or the name of the limit that has no room: `steps`, `tokens` or `cost`.
        """
        exceeded = ""
        for output_tokens in reply_lengths(max_output_tokens):
            amount = Amount(1, input_tokens + output_tokens, worst_cost(input_tokens, output_tokens))
            exceeded = self.exceeded_limit(amount)
            if not exceeded:
                self._move(amount)
                return Reservation(amount, output_tokens)
            if exceeded == "steps":
                break
        return exceeded

    def commit(self, reservation: Reservation, used: Amount) -> None:
        """Give a reservation back and book what was really used."""
        account: Account | None = self
        while account is not None:
            account.reserved -= reservation.amount
            account.used += used
            account = account.parent
        self.queue.given_back.set()

    def record_usage(self, used: Amount) -> None:
        """Book what an earlier life of the run used."""
        self.commit(Reservation(Amount(), 0), used)

    def exceeded_limit(self, need: Amount, *, is_settled: bool = False) -> str:
        """The first limit, here or above, that `need` does not fit under; empty when it fits.

        Args:
            need: What is wanted.
            is_settled: Whether to leave reservations out, but for steps, which never come back.
        """
        used, held = self.used, self.reserved
        others = _NOTHING if is_settled else held
        if self.max_steps is not None and used.steps + held.steps + need.steps > self.max_steps:
            return "steps"
        if self.max_tokens is not None and used.tokens + others.tokens + need.tokens > self.max_tokens:
            return "tokens"
        if (
            self.max_cost_usd is not None
            and used.cost_usd + others.cost_usd + need.cost_usd > self.max_cost_usd + 1e-12
        ):
            return "cost"
        return self.parent.exceeded_limit(need, is_settled=is_settled) if self.parent is not None else ""

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
            account.reserved += amount
            account = account.parent


@dataclass
class CallCount:
    """Tool calls, counted before they are made; the last few are held back for the report."""

    limit: int | None
    made: int = 0

    def take(self, *, for_report: bool) -> bool:
        """Count a call, unless the limit has no room for it."""
        if self.limit is not None:
            held_back = 0 if for_report else min(REPORT_CALLS, self.limit // 4)
            if self.made >= self.limit - held_back:
                return False
        self.made += 1
        return True


class Budget:
    """One run's accounts, its clock, and whether it is winding down."""

    def __init__(self, limits: Limits, clock: Callable[[], float], reserve: ReportReserve | None = None) -> None:
        self.limits = limits
        self._clock = clock
        self._started = clock()
        self._early_end = EndReason()
        self.stopping = StopEvent()
        """The user's order to stop."""
        self.root = Account("run", None, limits.max_steps, limits.max_tokens, limits.max_cost_usd)
        self.calls = CallCount(limits.max_tool_calls)
        self.exploration = Account("exploration", self.root, *_less_the_report(limits, reserve or ReportReserve()))

    @property
    def seconds_used(self) -> float:
        """Of this life of the run."""
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float | None:
        """Until the hard end; None without a limit."""
        limit = self.limits.max_time_s
        return None if limit is None else max(0.0, limit - self.seconds_used)

    @property
    def exploration_seconds_left(self) -> float | None:
        """Until only the report is worked on; 0 from then on, None without a limit."""
        if self.winding_down:
            return 0.0
        limit = self.limits.max_time_s
        return None if limit is None else max(0.001, limit * EXPLORATION_TIME_SHARE - self.seconds_used)

    def share_used(self) -> float:
        """The largest used share of what the exploration may use, time included."""
        limit = self.limits.max_time_s
        time_share = self.seconds_used / limit if limit else 0.0
        call_share = self.calls.made / self.calls.limit if self.calls.limit else 0.0
        return max(time_share, call_share, self.exploration.share_used())

    def wind_down(self, reason: EndReason) -> None:
        """From now on only the report is worked on. The first reason stays."""
        if not self._early_end:
            logger.warning("only the report is worked on from here: {}", reason.words)
        self._early_end = self._early_end or reason

    def reach(self, limit: str) -> EndReason:
        """Wind down because a limit is reached, by the name that an account has for it; return the reason."""
        reason = limit_reached(LIMITS[limit])
        self.wind_down(reason)
        return reason

    def stop(self, reason: str) -> None:
        """Wind down by the user's order: requests and calls that are waited for are cut off, too."""
        self.wind_down(EndReason(reason))
        self.stopping.ask()

    def withdraw(self, reason: str) -> None:
        """Take a `stop` back: the run's task is about to be cancelled, and what has not ended yet is not cut short."""
        self.stopping.withdraw()
        if self._early_end.words == reason:
            self._early_end = EndReason()

    @property
    def early_end(self) -> EndReason:
        """Why only the report is worked on; false while the exploration goes on."""
        limit = self.limits.max_time_s
        if not self._early_end and limit and self.seconds_used > limit * EXPLORATION_TIME_SHARE:
            self._early_end = limit_reached(EndCause.TIME_LIMIT)
        return self._early_end

    @property
    def winding_down(self) -> str:
        """The same, in words; empty while the exploration goes on."""
        return self.early_end.words


def _less_the_report(limits: Limits, reserve: ReportReserve) -> tuple[int | None, int | None, float | None]:
    """The limits of the exploration: at least two steps are held back for the report, eight where there are enough."""
    steps = None
    if limits.max_steps is not None:
        share = round(limits.max_steps * (1 - EXPLORATION_SHARE))
        last = max(2, share, min(REPORT_STEPS, limits.max_steps // 4))
        steps = max(1, limits.max_steps - last)
    tokens, cost = limits.max_tokens, limits.max_cost_usd
    return (
        steps,
        None if tokens is None else int(tokens - held_back(tokens, reserve.tokens)),
        None if cost is None else cost - held_back(cost, reserve.cost_usd),
    )
