"""How often a topic is explored, as cron and as systemd write it."""

import re
from dataclasses import dataclass

from explorer.schema.errors import ConfigError

HOURS = re.compile(r"(\d{1,2})h")
TIME = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")
STEPS = frozenset({1, 2, 3, 4, 6, 8, 12})
"""Hours that divide a day: others would come at another time each day."""
DAYS = {
    "day": ("* * *", "*-*-*"),
    "weekdays": ("* * 1-5", "Mon..Fri *-*-*"),
    "week": ("* * 1", "Mon *-*-*"),
    "month": ("1 * *", "*-*-01"),
}
"""The days of each word: as cron's last three fields, and as systemd's date."""
WORDS = {"hour": "1h", "1d": "day", "24h": "day", "daily": "day", "weekly": "week", "7d": "week", "monthly": "month"}
DEFAULT_TIME = "07:00"


@dataclass(frozen=True)
class Rhythm:
    """Times of this machine's clock."""

    cron: str
    """The five fields."""
    calendar: str
    """The value of `OnCalendar`."""


def rhythm(every: str, at: str = DEFAULT_TIME) -> Rhythm:
    """Return when a topic is explored.

    Args:
        every: `hour`, `6h`, `day`, `weekdays`, `week` (on Mondays) or `month` (on its first day).
        at: The time of day; with hours, one of the times.

    Raises:
        ConfigError: One of them is not understood.
    """
    time = TIME.fullmatch(at)
    if time is None:
        raise ConfigError(f"flag --at: {at[:40]!r} is not allowed", hint="allowed is a time of day, like 07:00")
    hour, minute = int(time[1]), int(time[2])
    word = WORDS.get(every.lower(), every.lower())
    if word in DAYS:
        days, date = DAYS[word]
        return Rhythm(f"{minute} {hour} {days}", f"{date} {hour:02}:{minute:02}:00")
    steps = HOURS.fullmatch(word)
    if steps is None or int(steps[1]) not in STEPS:
        hint = "allowed are hour, 2h, 3h, 4h, 6h, 8h, 12h, day, weekdays, week, month"
        raise ConfigError(f"flag --every: {every[:40]!r} is not allowed", hint=hint)
    step = int(steps[1])
    hours = "*" if step == 1 else ",".join(str(one) for one in range(hour % step, 24, step))
    return Rhythm(f"{minute} {hours} * * *", f"*-*-* {hours}:{minute:02}:00")
