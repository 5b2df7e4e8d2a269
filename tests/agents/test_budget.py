from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine_stage import started
from explorer.agents.budget import (
    MIN_OUTPUT_TOKENS,
    Account,
    Amount,
    Budget,
    Reservation,
    reply_lengths,
    report_reserve,
)
from explorer.agents.policies import budget_note
from explorer.journal.agent_state import AgentState
from explorer.schema.reasons import EndCause, EndReason, limit_reached
from explorer.schema.settings import Limits
from thoroughness import examples


@dataclass
class Clock:
    """A clock that moves when told."""

    now: float = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


def price(per_token: float) -> Callable[[int, int], float]:
    """The worst cost at a price per token, whichever way it goes."""
    return lambda input_tokens, output_tokens: (input_tokens + output_tokens) * per_token


def free(_input: int, _output: int) -> float:
    """The worst cost of a model without a price."""
    return 0.0


def dear(input_tokens: int, output_tokens: int) -> float:
    """The worst cost of a strong model: $5 and $20 per million tokens."""
    return (input_tokens * 5 + output_tokens * 20) / 1e6


def fits(account: Account) -> bool:
    """Whether used and held together stay within every limit, up to what floats lose."""
    total = account.used + account.reserved
    return (
        (account.max_steps is None or total.steps <= account.max_steps)
        and (account.max_tokens is None or total.tokens <= account.max_tokens)
        and (account.max_cost_usd is None or total.cost_usd <= account.max_cost_usd + 1e-9)
    )


limits = st.builds(
    Limits,
    max_steps=st.none() | st.integers(1, 60),
    max_tokens=st.none() | st.integers(1, 300_000),
    max_cost_usd=st.none() | st.floats(0.001, 5.0),
)
asks = st.tuples(st.integers(0, 40_000), st.integers(1_024, 32_000), st.floats(0, 1), st.integers(0, 30), st.booleans())


@settings(max_examples=examples(200), deadline=None)
@given(limits, st.lists(asks, max_size=60), st.sampled_from([0.0, 1e-6, 15e-6]))
def test_many_at_once_never_pass_a_limit(
    given_limits: Limits, wishes: list[tuple[int, int, float, int, bool]], per_token: float
) -> None:
    """However requests overlap, and whichever account pays: used and held together stay within every limit."""
    budget = Budget(given_limits, Clock())
    open_holds: list[tuple[Account, Reservation]] = []
    for input_tokens, output_tokens, used_share, settle_index, is_report in wishes:
        account = budget.root if is_report else budget.exploration
        reservation = account.try_reserve(input_tokens, output_tokens, price(per_token))
        if isinstance(reservation, Reservation):
            assert MIN_OUTPUT_TOKENS <= reservation.max_output_tokens <= output_tokens
            open_holds.append((account, reservation))
        assert fits(budget.root)
        assert fits(budget.exploration)
        if open_holds and settle_index % 3 == 0:
            owner, settled = open_holds.pop(settle_index % len(open_holds))
            used = Amount(1, int(settled.amount.tokens * used_share), settled.amount.cost_usd * used_share)
            owner.commit(settled, used)
    for owner, reservation in open_holds:
        owner.commit(reservation, Amount(steps=1))
    assert fits(budget.root)
    assert budget.root.reserved.steps == budget.exploration.reserved.steps == 0
    assert budget.root.reserved.tokens == budget.exploration.reserved.tokens == 0
    assert abs(budget.root.reserved.cost_usd) < 1e-9


def test_checking_without_reserving_overshoots() -> None:
    """The control: sixteen agents that only look before they ask take sixteen of nine."""
    account = Account("run", max_steps=9)
    allowed = sum(not account.exceeded_limit(Amount(steps=1)) for _ in range(16))
    assert allowed == 16
    reserved = [account.try_reserve(0, 1_024, free) for _ in range(16)]
    assert sum(isinstance(reservation, Reservation) for reservation in reserved) == 9
    assert reserved[9:] == ["steps"] * 7


def test_a_reply_is_shortened_until_it_fits() -> None:
    """By quarters and thirds, but never too short to be of use; the limit that lacks room is named."""
    account = Account("run", max_tokens=10_000)
    reservation = account.try_reserve(4_000, 16_000, free)
    assert isinstance(reservation, Reservation)
    assert (reservation.max_output_tokens, account.reserved.tokens) == (6_000, 10_000)
    assert account.try_reserve(0, 16_000, free) == "tokens"
    dear = Account("run", max_cost_usd=0.10)
    reservation = dear.try_reserve(1_000, 16_000, price(10e-6))
    assert isinstance(reservation, Reservation)
    assert (reservation.max_output_tokens, dear.reserved.cost_usd) == (8_000, pytest.approx(0.09))
    assert dear.try_reserve(1_000, 16_000, price(10e-6)) == "cost"
    assert Account("run", max_steps=0).try_reserve(0, 1_024, free) == "steps"


def test_settling_books_what_was_used_all_the_way_up() -> None:
    """What a reply did not use is free again, for siblings too."""
    root = Account("run", max_tokens=10_000)
    child = Account("exploration", root, max_tokens=9_000)
    reservation = child.try_reserve(1_000, 8_000, free)
    assert isinstance(reservation, Reservation)
    assert child.try_reserve(0, 1_024, free) == "tokens"
    child.commit(reservation, Amount(1, 1_200, 0.5))
    assert (root.used, child.used, root.reserved) == (Amount(1, 1_200, 0.5), Amount(1, 1_200, 0.5), Amount())
    assert isinstance(child.try_reserve(0, 7_800, free), Reservation)


@pytest.mark.parametrize("max_steps", range(1, 70))
def test_steps_are_held_back_for_the_report(max_steps: int) -> None:
    """However few there are, the exploration gets one; and from three on, two are the report's alone."""
    budget = Budget(Limits(max_steps=max_steps), Clock())
    explored = 0
    while isinstance(budget.exploration.try_reserve(0, 1_024, free), Reservation):
        explored += 1
    assert explored >= 1
    left = 0
    while isinstance(budget.root.try_reserve(0, 1_024, free), Reservation):
        left += 1
    assert explored + left == max_steps
    assert left >= min(2, max_steps - 1)


@pytest.mark.parametrize(
    ("max_usd", "explored_usd"), [(0.10, 0.05), (0.50, 0.25), (1.00, 0.50), (2.00, 1.36), (10.0, 9.36), (100.0, 95.0)]
)
def test_what_a_report_can_cost_is_held_back(max_usd: float, explored_usd: float) -> None:
    """What writing it takes at the dearest writer's price, at most half of the limit and at least a twentieth."""
    reserve = report_reserve([price(1e-7), dear], dear, counts_tokens=True)
    budget = Budget(Limits(max_tokens=1_000_000, max_cost_usd=max_usd), Clock(), reserve)
    assert budget.exploration.max_cost_usd == pytest.approx(explored_usd)
    assert budget.exploration.max_tokens == 1_000_000 - reserve.tokens
    assert budget.exploration.exceeded_limit(Amount(1, 960_000)) == "tokens"
    assert budget.root.exceeded_limit(Amount(1, 960_000)) == ""


def test_without_prices_a_twentieth_is_held_back() -> None:
    """Of tokens and of money."""
    budget = Budget(Limits(max_tokens=1_000_000, max_cost_usd=2.0), Clock())
    assert (budget.exploration.max_tokens, budget.exploration.max_cost_usd) == (950_000, pytest.approx(1.9))


@given(st.integers(1, 200_000))
def test_the_lengths_of_replies_fall_to_the_shortest_of_use(wished: int) -> None:
    """From the wished one, none less than two thirds of the one before but the last."""
    lengths = list(reply_lengths(wished))
    assert lengths[0] == wished
    assert lengths[-1] == min(wished, MIN_OUTPUT_TOKENS)
    pairs = list(pairwise(lengths))
    assert all(shorter < longer for longer, shorter in pairs)
    assert all(shorter >= longer * 0.66 for longer, shorter in pairs)


def test_an_earlier_life_is_booked() -> None:
    """A resumed run goes on with the room that is left; used up is used up."""
    budget = Budget(Limits(max_steps=10, max_tokens=50_000), Clock())
    budget.exploration.record_usage(Amount(6, 40_000, 0.3))
    assert budget.share_used() == pytest.approx(40_000 / 47_500)
    assert budget.exploration.exceeded_limit(Amount(steps=3)) == "steps"
    assert budget.exploration.exceeded_limit(Amount(steps=2)) == ""
    assert budget.root.used == Amount(6, 40_000, 0.3)


def test_without_limits_there_is_always_room() -> None:
    """No limit, no share, no end."""
    budget = Budget(Limits(max_steps=None, max_time_s=None), Clock())
    for _ in range(100):
        assert isinstance(budget.exploration.try_reserve(10**9, 10**6, price(1.0)), Reservation)
    assert (budget.share_used(), budget.seconds_left, budget.winding_down) == (0.0, None, "")


def test_time_winds_down_before_it_is_over() -> None:
    """At 85 % of the time only the report is worked on; what is left is told until nothing is left."""
    clock = Clock(100.0)
    budget = Budget(Limits(max_time_s=1_000), clock)
    clock.now = 900.0
    assert (budget.seconds_used, budget.seconds_left, budget.winding_down) == (800.0, 200.0, "")
    clock.now = 951.0
    assert budget.winding_down == "time limit"
    clock.now = 2_000.0
    assert budget.seconds_left == 0.0


def test_the_first_reason_to_wind_down_stays() -> None:
    """What comes later does not hide why it began, not even a clock set back."""
    clock = Clock()
    budget = Budget(Limits(max_time_s=100), clock)
    budget.wind_down(EndReason("stopped by you"))
    budget.wind_down(limit_reached(EndCause.COST_LIMIT))
    clock.now = 99.0
    assert budget.winding_down == "stopped by you"
    later = Budget(Limits(max_time_s=100), clock)
    clock.now = 190.0
    assert later.winding_down == "time limit"
    clock.now = 99.0
    assert later.winding_down == "time limit"


def note_at(share: float, *given_notes: str, winding_down: str = "") -> str:
    """The kind of note the orchestrator gets when so much is used up."""
    clock = Clock()
    budget = Budget(Limits(max_time_s=1_000), clock)
    clock.now = share * 1_000
    if winding_down:
        budget.wind_down(EndReason(winding_down))
    state = AgentState("orchestrator")
    state.apply(started())
    state.notes.update(dict.fromkeys(given_notes, 1))
    note = budget_note(state, budget)
    return note.reason if note is not None else ""


def test_notes_at_the_marks() -> None:
    """One at 70 %, one at 85 %, each once, the later one alone when both are passed; then that only writing is left."""
    assert note_at(0.69) == ""
    assert note_at(0.70) == "budget_70"
    assert note_at(0.80, "budget_70") == ""
    assert note_at(0.85) == "budget_85"
    assert note_at(0.85, "budget_70") == "budget_85"
    assert note_at(0.85, "budget_85") == ""
    assert note_at(0.86) == "winding_down"
    assert note_at(0.86, "winding_down") == ""
    assert note_at(0.10, winding_down="stopped by you") == "winding_down"


def test_tool_calls_are_counted_before_they_are_made() -> None:
    """The last few are the report's; beyond the limit there is none, however many ask at once."""
    budget = Budget(Limits(max_tool_calls=20), Clock())
    assert [budget.calls.take(for_report=False) for _ in range(16)] == [True] * 15 + [False]
    assert budget.share_used() == pytest.approx(15 / 20)
    assert [budget.calls.take(for_report=True) for _ in range(6)] == [True] * 5 + [False]
    assert budget.calls.made == 20
    assert all(Budget(Limits(), Clock()).calls.take(for_report=False) for _ in range(1000))
