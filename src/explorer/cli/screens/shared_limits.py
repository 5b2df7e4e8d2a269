"""The limits that a fleet shares, as people and programs see them."""

from collections.abc import Sequence
from dataclasses import asdict

from explorer.cli.screens.output import aligned
from explorer.fleet.limits import KeyRate, LimitUse, amount_of, shown
from explorer.observe.formatting import duration
from explorer.server.fleet_status import FleetKey, FleetLimit
from explorer.text.sanitize import single_line


def rate_words(requests: int | None, period_s: float | None) -> str:
    """Return how fast requests with a key are sent."""
    return f"{requests} requests {'a second' if period_s == 1.0 else 'a minute'}" if requests else "no rate"


def limit_words(use: LimitUse) -> str:
    """Return a limit: how much, in which time, for whom."""
    return single_line(f"{shown(use.name.unit, use.amount)} {use.name.words}")


def share_words(tenant: str, share: int) -> str:
    """Return how much of the workers a tenant gets."""
    whose = f"tenant {tenant}" if tenant else "runs without a tenant"
    much = "as much" if share == 1 else f"{share} times as much"
    return single_line(f"{whose}: {much} of the workers as others")


def limits_fields(uses: Sequence[LimitUse], rates: Sequence[KeyRate]) -> dict[str, object]:
    """Return limits and rates for programs; amounts of money are in US dollars."""
    limits = [asdict(one) | {"window": use.window} for one, use in zip(shown_limits(uses), uses, strict=True)]
    return {"limits": limits, "keys": [asdict(one) for one in shown_keys(rates)]}


def shown_limits(uses: Sequence[LimitUse]) -> list[FleetLimit]:
    """Return limits as the page and programs have them; amounts of money are in US dollars."""
    return [
        FleetLimit(
            limit_words(use),
            **use.name._asdict(),
            amount=amount_of(use.name.unit, use.amount),
            spent=amount_of(use.name.unit, use.spent),
            reserved=amount_of(use.name.unit, use.held),
            is_reached=use.is_reached,
        )
        for use in uses
    ]


def shown_keys(rates: Sequence[KeyRate]) -> list[FleetKey]:
    """Return the keys that have a rate or are throttled, as the page and programs have them."""
    return [FleetKey(one.key_id, rate_words(one.requests, one.period_s), one.closed_s) for one in rates]


def limits_page(uses: Sequence[LimitUse], rates: Sequence[KeyRate]) -> str:
    """Return limits and rates as a page; empty when there are none."""
    rows = [
        (
            limit_words(one),
            shown(one.name.unit, one.spent),
            shown(one.name.unit, one.held),
            "reached: runs wait" if one.is_reached else "open",
        )
        for one in uses
    ]
    keys = [
        (
            single_line(one.key_id),
            rate_words(one.requests, one.period_s),
            f"throttled for {duration(one.closed_s)}: {single_line(one.closed_why)}" if one.closed_s else "open",
        )
        for one in rates
    ]
    limits = [aligned(("LIMIT", "SPENT", "RESERVED", "STATE"), rows)] if rows else []
    return "\n\n".join([*limits, *([aligned(("KEY", "RATE", "STATE"), keys)] if keys else [])])
