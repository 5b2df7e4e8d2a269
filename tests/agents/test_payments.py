"""What is booked for requests, by what came of them."""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from explorer.agents.budget import Account, Amount, Reservation
from explorer.agents.payments import OverBudgetError, PaidClient, Payment, Terms, counted
from explorer.journal.run_state import Unanswered
from explorer.llm.openai.reply import to_usage
from explorer.schema.errors import ModelError, ModelFault, PausedError
from explorer.schema.events import AnyEvent, RequestSent, TurnFailed
from explorer.schema.messages import Request, StopKind, Turn, Usage, UserText
from explorer.schema.shared_limits import RequestUse, SharedHold
from explorer.testing import says

INPUT, OUTPUT = 1_000, 2_000
REQUEST = Request(
    agent="a", role="r", model="m", system="", tools=(), history=(UserText(text="?"),), max_output_tokens=OUTPUT
)


def price(input_tokens: int, output_tokens: int) -> float:
    return input_tokens / 1_000 + output_tokens / 100


@dataclass
class Bank:
    """An account with a limit, and what was recorded."""

    account: Account
    events: list[AnyEvent] = field(default_factory=list[AnyEvent])

    async def record(self, event: AnyEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    @property
    def terms(self) -> Terms:
        """By what requests are paid here."""
        return Terms(self.account, price, self.record, request_bytes=2 * INPUT)

    def payment(self) -> Payment:
        """For one more request."""
        reservation = self.account.try_reserve(INPUT, OUTPUT, price)
        assert isinstance(reservation, Reservation)
        return Payment(self.terms, reservation, INPUT)


@dataclass
class Server:
    """Answers each attempt with the next of its answers."""

    answers: list[Turn | BaseException]

    async def generate(self, request: Request) -> Turn:
        """Give the next answer."""
        assert request.attempt is None
        answer = self.answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer


def bank(max_tokens: int = 100_000) -> Bank:
    return Bank(Account("run", max_tokens=max_tokens))


def broken(*, status: int = 0, is_unsent: bool = False) -> ModelError:
    error = ModelError(ModelFault.TRANSPORT, "broke off")
    error.status, error.is_unsent = status, is_unsent
    return error


async def ask(payment: Payment, server: Server) -> Turn:
    """As the loop asks: once, through a client that lets the request pay."""
    return await PaidClient(server).generate(replace(REQUEST, attempt=payment.attempt))


def with_usage(turn: Turn, usage: Usage) -> Turn:
    return turn.model_copy(update={"usage": usage, "cost_usd": 0.5})


WHOLE = Amount(0, INPUT + OUTPUT, price(INPUT, OUTPUT))


@pytest.mark.parametrize(
    ("error", "booked"),
    [
        (broken(), WHOLE),
        (broken(status=504), WHOLE),
        (broken(status=200), WHOLE),
        (broken(status=529), Amount()),
        (broken(status=401), Amount()),
        (broken(is_unsent=True), Amount()),
        (asyncio.CancelledError(), WHOLE),
    ],
    ids=["cut", "gateway-timeout", "error-in-stream", "overloaded", "refused", "no-connection", "cancelled"],
)
async def test_an_attempt_without_a_reply_is_booked_unless_nobody_bills_it(
    error: BaseException, booked: Amount
) -> None:
    """What was sent and broke off costs its reservation; what was refused or never sent costs nothing."""
    here = bank()
    payment = here.payment()
    try:
        with pytest.raises(type(error)):
            await ask(payment, Server([error]))
    finally:
        payment.close()
    assert (here.account.used, here.account.reserved) == (booked, Amount())
    assert [event.type for event in here.events] == ["request_sent"]


@dataclass
class SharedBook:
    """A limit that several runs share: what was asked of it, and what was booked."""

    refuses: bool = False
    asked: list[RequestUse] = field(default_factory=list[RequestUse])
    booked: list[RequestUse] = field(default_factory=list[RequestUse])

    @asynccontextmanager
    async def holding(self, most: RequestUse) -> AsyncGenerator[SharedHold]:
        """Hold the worst case."""
        self.asked.append(most)
        if self.refuses:
            raise PausedError("the limit is reached")
        hold = SharedHold()
        try:
            yield hold
        finally:
            self.booked.append(hold.used)


@pytest.mark.parametrize(
    ("answer", "booked"),
    [
        (broken(), WHOLE),
        (broken(status=529), Amount()),
        (asyncio.CancelledError(), WHOLE),
        (with_usage(says("Done."), Usage(input_tokens=900, output_tokens=10)), Amount(0, 910, 0.5)),
    ],
    ids=["cut", "overloaded", "cancelled", "reply"],
)
async def test_a_shared_limit_holds_the_worst_case_of_each_attempt_and_books_what_it_used(
    answer: Turn | BaseException, booked: Amount
) -> None:
    """Each attempt is a request, whatever came of it; one that may be billed costs all that was held for it."""
    here, book = bank(), SharedBook()
    payment = here.payment()
    try:
        await PaidClient(Server([answer]), book.holding).generate(replace(REQUEST, attempt=payment.attempt))
    except (ModelError, asyncio.CancelledError):
        assert not isinstance(answer, Turn)
    finally:
        payment.close()
    assert book.asked == [RequestUse(1, WHOLE.tokens, WHOLE.cost_usd)]
    assert book.booked == [RequestUse(1, booked.tokens, booked.cost_usd)]


async def test_nothing_is_sent_or_recorded_when_a_shared_limit_is_reached() -> None:
    """The run pauses: no request without an answer is on record, and nothing of its own limits is used."""
    here, server = bank(), Server([says("never")])
    payment = here.payment()
    try:
        with pytest.raises(PausedError):
            await PaidClient(server, SharedBook(refuses=True).holding).generate(
                replace(REQUEST, attempt=payment.attempt)
            )
    finally:
        payment.close()
    assert (here.events, len(server.answers)) == ([], 1)
    assert (here.account.used, here.account.reserved) == (Amount(), Amount())


async def test_each_attempt_that_was_sent_is_booked() -> None:
    """Two that broke off and one that brought a turn cost two reservations and the turn."""
    here = bank()
    payment = here.payment()
    turn = with_usage(says("Done."), Usage(input_tokens=900, output_tokens=10))
    server = Server([broken(), broken(), turn])
    for _ in range(2):
        with pytest.raises(ModelError):
            await ask(payment, server)
    assert await ask(payment, server) == turn
    payment.close()
    assert here.account.used == WHOLE + WHOLE + Amount(1, 910, 0.5)
    assert here.account.reserved == Amount()


async def test_no_attempt_is_sent_that_the_limit_has_no_room_for() -> None:
    """A request that broke off has used up its room: sent again it would overshoot."""
    here = bank(max_tokens=INPUT + OUTPUT + 500)
    payment = here.payment()
    server = Server([broken(), says("never asked for")])
    with pytest.raises(ModelError):
        await ask(payment, server)
    with pytest.raises(OverBudgetError):
        await ask(payment, server)
    payment.close()
    assert here.account.used == WHOLE
    assert len(server.answers) == 1


TEXT = "The quick brown fox jumps over the lazy dog. " * 100
HONEST: dict[str, Any] = {"prompt_tokens": 900, "completion_tokens": 1_200}


@pytest.mark.parametrize(
    "output",
    [
        {},
        {"prompt_tokens": 0, "completion_tokens": 0},
        {"prompt_tokens": -5_000_000, "completion_tokens": -5_000_000},
        {"prompt_tokens": 900, "completion_tokens": -7},
        {"prompt_tokens": 900, "completion_tokens": 3},
        {"prompt_tokens": 3, "completion_tokens": 1_200},
        {"prompt_tokens": math.nan, "completion_tokens": math.nan},
        {"prompt_tokens": math.inf, "completion_tokens": 1_200},
        {"prompt_tokens": 10**18, "completion_tokens": 1_200},
        {"prompt_tokens": 900, "completion_tokens": 10**18},
        {"prompt_tokens": "many", "completion_tokens": None},
    ],
    ids=str,
)
async def test_a_count_that_cannot_be_is_replaced_by_a_bound(output: dict[str, Any]) -> None:
    """Missing, zero, negative, too few, too many, no number: what is booked covers the request and fits its room."""
    here = bank()
    payment = here.payment()
    turn = await ask(payment, Server([with_usage(says(TEXT), to_usage(output))]))
    payment.close()
    assert turn.is_estimated
    assert 900 <= turn.usage.input_tokens <= INPUT
    assert turn.usage.output_tokens in {1_200, OUTPUT}
    assert turn.cost_usd == price(turn.usage.input_tokens, turn.usage.output_tokens)
    assert here.account.used == Amount(1, turn.usage.total_tokens, turn.cost_usd or 0.0)


async def test_reasoning_that_is_not_sent_is_booked_where_nobody_counts_it() -> None:
    """One word, or a call without words, costs the whole reply that was reserved: what was thought before is billed."""
    for turn in (says("CARRIED"), says("", ("list_files", {})), says("")):
        here = bank()
        payment = here.payment()
        booked = await ask(payment, Server([with_usage(turn, Usage())]))
        payment.close()
        assert (booked.usage.input_tokens, booked.usage.output_tokens, booked.is_estimated) == (INPUT, OUTPUT, True)


async def test_an_empty_reply_may_have_no_tokens() -> None:
    """Where the input is counted, a reply of nothing is believed to be nothing."""
    payment = bank().payment()
    shown = with_usage(says(""), Usage(input_tokens=900))
    assert await ask(payment, Server([shown])) is shown
    payment.close()


async def test_counts_are_held_against_the_whole_request() -> None:
    """A server that counts a hundred tokens of everything is not believed once the request is long."""
    here, shown = bank(), with_usage(says("Yes."), Usage(input_tokens=100, output_tokens=20))
    for size, is_estimated in ((12_800, False), (13_000, True)):
        reservation = here.account.try_reserve(INPUT, OUTPUT, price)
        assert isinstance(reservation, Reservation)
        payment = Payment(replace(here.terms, request_bytes=size), reservation, INPUT)
        assert (await ask(payment, Server([shown]))).is_estimated == is_estimated
        payment.close()


async def test_a_count_that_can_be_is_kept() -> None:
    """A believable count stays as the provider gave it, and so does its price."""
    here = bank()
    payment = here.payment()
    shown = with_usage(says(TEXT), to_usage(HONEST))
    assert await ask(payment, Server([shown])) is shown
    payment.close()
    assert here.account.used == Amount(1, 2_100, 0.5)


@given(counts=st.tuples(*[st.one_of(st.integers(), st.floats(), st.none(), st.text())] * 4))
def test_no_count_lowers_what_was_used(counts: tuple[object, ...]) -> None:
    """Whatever a server reports, a turn costs at least nothing and at most what a request can hold."""
    names = ("prompt_tokens", "completion_tokens")
    usage = to_usage(
        dict(zip(names, counts[:2], strict=True))
        | {"prompt_tokens_details": {"cached_tokens": counts[2], "cache_write_tokens": counts[3]}}
    )
    sent = RequestSent(agent="a", model="m", input_tokens=INPUT, output_tokens=OUTPUT)
    booked = counted(with_usage(says(TEXT), usage), sent, bank().terms).usage
    assert 0 < booked.input_tokens <= 10_000_000
    assert len(TEXT) / 8 <= booked.output_tokens + 1 <= 10_000_001


def sent(agent: str, tokens: int) -> RequestSent:
    return RequestSent(agent=agent, model="m", input_tokens=tokens, output_tokens=0, cost_usd=float(tokens))


def failed(agent: str, *, is_billed: bool) -> TurnFailed:
    return TurnFailed(agent=agent, fault="transport", message="", attempt=1, waits_s=None, is_billed=is_billed)


@pytest.mark.parametrize(
    ("events", "settled", "at_most"),
    [
        (lambda: [sent("a", 1)], 0, 1),
        (lambda: [sent("a", 1), failed("a", is_billed=True)], 1, 1),
        (lambda: [sent("a", 1), failed("a", is_billed=False)], 0, 0),
        (lambda: [sent("a", 1), sent("b", 2), sent("a", 4)], 1, 7),
        (lambda: [sent("judge", 1), sent("judge", 2)], 0, 3),
    ],
    ids=["under-way", "billed", "refused", "asked-again", "judge"],
)
def test_requests_without_a_turn_count_as_they_were_reserved(
    events: Callable[[], list[AnyEvent]], settled: int, at_most: int
) -> None:
    """Read off the records: known to be lost, and with what is under way, which a killed process leaves behind."""
    unanswered = Unanswered()
    for event in events():
        unanswered.apply(event)
    assert (unanswered.usage.total_tokens, unanswered.usage_at_most.total_tokens) == (settled, at_most)
    assert (unanswered.cost_usd, unanswered.cost_at_most) == (settled, at_most)


@pytest.mark.parametrize("cost", [-0.01, float("nan"), float("inf")])
def test_no_reply_lowers_what_was_spent(cost: float) -> None:
    """A program's own client says what its replies cost; a cost below zero would make room under a limit."""
    with pytest.raises(ValidationError, match="cost_usd"):
        Turn(provider="own", model="own", blocks=(), stop=StopKind.END, cost_usd=cost)
