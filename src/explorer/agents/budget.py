"""The budget of a run: a tree of accounts, where an amount is reserved before a request and settled after it.

Reservations keep many helpers that ask at once within the limits: a request whose worst case does not fit is not sent
before others have given back what they did not need. Where the wished length of a reply does not fit, a shorter one
is reserved, as long as it is useful.

The exploration may not use what is held back for the report: what writing one can cost with the models in use. A fixed
share is too little where the limit is small or the writer's model is expensive: a twentieth of $0.50 does not pay for
one request of the strongest models.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from loguru import logger

from explorer.agents.user_stop import StopEvent
from explorer.schema.limits import Limits
from explorer.schema.reasons import EndCause, EndReason, limit_reached

MIN_OUTPUT_TOKENS = 1_024
"""The shortest limit of a reply that is worth a request."""
SHORT_REPLY_MARKS = (1_500, 3_000, 6_000)
"""Limits of a reply below which a writer gets a note on the limit: a reply that is cut is paid for and lost."""
LEAST_EXPLORING_TOKENS = SHORT_REPLY_MARKS[0]
"""Exploring is over when a reply of the orchestrator would get less: the report's share allows more."""
LEAST_WRITING_TOKENS = SHORT_REPLY_MARKS[-1]
"""Exploring is over when a reply of a writer would get less."""


WorstCost = Callable[[int, int], float]
"""USD of a request with so many input and output tokens at most; 0.0 when no price is known."""


def no_cost(_input_tokens: int, _output_tokens: int) -> float:
    """Return 0.0, whatever a request's tokens are: no money is counted for it."""
    return 0.0


def reply_lengths(wished: int) -> Iterator[int]:
    """Yield the lengths to try, longest first: the wished one, then by quarters and thirds down to the shortest.

    Args:
        wished: Tokens.
    """
    length = wished
    while length > MIN_OUTPUT_TOKENS:
        yield length
        if length * 3 // 4 > MIN_OUTPUT_TOKENS:
            yield length * 3 // 4
        length //= 2
    yield min(wished, MIN_OUTPUT_TOKENS)


LEAST_SHARE = 0.05
"""The least share of money and tokens that is held back: a long exploration has a long report."""
MOST_SHARE = 0.5
"""The largest share of money and tokens that is held back: without an exploration there is nothing to report."""
WRITING_TOKENS = (60_000, 8_000)
"""Input and output of all requests of a writer that reads the findings, writes the report, and corrects it once."""
LEADING_TOKENS = (30_000, 1_500)
"""Input and output of the orchestrator's requests that have the report written, look at it, and finish."""


@dataclass(frozen=True)
class ReportReserve:
    """The money and tokens that a report can use; 0 where they are not limited."""

    tokens: int = 0
    cost_usd: float = 0.0


def report_reserve(writers: Sequence[WorstCost], leads: WorstCost, *, counts_tokens: bool) -> ReportReserve:
    """Return what a report can use.

    Args:
        writers: USD of a request by its tokens, for each role that may write the report; the most expensive counts.
        leads: The same for the orchestrator, which writes itself where no other role does.
        counts_tokens: Whether tokens are limited.
    """
    writing = max(worst_cost(*WRITING_TOKENS) for worst_cost in writers or (leads,))
    tokens = sum(WRITING_TOKENS) + sum(LEADING_TOKENS)
    return ReportReserve(tokens if counts_tokens else 0, writing + leads(*LEADING_TOKENS))


def held_back(limit: float, needed: float) -> float:
    """Return how much of a limit the exploration may not use."""
    return min(limit * MOST_SHARE, max(limit * LEAST_SHARE, needed))


def enough(needed: float) -> float:
    """Return the smallest limit of which all that a report needs is held back."""
    return needed / MOST_SHARE


EXPLORATION_SHARE = 0.95
"""The exploration's share of the steps; the rest is held back for the report."""
EXPLORATION_TIME_SHARE = 0.85
"""The exploration's share of the time; writing a report takes a few turns."""
REPORT_STEPS = 8
"""Steps for a report: a writer reads, writes and looks once more, and the orchestrator reads and finishes."""
REPORT_CALLS = 12
"""Calls for a report: a writer reads a few files and writes, and the orchestrator looks and finishes."""

LIMITS = {
    "calls": EndCause.CALL_LIMIT,
    "steps": EndCause.STEP_LIMIT,
    "tokens": EndCause.TOKEN_LIMIT,
    "cost": EndCause.COST_LIMIT,
}
"""The cause of an end for each limit, by the name that an account has for the limit."""


@dataclass(frozen=True)
class Amount:
    """An amount of everything that an account limits."""

    steps: int = 0
    tokens: int = 0
    cost_usd: float = 0.0

    def __add__(self, other: "Amount") -> "Amount":
        """Return the sum."""
        return Amount(self.steps + other.steps, self.tokens + other.tokens, self.cost_usd + other.cost_usd)

    def __sub__(self, other: "Amount") -> "Amount":
        """Return the difference."""
        return Amount(self.steps - other.steps, self.tokens - other.tokens, self.cost_usd - other.cost_usd)


_NOTHING = Amount()


@dataclass(frozen=True)
class Reservation:
    """The amount that is reserved for one request."""

    amount: Amount
    max_output_tokens: int
    """The limit of the reply with which even the worst case fits."""
    has_waited: bool = False
    """Whether it had to wait for others' requests, so that the run may have changed meanwhile."""


@dataclass
class Queue:
    """The requests that wait for a reservation, in order; the first tries again when another is given back."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    given_back: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass
class Account:
    """A node of the tree. The sum of `used` (settled) and `reserved` never exceeds a limit."""

    name: str
    parent: "Account | None" = None
    max_steps: int | None = None
    max_tokens: int | None = None
    max_cost_usd: float | None = None
    used: Amount = field(default_factory=Amount)
    reserved: Amount = field(default_factory=Amount)
    queue: Queue = field(default_factory=Queue)
    """The queue of the whole tree."""

    def __post_init__(self) -> None:
        """Share the queue of the parent."""
        if self.parent is not None:
            self.queue = self.parent.queue

    async def reserve(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> Reservation | str:
        """Reserve as `try_reserve` does, but wait while only others' reservations are in the way.

        A reservation is the worst case; most of it comes back. So many requests at once under a small limit are sent
        one after another, rather than refused or cut short while most of the limit is still unspent.
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
        """Return whether the longest reply that fits with what is used does not fit with what is reserved, too."""
        for output_tokens in reply_lengths(max_output_tokens):
            need = Amount(1, input_tokens + output_tokens, worst_cost(input_tokens, output_tokens))
            exceeded = self.exceeded_limit(need)
            if not exceeded or not self.exceeded_limit(need, is_settled=True):
                return bool(exceeded)
        return False

    def try_reserve(self, input_tokens: int, max_output_tokens: int, worst_cost: WorstCost) -> Reservation | str:
        """Reserve the worst case of one request, with a shorter reply if only that fits.

        Args:
            input_tokens: An upper bound.
            max_output_tokens: The wished limit of the reply.
            worst_cost: USD for given tokens.

        Returns:
            The reservation, or the name of the limit that does not allow it: `steps`, `tokens` or `cost`.
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
        """Give a reservation back, and book what was used."""
        account: Account | None = self
        while account is not None:
            account.reserved -= reservation.amount
            account.used += used
            account = account.parent
        self.queue.given_back.set()

    def record_usage(self, used: Amount) -> None:
        """Book what an earlier session of the run used."""
        self.commit(Reservation(Amount(), 0), used)

    def exceeded_limit(self, need: Amount, *, is_settled: bool = False) -> str:
        """Return the name of the first limit, here or above, that `need` exceeds; empty when it fits.

        Args:
            need: The amount to add.
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
        """Return the largest used share of any limit of this account, 0.0 without limits."""
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
    """Counts tool calls before they are made; the last few are held back for the report."""

    limit: int | None
    made: int = 0

    def take(self, *, for_report: bool) -> bool:
        """Count a call, and return True, unless the limit does not allow it."""
        if self.limit is not None:
            held_back = 0 if for_report else min(REPORT_CALLS, self.limit // 4)
            if self.made >= self.limit - held_back:
                return False
        self.made += 1
        return True


class Budget:
    """The accounts of a run, its clock, and whether it is winding down."""

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
        """The seconds of this session of the run."""
        return self._clock() - self._started

    @property
    def seconds_left(self) -> float | None:
        """The seconds to the hard end; None without a limit."""
        limit = self.limits.max_time_s
        return None if limit is None else max(0.0, limit - self.seconds_used)

    @property
    def exploration_seconds_left(self) -> float | None:
        """The seconds until only the report is worked on; 0 from then on, None without a limit."""
        if self.winding_down:
            return 0.0
        limit = self.limits.max_time_s
        return None if limit is None else max(0.001, limit * EXPLORATION_TIME_SHARE - self.seconds_used)

    def share_used(self) -> float:
        """Return the largest used share of what the exploration may use, time included."""
        limit = self.limits.max_time_s
        time_share = self.seconds_used / limit if limit else 0.0
        call_share = self.calls.made / self.calls.limit if self.calls.limit else 0.0
        return max(time_share, call_share, self.exploration.share_used())

    def wind_down(self, reason: EndReason) -> None:
        """Allow only work on the report from now on. The first reason stays."""
        if not self._early_end:
            logger.warning("only the report is worked on from here: {}", reason.words)
        self._early_end = self._early_end or reason

    def reach(self, limit: str) -> EndReason:
        """Wind down because the limit of that name is reached; return the reason."""
        reason = limit_reached(LIMITS[limit])
        self.wind_down(reason)
        return reason

    def stop(self, reason: str) -> None:
        """Wind down because the user stops the run, and cut off requests and calls at work."""
        self.wind_down(EndReason(reason))
        self.stopping.ask()

    def withdraw(self, reason: str) -> None:
        """Take a `stop` back: the run's task is about to be cancelled, and what has not ended yet is not cut short."""
        self.stopping.withdraw()
        if self._early_end.words == reason:
            self._early_end = EndReason()

    @property
    def early_end(self) -> EndReason:
        """Why only the report is worked on; false during the exploration."""
        limit = self.limits.max_time_s
        if not self._early_end and limit and self.seconds_used > limit * EXPLORATION_TIME_SHARE:
            self._early_end = limit_reached(EndCause.TIME_LIMIT)
        return self._early_end

    @property
    def winding_down(self) -> str:
        """Why only the report is worked on, as text; empty during the exploration."""
        return self.early_end.words


def _less_the_report(limits: Limits, reserve: ReportReserve) -> tuple[int | None, int | None, float | None]:
    """Return the exploration's limits of steps, tokens and USD: the run's less what is held back for the report."""
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
