"""Payments: each attempt at a request has a reservation, which is settled by what the attempt used.

A provider bills a request whether or not its reply arrives. So an attempt that broke off costs its whole reservation.
A reply whose count of tokens is not plausible costs what was reserved in place of the count: reasoning is billed and
need not be sent, so the reply's own length is no measure.
"""

from dataclasses import dataclass, replace

from explorer.agents.budget import Account, Amount, Reservation, WorstCost
from explorer.schema.errors import ModelError
from explorer.schema.events import Append, RequestSent
from explorer.schema.messages import LLMClient, Request, Turn, Usage
from explorer.schema.shared_limits import Holding, RequestUse, SharedHold, hold_nothing

BYTES_PER_TOKEN = 2
"""Fewer than any tokenizer has for the program's own words, so that it gives an upper bound of their tokens."""
MOST_BYTES_PER_TOKEN = 128
"""More than any tokenizer has for prose, so that it gives a lower bound of tokens."""
MOST_CHARS_PER_TOKEN = 8
"""More than any tokenizer has for text in which runs of blanks count as one character."""
MOST_TOKENS = 10_000_000
"""An upper bound for any request."""


class OverBudgetError(Exception):
    """Raised when an attempt has used up its reservation and the limits do not allow another one now."""


@dataclass(frozen=True)
class Terms:
    """The account that pays an agent's requests, and what their price depends on."""

    account: Account
    worst_cost: WorstCost
    record: Append
    window_tokens: int | None = None
    """The model's context window; None when it is not known."""
    request_bytes: int = 0
    """The approximate size of the whole request, earlier messages included."""


@dataclass(frozen=True)
class PaidClient:
    """A client between the retries and an adapter; each attempt at a request is paid for."""

    inner: LLMClient
    holding: Holding = hold_nothing
    """Holds the worst case of each attempt in the limits that the run shares with others."""

    async def generate(self, request: Request) -> Turn:
        """Send a request once.

        Raises:
            ModelError: No turn came.
            OverBudgetError: A further attempt cannot be paid now.
            PausedError: A limit that the run shares is reached.
        """
        if request.attempt is None:
            return await self.inner.generate(request)
        return await request.attempt(self.inner, request, self.holding)


class Payment:
    """Pays for one request, however often it is sent. The caller has to `close` it."""

    def __init__(self, terms: Terms, reservation: Reservation, input_tokens: int) -> None:
        self._terms = terms
        self._hold: Reservation | None = reservation
        self._input_tokens = input_tokens
        self._output_tokens = reservation.max_output_tokens
        self._is_sent = False
        self.lost = Amount()
        """The sum of what attempts that broke off cost."""

    async def attempt(self, client: LLMClient, request: Request, holding: Holding = hold_nothing) -> Turn:
        """Send the request once, and book what it used.

        Raises:
            ModelError: No turn came.
            OverBudgetError: It was sent before, and the limits do not allow another attempt now.
            PausedError: A limit that the run shares is reached.
        """
        reservation = self._hold = self._hold or self._held_again()
        amount = reservation.amount
        async with holding(RequestUse(1, amount.tokens, amount.cost_usd)) as shared:
            return await self._send(client, request, reservation, shared)

    async def _send(self, client: LLMClient, request: Request, reservation: Reservation, shared: SharedHold) -> Turn:
        amount = reservation.amount
        sent = RequestSent(
            agent=request.agent,
            model=request.model,
            input_tokens=self._input_tokens,
            output_tokens=reservation.max_output_tokens,
            cost_usd=amount.cost_usd,
        )
        await self._terms.record(sent)
        self._is_sent = True
        # All of it, unless a reply or a refusal says otherwise: a provider bills what was cut off.
        shared.used = RequestUse(1, amount.tokens, amount.cost_usd)
        try:
            turn = await client.generate(
                replace(request, max_output_tokens=reservation.max_output_tokens, attempt=None)
            )
        except ModelError as error:
            self._is_sent = False
            if error.is_billed:
                self._lose(reservation)
            else:
                shared.used = RequestUse(1)
            raise
        turn = counted(turn, sent, self._terms)
        shared.used = RequestUse(1, turn.usage.total_tokens, turn.cost_usd or 0.0)
        self.take(turn)
        return turn

    def take(self, turn: Turn) -> None:
        """Book a turn, unless its attempt has booked it."""
        if self._hold is not None:
            self._settle(self._hold, Amount(1, turn.usage.total_tokens, turn.cost_usd or 0.0))

    def close(self) -> None:
        """Give back what is still reserved; the reservation of a request that was sent is booked as used."""
        if self._hold is not None and self._is_sent:
            self._lose(self._hold)
        elif self._hold is not None:
            self._settle(self._hold, Amount())

    def _held_again(self) -> Reservation:
        reservation = self._terms.account.try_reserve(self._input_tokens, self._output_tokens, self._terms.worst_cost)
        if isinstance(reservation, str):
            raise OverBudgetError(reservation)
        return reservation

    def _lose(self, reservation: Reservation) -> None:
        lost = replace(reservation.amount, steps=0)
        self.lost += lost
        self._settle(reservation, lost)

    def _settle(self, reservation: Reservation, used: Amount) -> None:
        self._hold, self._is_sent = None, False
        self._terms.account.commit(reservation, used)


def counted(turn: Turn, sent: RequestSent, terms: Terms) -> Turn:
    """Return a turn with plausible usage: a count that is not plausible is replaced by what was reserved."""
    usage = turn.usage
    most = min(MOST_TOKENS, max(terms.window_tokens or MOST_TOKENS, sent.input_tokens + sent.output_tokens))
    has_input = 0 < usage.input_tokens <= most and usage.input_tokens >= terms.request_bytes // MOST_BYTES_PER_TOKEN
    is_empty = has_input and not turn.text and not turn.calls
    has_output = 0 < usage.output_tokens <= most and not _is_too_few(usage.output_tokens, turn)
    has_output = has_output or (usage.output_tokens == 0 and is_empty)
    if has_input and has_output:
        return turn
    bound = Usage(
        input_tokens=usage.input_tokens if has_input else sent.input_tokens,
        output_tokens=usage.output_tokens if has_output else sent.output_tokens,
        cache_read_tokens=usage.cache_read_tokens if has_input else 0,
        cache_write_tokens=usage.cache_write_tokens if has_input else 0,
    )
    cost = None if turn.cost_usd is None else terms.worst_cost(bound.input_tokens, bound.output_tokens)
    return turn.model_copy(update={"usage": bound, "cost_usd": cost, "is_estimated": True})


def _is_too_few(output_tokens: int, turn: Turn) -> bool:
    """Return whether a turn has more text than so many tokens can express."""
    texts = [turn.text, *(value for call in turn.calls for value in (call.arguments or {}).values())]
    parts = [text for text in texts if isinstance(text, str)]
    most = output_tokens * MOST_CHARS_PER_TOKEN
    return sum(len(text) for text in parts) > most and sum(len(" ".join(text.split())) for text in parts) > most
