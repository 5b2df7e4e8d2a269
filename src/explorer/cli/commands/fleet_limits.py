"""The command `fleet limit`: limits that all runs of a fleet share, and how fast requests with a key are sent."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from explorer.cli.commands.fleet import open_queue, say_unless_quiet
from explorer.cli.screens.output import emit_json, emit_page
from explorer.cli.settings.configuration import changes_runs, configured
from explorer.cli.settings.fleet_options import LIMIT, LimitOptions
from explorer.run.settings_parts import model_setup
from explorer.schema.errors import ConfigError
from explorer.schema.setting import amount_usd, or_none, whole
from explorer.schema.settings import Settings

if TYPE_CHECKING:
    from explorer.fleet.limits import LimitName, SharedLimitBook

RATE = re.compile(r"([0-9]+)/(s|min)")
PERIODS_S = {"s": 1.0, "min": 60.0}
MAX_SHARE = 1000
PERIODS = ("day", "month", "total")
KEY_ID = re.compile(r"[a-z0-9._-]+-[0-9a-f]{10}")


def limit(*, options: LimitOptions = LIMIT) -> int:
    """Limit what all runs of the fleet together spend; without an amount, list the limits and what is used of them.

    A limit counts all requests to models, or those of one tenant, or those with one provider key. `none` removes it.

    Example: `explorer fleet limit --usd 100 --per day`

    Example: `explorer fleet limit --tenant research --usd 500 --per month`

    Example: `explorer fleet limit --key anthropic --rate 50/min`

    Example: `explorer fleet limit --tenant research --share 3`
    """
    from explorer.cli.screens.shared_limits import rate_words, share_words
    from explorer.fleet.limits import LimitName, SharedLimitBook, Unit, put_share, shares_of

    settings = configured(options, changes_runs).settings
    amounts = _amounts(options)
    rate = None if options.rate is None else _rate(options.rate)
    _check(options)
    with open_queue(settings) as queue:
        book = SharedLimitBook(queue.database)
        key_id = _key_id(options.key, settings, queue.database.salt) if options.key else ""
        scope = "key" if options.key else "fleet" if options.tenant is None else "tenant"
        for unit, amount in amounts.items():
            name = LimitName(scope, key_id or options.tenant or "", Unit(unit), options.per)
            say_unless_quiet(options, _changed(book, name, amount))
        if rate is not None:
            book.put_rate(key_id, *rate)
            say_unless_quiet(options, f"{key_id}: {rate_words(*rate)}")
        if options.share is not None and options.tenant is not None:
            put_share(queue.database, options.tenant, options.share)
            say_unless_quiet(options, share_words(options.tenant, options.share))
        if not amounts and rate is None and options.share is None:
            _show(book, shares_of(queue.database), options)
    return 0


def _check(options: LimitOptions) -> None:
    from explorer.fleet.submission import check_name

    if options.per not in PERIODS:
        raise ConfigError(f"--per {options.per[:40]!r} is not allowed", hint=f"give one of {', '.join(PERIODS)}")
    if options.key and options.tenant is not None:
        raise ConfigError("a limit is of a tenant or of a key", hint="leave one out: --tenant or --key")
    if options.rate is not None and not options.key:
        raise ConfigError("a rate is for one provider key", hint="name it: --key VENDOR, for example --key anthropic")

    check_name("tenant", options.tenant or "")
    if options.share is not None and options.tenant is None:
        raise ConfigError("a share is of one tenant", hint="name it: --tenant NAME")
    if options.share is not None and not 1 <= options.share <= MAX_SHARE:
        raise ConfigError(f"--share {options.share} is not allowed", hint=f"give a number from 1 to {MAX_SHARE}")


def _amounts(options: LimitOptions) -> dict[str, float | None]:
    """Return the amounts that are set, by unit; None: the limit is to be removed."""
    given: dict[str, tuple[str | None, Callable[[str], float]]] = {
        "usd": (options.usd, amount_usd),
        "tokens": (options.tokens, whole),
        "requests": (options.requests, whole),
    }
    amounts: dict[str, float | None] = {}
    for unit, (raw, parse) in given.items():
        if raw is not None:
            try:
                amounts[unit] = or_none(parse)(raw)
            except ValueError as error:
                hint = "give an amount, such as 100, or none to remove the limit"
                raise ConfigError(f"--{unit} {raw[:40]!r} is not allowed", hint=hint) from error
    return amounts


def _rate(raw: str) -> tuple[int | None, float | None]:
    if raw.lower() == "none":
        return None, None
    found = RATE.fullmatch(raw.replace(" ", ""))
    if found is None:
        raise ConfigError(
            f"--rate {raw[:40]!r} is not allowed", hint="for example --rate 5/s or --rate 300/min, or none"
        )
    return int(found[1]), PERIODS_S[found[2]]


def _key_id(given: str, settings: Settings, salt: str) -> str:
    """Return the id of a key: of the one that this machine has for a vendor, or as it was given."""
    from explorer.fleet.rates import KeyIds

    if KEY_ID.fullmatch(given):
        return given
    setup = model_setup(settings)
    vendor = setup.vendor_of(given)
    if vendor is None:
        known = ", ".join(sorted(setup.vendors))
        raise ConfigError(f"no vendor of models is called {given[:40]!r}", hint=f"one of {known}, or a key's id")
    if not vendor.is_ready:
        variable = vendor.vendor.variable(vendor.vendor.needs)
        raise ConfigError(f"this machine has no key for {given}", hint=f"set {variable}, or give the key's id")
    return KeyIds(salt, setup).id_of(given)


def _changed(book: "SharedLimitBook", name: "LimitName", amount: float | None) -> str:
    """Set or remove a limit, and return what was done."""
    from explorer.fleet.limits import shown
    from explorer.fleet.limits import whole as stored

    if amount is not None:
        book.put(name, amount)
        return f"{shown(name.unit, stored(name.unit, amount))} {name.words}"
    if book.remove(name):
        return f"removed: {name.unit} {name.words}"
    raise ConfigError(f"there is no limit of {name.unit} {name.words}", hint="list them: explorer fleet limit")


def _show(book: "SharedLimitBook", shares: Mapping[str, int], options: LimitOptions) -> None:
    from explorer.cli.screens.shared_limits import limits_fields, limits_page, share_words

    uses, rates = book.uses(), book.rates()
    if options.output_format != "text":
        emit_json(limits_fields(uses, rates) | {"shares": shares})
    else:
        pages = [limits_page(uses, rates), *(share_words(tenant, share) for tenant, share in shares.items())]
        emit_page("\n".join(filter(None, pages)) or "no limits; set one: explorer fleet limit --usd 100 --per day")
