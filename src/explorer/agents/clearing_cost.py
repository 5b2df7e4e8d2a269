"""The cost model of clearing: whether leaving old results out of a conversation saves money worth the loss.

A provider reads the beginning of a request from its cache at a tenth of the price. So old results are cheap to keep,
and clearing them has a price of its own: everything after the first cleared result is written to the cache again. And
what is cleared may be read again, in a further turn. All prices are the model's own, by the length of the request.

    kept     = turns x cost(request, all read from the cache)
    cleared  = turns x cost(request less what stays cleared, all read from the cache)
             + once    cost of writing what comes after the first cleared result
             + once    a turn that brings READ_AGAIN of the cleared results back
    saved    = kept - cleared

Turns to come are not known. An agent that has taken so many turns takes about as many again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from explorer.schema.messages import Usage

UsageCost = Callable[[Usage], float]
"""USD of a request with that usage."""

READ_AGAIN = 0.25
"""The share of cleared results that is read again."""
MATERIAL_USD = 0.25
"""The least saving, in USD, for which results are cleared that would still fit."""
MATERIAL_SHARE = 1 / 4
"""The least saving, as a share of what the turns to come cost without it."""


@dataclass(frozen=True)
class ClearingPlan:
    """What clearing would change of a conversation, in tokens."""

    tokens: int
    """The next request."""
    before: int
    """Its part before the first cleared result, which stays in the cache."""
    freed: int
    """What clearing leaves out."""
    turns: int
    """Turns to come."""


def saved_usd(plan: ClearingPlan, cost: UsageCost) -> float:
    """Return the USD that clearing saves over the turns to come; negative when it costs more."""
    short = max(0, plan.tokens - plan.freed)
    again = round(plan.freed * READ_AGAIN)
    carried = plan.turns * (_cached(plan.tokens, cost) - _cached(short + again, cost))
    return carried - _rewriting(plan, short, cost) - cost(_usage(short + again, short))


def is_material(plan: ClearingPlan, cost: UsageCost) -> bool:
    """Return whether clearing saves enough: in USD, and of what the turns to come cost."""
    at_most = plan.turns * _cached(plan.tokens, cost)
    least = max(MATERIAL_USD, MATERIAL_SHARE * at_most)
    return at_most > least and saved_usd(plan, cost) >= least


def _rewriting(plan: ClearingPlan, short: int, cost: UsageCost) -> float:
    """Return the USD of writing to the cache again what comes after the first cleared result."""
    return cost(_usage(short, min(plan.before, short))) - _cached(short, cost)


def _cached(tokens: int, cost: UsageCost) -> float:
    return cost(_usage(tokens, tokens))


def _usage(tokens: int, read: int) -> Usage:
    """Return the usage of a request whose beginning is read from the cache, and whose rest is written to it."""
    return Usage(input_tokens=tokens, cache_read_tokens=read, cache_write_tokens=tokens - read)
